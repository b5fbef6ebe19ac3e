#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/reduce_into.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // NOLINT: must come first
#include <hwy/highway.h>

#include <cstring>

#include "kernels/simd/reduce_into.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#undef NPU_REDUCE_F16_INSTRUCTION
// Targets whose half conversion instruction rounds to nearest even. Highway's emulation for the others truncates.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
#define NPU_REDUCE_F16_INSTRUCTION 1
#else
#define NPU_REDUCE_F16_INSTRUCTION 0
#endif

// How elements of one type are read as compute values and written back.
template <class T>
struct Plain {
  using Element = T;
  using Compute = T;
  template <class D>
  static HWY_INLINE hn::VFromD<D> Load(D d, const T* p) {
    return hn::LoadU(d, p);
  }
  template <class D>
  using Stored = D;
  template <class D>
  static HWY_INLINE hn::VFromD<D> Pack(D, hn::VFromD<D> v) {
    return v;
  }
};

struct BFloat {
  using Element = uint16_t;
  using Compute = float;
  template <class D>
  static HWY_INLINE hn::VFromD<D> Load(D d, const uint16_t* p) {
    const hn::Rebind<uint32_t, D> du;
    const hn::Rebind<uint16_t, D> dh;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, p))));
  }
  template <class D>
  using Stored = hn::Rebind<uint16_t, D>;
  template <class D>
  static HWY_INLINE hn::VFromD<Stored<D>> Pack(D, hn::VFromD<D> v) {
    const hn::Rebind<uint32_t, D> du;
    const hn::Rebind<int32_t, D> di;
    const Stored<D> dh;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
    const auto nan = hn::Or(bits, hn::Set(du, 0x400000u));
    const auto chosen = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), nan, rounded);
    return hn::DemoteTo(dh, hn::BitCast(di, hn::ShiftRight<16>(chosen)));
  }
};

struct Half {
  using Element = uint16_t;
  using Compute = float;
  template <class D>
  using Stored = hn::Rebind<uint16_t, D>;
#if NPU_REDUCE_F16_INSTRUCTION
  template <class D>
  static HWY_INLINE hn::VFromD<D> Load(D d, const uint16_t* p) {
    const hn::Rebind<hwy::float16_t, D> dh;
    return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p)));
  }
  template <class D>
  static HWY_INLINE hn::VFromD<Stored<D>> Pack(D, hn::VFromD<D> v) {
    const hn::Rebind<hwy::float16_t, D> dh;
    return hn::BitCast(Stored<D>(), hn::DemoteTo(dh, v));
  }
#else
  template <class D>
  static HWY_INLINE hn::VFromD<D> Load(D d, const uint16_t* p) {
    const hn::Rebind<int32_t, D> di;
    const hn::Rebind<uint16_t, D> dh;
    const auto h = hn::PromoteTo(di, hn::LoadU(dh, p));
    const auto sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(di, 0x8000)));
    const auto magnitude = hn::And(h, hn::Set(di, 0x7fff));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    // Three cases: the exponent's bias differs by 112; a subnormal is a small integer times 2^-24; all ones stays all
    // ones.
    const auto normal = hn::Add(shifted, hn::Set(di, 112 << 23));
    const auto subnormal = hn::BitCast(di, hn::Mul(hn::ConvertTo(d, magnitude), hn::Set(d, 0x1p-24f)));
    const auto special = hn::Or(shifted, hn::Set(di, 0x7f800000));
    const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x400)), subnormal, normal);
    const auto value = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7bff)), special, finite);
    return hn::BitCast(d, hn::Or(sign, value));
  }
  template <class D>
  static HWY_INLINE hn::VFromD<Stored<D>> Pack(D d, hn::VFromD<D> v) {
    const hn::Rebind<int32_t, D> di;
    const Stored<D> dh;
    const auto bits = hn::BitCast(di, v);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 0x8000));
    const auto magnitude = hn::And(bits, hn::Set(di, 0x7fffffff));
    // A subnormal result: adding 0.5 makes the unit of rounding 2^-24. Else round the 13 bits that go, with ties to
    // even.
    const auto small =
        hn::Sub(hn::BitCast(di, hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f))), hn::Set(di, 0x3f000000));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 1));
    const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, odd), hn::Set(di, 0xfff - (112 << 23))));
    const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x38800000)), small, normal);
    const auto large =
        hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7f800000)), hn::Set(di, 0x7e00), hn::Set(di, 0x7c00));
    const auto value = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x477fffff)), large, finite);
    return hn::DemoteTo(dh, hn::Or(sign, value));
  }
