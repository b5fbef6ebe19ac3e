#include "tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace npu {

bool SameShape(std::span<const int64_t> a, std::span<const int64_t> b) { return std::ranges::equal(a, b); }

std::string ShapeText(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

bool BroadcastInto(Dims* a, std::span<const int64_t> b, int* bad_dim) {
  const int rank = std::max(a->rank, static_cast<int>(b.size()));
  Dims out;
  out.rank = rank;
  for (int d = 0; d < rank; ++d) {  // from the last dimension
    const int ia = a->rank - 1 - d, ib = static_cast<int>(b.size()) - 1 - d;
    const int64_t sa = ia >= 0 ? a->size[static_cast<size_t>(ia)] : 1;
    const int64_t sb = ib >= 0 ? b[static_cast<size_t>(ib)] : 1;
    if (sa != sb && sa != 1 && sb != 1) {
      *bad_dim = rank - 1 - d;
      return false;
    }
    out.size[static_cast<size_t>(rank - 1 - d)] = sa == 1 ? sb : sa;
  }
  *a = out;
  return true;
}

bool ExpandsTo(std::span<const int64_t> from, std::span<const int64_t> to) {
  if (from.size() > to.size()) return false;
  const size_t lead = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != to[lead + d] && from[d] != 1) return false;
  return true;
}

Tensor Expanded(const Tensor& t, std::span<const int64_t> to) {
  Tensor r = t;
  r.rank = static_cast<int8_t>(to.size());
  const size_t lead = to.size() - static_cast<size_t>(t.rank);
  for (size_t d = 0; d < to.size(); ++d) {
    r.shape[d] = to[d];
    const bool own = d >= lead && (t.shape[d - lead] != 1 || to[d] == 1);
    r.strides[d] = own ? t.strides[d - lead] : 0;
  }
  return r;
}

Tensor MakeContiguous(void* data, DType dtype, std::span<const int64_t> shape) {
  Tensor t;
  t.data = data;
  t.dtype = dtype;
  t.rank = static_cast<int8_t>(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    t.shape[d] = shape[d];
    t.strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return t;
}

int WrapDim(int64_t dim, int rank) {
  const int64_t n = std::max(rank, 1);
  if (dim < -n || dim >= n) return -1;
  return static_cast<int>(dim < 0 ? dim + n : dim);
}

ByteRange Reach(const Tensor& t) {
  const char* p = static_cast<const char*>(t.data);
  int64_t last = 0;
  for (int d = 0; d < t.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    if (t.shape[i] == 0) return {p, p};
    last += (t.shape[i] - 1) * t.strides[i];
  }
  return {p, p + (last + 1) * ItemSize(t.dtype)};
}

Overlap OverlapOf(const Tensor& a, const Tensor& b) {
  const ByteRange ra = Reach(a), rb = Reach(b);
  if (ra.begin == ra.end || rb.begin == rb.end || ra.end <= rb.begin || rb.end <= ra.begin) return Overlap::kNone;
  if (a.data != b.data || ItemSize(a.dtype) != ItemSize(b.dtype) || !SameShape(a.Shape(), b.Shape()))
    return Overlap::kPartial;
  for (int d = 0; d < a.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    if (a.shape[i] != 1 && a.strides[i] != b.strides[i]) return Overlap::kPartial;
  }
  return Overlap::kSame;
}

bool SelfOverlaps(const Tensor& t) {
  if (t.Numel() == 0) return false;
  for (int d = 0; d < t.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    if (t.shape[i] > 1 && t.strides[i] == 0) return true;
  }
  return false;
}

}  // namespace npu
