// Filling a panel from memory with any two strides, converting to f32 on the way.
#if defined(NPU_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPU_GEMM_PACK_INL_H_
#undef NPU_GEMM_PACK_INL_H_
#else
#define NPU_GEMM_PACK_INL_H_
#endif

#include "kernels/gemm/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npu::gemm::HWY_NAMESPACE {

using D4 = hn::FixedTag<float, 4>;
inline constexpr int kBlocks = kLanes / 4;  // 128-bit blocks in a vector

inline constexpr int64_t kAhead = 8;  // rows fetched ahead when their stride hides them from the hardware

// Four elements of each of kBlocks rows that lie 4 rows apart, one row per block.
template <class T>
HWY_INLINE V LoadBlocks(const T* const* rows, int64_t offset) {
  const D4 d4;
#if HWY_TARGET == HWY_AVX3
  const hn::FixedTag<float, 8> d8;
  const auto low = hn::Combine(d8, LoadF32(d4, rows[4] + offset), LoadF32(d4, rows[0] + offset));
  const auto high = hn::Combine(d8, LoadF32(d4, rows[12] + offset), LoadF32(d4, rows[8] + offset));
  return hn::Combine(D(), high, low);
#elif HWY_TARGET == HWY_AVX2
  return hn::Combine(D(), LoadF32(d4, rows[4] + offset), LoadF32(d4, rows[0] + offset));
#else
  return LoadF32(d4, rows[0] + offset);
#endif
}

// `groups` vectors of rows with unit stride along k, four k at a time, transposed within 128-bit blocks. Stores go
// upwards in memory, so what a store writes past its panel row is overwritten by the next. Lanes past count must have a
// row too.
template <class T, int kGroups>
HWY_INLINE void Transpose(const T* const* rows, int count, int width, int64_t k, float* dst) {
  const D d;
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
    V out[4][kGroups];
    HWY_UNROLL(4) for (int g = 0; g < kGroups; ++g) {
      const T* const* r = rows + g * kLanes;
      const V r0 = LoadBlocks(r, p);
      const V r1 = LoadBlocks(r + 1, p);
      const V r2 = LoadBlocks(r + 2, p);
      const V r3 = LoadBlocks(r + 3, p);
      const V lo02 = hn::InterleaveLower(d, r0, r2);
      const V hi02 = hn::InterleaveUpper(d, r0, r2);
      const V lo13 = hn::InterleaveLower(d, r1, r3);
      const V hi13 = hn::InterleaveUpper(d, r1, r3);
      out[0][g] = hn::InterleaveLower(d, lo02, lo13);
      out[1][g] = hn::InterleaveUpper(d, lo02, lo13);
      out[2][g] = hn::InterleaveLower(d, hi02, hi13);
      out[3][g] = hn::InterleaveUpper(d, hi02, hi13);
    }
    HWY_UNROLL(4) for (int q = 0; q < 4; ++q) {
      HWY_UNROLL(4) for (int g = 0; g < kGroups; ++g) hn::StoreU(out[q][g], d, dst + (p + q) * width + g * kLanes);
    }
  }
  for (; p < k; ++p) {
    for (int i = 0; i < count; ++i) dst[p * width + i] = ToF32(rows[i][p]);
  }
  if (count == width) return;
  for (p = 0; p < k; ++p) {
    for (int i = count; i < width; ++i) dst[p * width + i] = 0.0f;
  }
}

template <class T, int kGroups>
void PackTransposed(const T* src, int64_t stride_i, int count, int width, int64_t k, float* dst) {
  const T* rows[kGroups * kLanes];
  for (int i = 0; i < kGroups * kLanes; ++i) rows[i] = src + (i < count ? i : count - 1) * stride_i;
  Transpose<T, kGroups>(rows, count, width, k, dst);
}

void PackRows(const float* const* given, int count, int width, int64_t k, float* dst) {
  const float* rows[2 * kLanes];
  for (int i = 0; i < 2 * kLanes; ++i) rows[i] = given[i < count ? i : count - 1];
  if (width == kLanes) return Transpose<float, 1>(rows, count, width, k, dst);
  Transpose<float, 2>(rows, count, width, k, dst);
}

// One run of all rows of a panel, with vectors that divide its length.
template <class DV>
HWY_INLINE void CopyRun(DV d, const float* run, int64_t length, const int64_t* offset, int width, int64_t k,
                        float* out) {
  for (int64_t i = 0; i < length; i += static_cast<int64_t>(hn::Lanes(d))) {
    float* to = out + i;
    for (int64_t p = 0; p < k; ++p, to += width) hn::StoreU(hn::LoadU(d, run + i + offset[p]), d, to);
  }
}