#endif
};

template <class D, class V>
HWY_INLINE V Product(D, V a, V b) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 1 || (sizeof(T) == 8 && !std::is_floating_point_v<T>)) {
    // No instruction for these on most targets; products of integers are rare enough for one lane at a time.
    const D d;
    HWY_ALIGN T x[hn::MaxLanes(D())];
    HWY_ALIGN T y[hn::MaxLanes(D())];
    hn::Store(a, d, x);
    hn::Store(b, d, y);
    using U = std::make_unsigned_t<T>;
    for (size_t i = 0; i < hn::Lanes(d); ++i)
      x[i] = static_cast<T>(static_cast<U>(static_cast<U>(x[i]) * static_cast<U>(y[i])));
    return hn::Load(d, x);
  } else {
    return hn::Mul(a, b);
  }
}

template <ReduceOp kOp, class D, class V>
HWY_INLINE V Combine(D d, V a, V b) {
  if constexpr (kOp == ReduceOp::kSum) {
    return hn::Add(a, b);
  } else if constexpr (kOp == ReduceOp::kProd) {
    return Product(d, a, b);
  } else {
    const V best = kOp == ReduceOp::kMax ? hn::Max(a, b) : hn::Min(a, b);
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      const auto nan = hn::Or(hn::IsNaN(a), hn::IsNaN(b));  // Ne is an ordered comparison on AVX2
      return hn::IfThenElse(nan, hn::Add(a, b), best);
    } else {
      return best;
    }
  }
}

// The elements from `i` to `end`, a vector's worth at most at a time, through padded copies: nothing outside is
// touched.
template <class F, ReduceOp kOp>
void ReduceFew(const void* const* srcs, size_t n_srcs, void* const* dsts, size_t n_dsts, size_t i, size_t end) {
  using E = typename F::Element;
  const hn::ScalableTag<typename F::Compute> d;
  const typename F::template Stored<decltype(d)> ds;
  const size_t lanes = hn::Lanes(d);
  for (; i < end; i += lanes) {
    const size_t n = HWY_MIN(lanes, end - i);
    HWY_ALIGN E padded[hn::MaxLanes(d)] = {};
    std::memcpy(padded, static_cast<const E*>(srcs[0]) + i, n * sizeof(E));
    auto a = F::Load(d, padded);
    for (size_t k = 1; k < n_srcs; ++k) {
      std::memcpy(padded, static_cast<const E*>(srcs[k]) + i, n * sizeof(E));
      a = Combine<kOp>(d, a, F::Load(d, padded));
    }
    hn::StoreU(F::Pack(d, a), ds, padded);
    for (size_t k = 0; k < n_dsts; ++k) std::memcpy(static_cast<E*>(dsts[k]) + i, padded, n * sizeof(E));
  }
}

