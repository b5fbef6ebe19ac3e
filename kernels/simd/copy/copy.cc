#include "kernels/simd/copy/copy.h"

#include <cstring>

#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {
namespace {

template <class T>
void CopyRun(const void* src, int64_t src_step, void* dst, int64_t dst_step, int64_t n) {
  const T* from = static_cast<const T*>(src);
  T* to = static_cast<T*>(dst);
  if (src_step == 0) {
    const T v = *from;
    for (int64_t i = 0; i < n; ++i) to[i * dst_step] = v;
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * dst_step] = from[i * src_step];
  }
}

struct Wide {
  uint64_t half[2];
};

void CopySame(const void* src, int64_t src_step, void* dst, int64_t dst_step, int64_t n, int item) {
  if (src_step == 1 && dst_step == 1) {
    std::memmove(dst, src, static_cast<size_t>(n) * static_cast<size_t>(item));
    return;
  }
  switch (item) {
    case 1: return CopyRun<uint8_t>(src, src_step, dst, dst_step, n);
    case 2: return CopyRun<uint16_t>(src, src_step, dst, dst_step, n);
    case 4: return CopyRun<uint32_t>(src, src_step, dst, dst_step, n);
    case 8: return CopyRun<uint64_t>(src, src_step, dst, dst_step, n);
    case 16: return CopyRun<Wide>(src, src_step, dst, dst_step, n);
    default: return;
  }
}

// By way of a type that holds both exactly.
template <class C>
void CopyConverted(const void* src, DType from, int64_t src_step, void* dst, DType to, int64_t dst_step, int64_t n) {
  alignas(64) C buffer[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t len = n - i < kChunk ? n - i : kChunk;
    Load(At(src, from, i * src_step), from, src_step, len, buffer);
    Write(buffer, len, At(dst, to, i * dst_step), to, dst_step);
  }
}

DType PartOf(DType t) {
  return t == DType::c128 ? DType::f64 : t == DType::c64 ? DType::f32 : t == DType::c32 ? DType::f16 : t;
}

// Between complex types, or a real and a complex one: imaginary parts are dropped or 0, as in torch. Strides count numbers.
void CopyComplex(const void* src, DType from, int64_t src_step, void* dst, DType to, int64_t dst_step, int64_t n) {
  const DType source = PartOf(from), target = PartOf(to);
  if (IsComplex(from)) src_step *= 2;
  if (IsComplex(to)) dst_step *= 2;
  CopyConverted<double>(src, source, src_step, dst, target, dst_step, n);
  if (!IsComplex(to)) return;
  const double zero = 0;
  void* const imaginary = At(dst, target, 1);
  if (IsComplex(from)) CopyConverted<double>(At(src, source, 1), source, src_step, imaginary, target, dst_step, n);
  else CopyConverted<double>(&zero, DType::f64, 0, imaginary, target, dst_step, n);
}

// Whether complex numbers of two T differ from 0. Strides count numbers.
template <class T>
void CopyTruth(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t n) {
  const T* z = static_cast<const T*>(from);
  auto* truth = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < n; ++i, z += 2 * from_stride, truth += to_stride) *truth = z[0] != 0 || z[1] != 0 ? 1 : 0;
}

}  // namespace

void Copy(const Tensor& src, const Tensor& dst, Parallel& parallel) {
  Walk<2> walk;
  for (int d = 0; d < dst.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    walk.Add(dst.shape[i], {dst.strides[i], src.strides[i]});
  }
  CopyWalk(walk, src.data, src.dtype, dst.data, dst.dtype, parallel);
}

void Fill(const void* value, const Tensor& dst, Parallel& parallel) {
  Walk<2> walk;
  for (int d = 0; d < dst.rank; ++d) walk.Add(dst.shape[static_cast<size_t>(d)], {dst.strides[static_cast<size_t>(d)], 0});
  CopyWalk(walk, value, dst.dtype, dst.data, dst.dtype, parallel);
}

void CopyWalk(Walk<2> walk, const void* src, DType src_type, void* dst, DType dst_type, Parallel& parallel) {
  if (walk.Count() == 0) return;
  walk.Sort(0);
  walk.Merge();
  const auto inner = walk.TakeInner();
  const int64_t rows = walk.Count();
  const bool same = src_type == dst_type;
  const bool via_f32 = (IsHalf(src_type) || src_type == DType::f32) && IsFloat(dst_type) && dst_type != DType::f64;
  const bool via_f64 = IsFloat(src_type);
  const bool truth = IsComplex(src_type) && dst_type == DType::b8;
  const bool complex = !same && (IsComplex(src_type) || IsComplex(dst_type));
  // One long run is cut by elements, many short ones by rows.
  const int64_t pieces = rows >= 16 ? 1 : (inner.size + kGrain - 1) / kGrain;
  const int64_t len = (inner.size + pieces - 1) / pieces;
  parallel.For(rows * pieces, RowsPerBlock(len), [&](int64_t begin, int64_t end) {
    Walk<2> w = walk;
    w.Seek(begin / pieces);
    int64_t piece = begin % pieces;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = piece * len;
      const int64_t n = first + len < inner.size ? len : inner.size - first;
      if (n > 0) {
        const void* from = At(src, src_type, w.offset[1] + first * inner.stride[1]);
        void* to = At(dst, dst_type, w.offset[0] + first * inner.stride[0]);
        if (truth && src_type == DType::c64) CopyTruth<float>(from, inner.stride[1], to, inner.stride[0], n);
        else if (truth && src_type == DType::c128) CopyTruth<double>(from, inner.stride[1], to, inner.stride[0], n);
        else if (same) CopySame(from, inner.stride[1], to, inner.stride[0], n, ItemSize(src_type));
        else if (complex) CopyComplex(from, src_type, inner.stride[1], to, dst_type, inner.stride[0], n);
        else if (via_f32) CopyConverted<float>(from, src_type, inner.stride[1], to, dst_type, inner.stride[0], n);
        else if (via_f64) CopyConverted<double>(from, src_type, inner.stride[1], to, dst_type, inner.stride[0], n);
        else CopyConverted<int64_t>(from, src_type, inner.stride[1], to, dst_type, inner.stride[0], n);
      }
      if (++piece == pieces) {
        piece = 0;
        w.Next();
      }
    }
  });
}

Tensor DenseLike(const Tensor& t, void* data) {
  Tensor dense = t;
  dense.data = data;
  int64_t stride = 1;
  for (int d = t.rank - 1; d >= 0; --d) {
    dense.strides[static_cast<size_t>(d)] = stride;
    stride *= t.shape[static_cast<size_t>(d)];
  }
  return dense;
}

DenseIn::DenseIn(const Tensor& t, Parallel& parallel) : tensor_(t) {
  if (t.Contiguous()) return;
  scratch_.emplace(t.Numel() * ItemSize(t.dtype));
  tensor_ = DenseLike(t, scratch_->data());
  Copy(t, tensor_, parallel);
}

DenseOut::DenseOut(const Tensor& t, Parallel& parallel, bool loads) : original_(t), tensor_(t), parallel_(parallel) {
  if (t.Contiguous()) return;
  scratch_.emplace(t.Numel() * ItemSize(t.dtype));
  tensor_ = DenseLike(t, scratch_->data());
  if (loads) Copy(t, tensor_, parallel);
}
DenseOut::~DenseOut() {
  if (scratch_) Copy(tensor_, original_, parallel_);
}

}  // namespace npu::simd