// The usual sizes of images: every run is a multiple of four and together they fill the row.
bool PackEvenRuns(const float* const* run, const int* length, int runs, const int64_t* offset, int width, int64_t k,
                  float* dst) {
  int together = 0, low_bits = 0;
  for (int r = 0; r < runs; ++r) {
    together += length[r];
    low_bits |= length[r];
  }
  if (together != width || low_bits % 4 != 0) return false;
  for (int r = 0; r < runs; ++r) {
    if (length[r] % kLanes == 0) {
      CopyRun(D(), run[r], length[r], offset, width, k, dst);
#if HWY_TARGET == HWY_AVX3
    } else if (length[r] % 8 == 0) {
      CopyRun(hn::FixedTag<float, 8>(), run[r], length[r], offset, width, k, dst);
#endif
    } else {
      CopyRun(D4(), run[r], length[r], offset, width, k, dst);
    }
    dst += length[r];
  }
  return true;
}

void PackRuns(const float* const* run, const int* length, int runs, const int64_t* offset, bool overread, int width,
              int64_t k, float* dst) {
  const D d;
  if (PackEvenRuns(run, length, runs, offset, width, k, dst)) return;
  for (int64_t p = 0; p < k; ++p, dst += width) {
    float* out = dst;
    for (int r = 0; r < runs; ++r) {
      const float* s = run[r] + offset[p];
      int i = 0;
      const int whole = overread ? length[r] : length[r] / kLanes * kLanes;
      for (; i < whole; i += kLanes) hn::StoreU(hn::LoadU(d, s + i), d, out + i);
      if (i < length[r]) hn::StoreU(LoadF32N(d, s + i, length[r] - i), d, out + i);
      out += length[r];
    }
    for (; out < dst + width; out += kLanes) hn::StoreU(hn::Zero(d), d, out);
  }
}

template <class T>
void Pack(const void* source, int64_t stride_i, int64_t stride_k, int count, int width, int64_t k, float* dst) {
  const D d;
  const T* src = static_cast<const T*>(source);
  const int groups = (width + kLanes - 1) / kLanes;
  if (stride_k == 1 && k >= 4) {
    if (groups == 1) return PackTransposed<T, 1>(src, stride_i, count, width, k, dst);
    if (groups == 2) return PackTransposed<T, 2>(src, stride_i, count, width, k, dst);
    if (groups == 3) return PackTransposed<T, 3>(src, stride_i, count, width, k, dst);
  }
  const int full = count / kLanes * kLanes;
  if (stride_i == 1) {
    const int rest = count - full;
    // A whole vector may be read at the end of a row when the next row lies behind it.
    const bool overread = stride_k + count >= full + kLanes;
    for (int64_t p = 0; p < k; ++p) {
      const T* s = src + p * stride_k;
      float* out = dst + p * width;
      hwy::Prefetch(s + kAhead * stride_k);
      if (width > kLanes) hwy::Prefetch(s + kAhead * stride_k + kLanes);
      for (int i = 0; i < full; i += kLanes) hn::StoreU(LoadF32(d, s + i), d, out + i);
      if (rest == 0) {
        for (int i = full; i < width; i += kLanes) hn::StoreU(hn::Zero(d), d, out + i);
      } else if (width == count && overread && p + 1 < k) {
        hn::StoreU(LoadF32(d, s + full), d, out + full);
      } else if (width == count) {
        for (int i = full; i < count; ++i) out[i] = ToF32(s[i]);
      } else {
        hn::StoreU(LoadF32N(d, s + full, rest), d, out + full);
        for (int i = full + kLanes; i < width; i += kLanes) hn::StoreU(hn::Zero(d), d, out + i);
      }
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p) {
    const T* s = src + p * stride_k;
    for (int i = 0; i < count; ++i) dst[p * width + i] = ToF32(s[i * stride_i]);
    for (int i = count; i < width; ++i) dst[p * width + i] = 0.0f;
  }
}

// Many whole panels from rows with unit stride along i: a row is read through before the next, so lines and pages are
// used up.
template <class T>
void PackMany(const void* source, int64_t stride_k, int width, int64_t panels, int64_t k, float* dst,
              int64_t panel_floats) {
  constexpr int64_t kTogether = 8;  // as many streams of stores
  const D d;
  const T* src = static_cast<const T*>(source);
  const int full = width / kLanes * kLanes, rest = width - full;
  for (int64_t first = 0; first < panels; first += kTogether) {
    const int64_t count = HWY_MIN(kTogether, panels - first);
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t q = first; q < first + count; ++q) {
        const T* s = src + p * stride_k + q * width;
        float* out = dst + q * panel_floats + p * width;
        hwy::Prefetch(s + kAhead * stride_k);
        for (int i = 0; i < full; i += kLanes) hn::StoreU(LoadF32(d, s + i), d, out + i);
        if (rest == 0) continue;
        // A whole vector may be read where later panels of the row lie behind it.
        const bool overread = (panels - 1 - q) * width >= kLanes - rest;
        hn::StoreU(overread ? LoadF32(d, s + full) : LoadF32N(d, s + full, rest), d, out + full);
      }
    }
  }
}

}  // namespace npu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