// Sums leave the registers for all destinations at once: going through a buffer costs a fifth (docs/performance.md).
// kSources and kSinks are 1 or 2, or 0 for as many as there are. Returns where it stopped, less than two vectors before
// `end`.
template <class F, ReduceOp kOp, int kSources, int kSinks, bool kStream>
size_t ReduceMany(const void* const* srcs, size_t n_srcs, void* const* dsts, size_t n_dsts, size_t i, size_t end) {
  using E = typename F::Element;
  const hn::ScalableTag<typename F::Compute> d;
  const typename F::template Stored<decltype(d)> ds;
  const size_t lanes = hn::Lanes(d);
  const size_t sources = kSources != 0 ? kSources : n_srcs, sinks = kSinks != 0 ? kSinks : n_dsts;
  const auto from = [&](size_t k, size_t at) HWY_ATTR { return F::Load(d, static_cast<const E*>(srcs[k]) + at); };
  if (kStream && lanes * sizeof(E) >= 64) {  // a line at a time: two of each destination cost a fifth of the speed
    for (; i + lanes <= end; i += lanes) {
      auto a = from(0, i);
      for (size_t k = 1; k < sources; ++k) a = Combine<kOp>(d, a, from(k, i));
      const auto x = F::Pack(d, a);
      for (size_t k = 0; k < sinks; ++k) hn::Stream(x, ds, static_cast<E*>(dsts[k]) + i);
    }
    return i;
  }
  for (; i + 2 * lanes <= end; i += 2 * lanes) {
    auto a = from(0, i);
    auto b = from(0, i + lanes);
    for (size_t k = 1; k < sources; ++k) {
      a = Combine<kOp>(d, a, from(k, i));
      b = Combine<kOp>(d, b, from(k, i + lanes));
    }
    const auto x = F::Pack(d, a), y = F::Pack(d, b);
    for (size_t k = 0; k < sinks; ++k) {
      E* to = static_cast<E*>(dsts[k]) + i;
      if constexpr (kStream && hn::MaxLanes(ds) * sizeof(E) >= 16) {  // smaller vectors have no such store
        hn::Stream(x, ds, to);
        hn::Stream(y, ds, to + lanes);
      } else {
        hn::StoreU(x, ds, to);
        hn::StoreU(y, ds, to + lanes);
      }
    }
  }
  return i;
}

// Round the caches in whole lines of 64 bytes.
void StreamCopy(const void* src, void* dst, size_t bytes) {
  const hn::ScalableTag<uint64_t> d;
  const size_t step = hn::Lanes(d) * sizeof(uint64_t);
  auto* to = static_cast<uint8_t*>(dst);
  const auto* from = static_cast<const uint8_t*>(src);
  const size_t head = HWY_MIN(bytes, (64 - reinterpret_cast<uintptr_t>(to) % 64) % 64);
  std::memcpy(to, from, head);
  size_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    for (size_t j = 0; j < 64; j += step) {
      const auto v = hn::BitCast(d, hn::LoadU(hn::Repartition<uint8_t, decltype(d)>(), from + i + j));
      hn::Stream(v, d, reinterpret_cast<uint64_t*>(to + i + j));
    }
  }
  std::memcpy(to + i, from + i, bytes - i);
}

// Elements before all destinations begin a line of 64 bytes; `count` when they never do together.
template <class E>
size_t BeforeLines(void* const* dsts, size_t n_dsts, size_t count) {
  const size_t head = (64 - reinterpret_cast<uintptr_t>(dsts[0]) % 64) % 64;
  if (head % sizeof(E) != 0) return count;
  for (size_t k = 1; k < n_dsts; ++k) {
    if ((reinterpret_cast<uintptr_t>(dsts[k]) + head) % 64 != 0) return count;
  }
  return HWY_MIN(count, head / sizeof(E));
}

template <class F, ReduceOp kOp, bool kStream>
void ReduceFrom(const void* const* srcs, size_t n_srcs, void* const* dsts, size_t n_dsts, size_t begin, size_t count) {
  size_t done = 0;
  if (n_srcs == 2 && n_dsts == 2) {
    done = ReduceMany<F, kOp, 2, 2, kStream>(srcs, n_srcs, dsts, n_dsts, begin, count);
  } else if (n_srcs == 2 && n_dsts == 1) {
    done = ReduceMany<F, kOp, 2, 1, kStream>(srcs, n_srcs, dsts, n_dsts, begin, count);
  } else {
    done = ReduceMany<F, kOp, 0, 0, kStream>(srcs, n_srcs, dsts, n_dsts, begin, count);
  }
  ReduceFew<F, kOp>(srcs, n_srcs, dsts, n_dsts, done, count);
}

template <class F, ReduceOp kOp>
void ReduceAll(const void* const* srcs, size_t n_srcs, void* const* dsts, size_t n_dsts, size_t count, bool stream) {
  const size_t head = stream ? BeforeLines<typename F::Element>(dsts, n_dsts, count) : count;
  if (head == count) return ReduceFrom<F, kOp, false>(srcs, n_srcs, dsts, n_dsts, 0, count);
  ReduceFew<F, kOp>(srcs, n_srcs, dsts, n_dsts, 0, head);
  ReduceFrom<F, kOp, true>(srcs, n_srcs, dsts, n_dsts, head, count);
  hwy::FlushStream();
}

template <class F>
void ByOp(ReduceOp op, const void* const* srcs, size_t n_srcs, void* const* dsts, size_t n_dsts, size_t count,
          bool stream) {
  switch (op) {
    case ReduceOp::kSum:
      return ReduceAll<F, ReduceOp::kSum>(srcs, n_srcs, dsts, n_dsts, count, stream);
    case ReduceOp::kProd:
      return ReduceAll<F, ReduceOp::kProd>(srcs, n_srcs, dsts, n_dsts, count, stream);
    case ReduceOp::kMax:
      return ReduceAll<F, ReduceOp::kMax>(srcs, n_srcs, dsts, n_dsts, count, stream);
    case ReduceOp::kMin:
      return ReduceAll<F, ReduceOp::kMin>(srcs, n_srcs, dsts, n_dsts, count, stream);
  }
}

void Reduce(DType type, ReduceOp op, const void* const* srcs, size_t n_srcs, void* const* dsts, size_t n_dsts,
            size_t count, bool stream) {
  const auto run = [&](auto format) { ByOp<decltype(format)>(op, srcs, n_srcs, dsts, n_dsts, count, stream); };
  switch (type) {
    case DType::f32:
      return run(Plain<float>());
    case DType::f64:
      return run(Plain<double>());
    case DType::f16:
      return run(Half());
    case DType::bf16:
      return run(BFloat());
    case DType::i8:
      return run(Plain<int8_t>());
    case DType::i16:
      return run(Plain<int16_t>());
    case DType::i32:
      return run(Plain<int32_t>());
    case DType::i64:
      return run(Plain<int64_t>());
    case DType::u8:
      return run(Plain<uint8_t>());
    case DType::u16:
      return run(Plain<uint16_t>());
    case DType::u32:
      return run(Plain<uint32_t>());
    case DType::u64:
      return run(Plain<uint64_t>());
    default:
      return;
  }
}

void Stream(const void* src, void* dst, size_t bytes) {
  StreamCopy(src, dst, bytes);
  hwy::FlushStream();
}

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::simd {

HWY_EXPORT(Reduce);
HWY_EXPORT(Stream);

bool CanReduce(DType type) {
  switch (type) {
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16:
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
      return true;
    default:
      return false;
  }
}

void ReduceInto(Reduction what, std::span<const void* const> srcs, std::span<void* const> dsts, size_t count,
                Stores stores) {
  if (count == 0 || srcs.empty() || dsts.empty()) return;
  HWY_DYNAMIC_DISPATCH(Reduce)
  (what.type, what.op, srcs.data(), srcs.size(), dsts.data(), dsts.size(), count, stores == Stores::kStreaming);
}

void CopyInto(const void* src, void* dst, size_t bytes, Stores stores) {
  if (bytes == 0 || src == dst) return;
  if (stores == Stores::kPlain) {
    std::memcpy(dst, src, bytes);
  } else {
    HWY_DYNAMIC_DISPATCH(Stream)(src, dst, bytes);
  }
}

}  // namespace npu::simd
#endif  // HWY_ONCE
