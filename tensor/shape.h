// Shapes: broadcasting, printing, overlap.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tensor/tensor.h"

namespace npu {

struct Dims {
  int rank = 0;
  std::array<int64_t, kKernelRank> size{};
  std::span<const int64_t> Span() const { return {size.data(), static_cast<size_t>(rank)}; }
  int64_t Numel() const {
    int64_t n = 1;
    for (int64_t s : Span()) n *= s;
    return n;
  }
  void Push(int64_t s) { size[static_cast<size_t>(rank++)] = s; }
};

inline Dims DimsOf(const Tensor& t) { return {t.rank, t.shape}; }
bool SameShape(std::span<const int64_t> a, std::span<const int64_t> b);
// "[2, 3]"; "[]" for 0-d.
std::string ShapeText(std::span<const int64_t> shape);

// Right-aligned broadcasting of `b` into `*a`. On failure *bad_dim is the dimension of the longer shape that disagrees.
bool BroadcastInto(Dims* a, std::span<const int64_t> b, int* bad_dim);
// Whether `from` can be expanded to `to`.
bool ExpandsTo(std::span<const int64_t> from, std::span<const int64_t> to);
// `t` seen with the shape `to` (stride 0 in expanded dimensions); ExpandsTo must hold.
Tensor Expanded(const Tensor& t, std::span<const int64_t> to);
// A row-major tensor of this shape over `data`.
Tensor MakeContiguous(void* data, DType dtype, std::span<const int64_t> shape);

// Negative dimensions count from the end; -1 when out of range. A 0-d tensor has dimensions 0 and -1.
int WrapDim(int64_t dim, int rank);

// First and one-past-last byte that `t` reaches; an empty tensor gives equal bounds.
struct ByteRange { const char* begin; const char* end; };
ByteRange Reach(const Tensor& t);
enum class Overlap : uint8_t { kNone, kSame, kPartial };
// kSame: exactly the same elements in the same places. kPartial: the byte ranges meet otherwise (may be a false alarm for
// interleaved views).
Overlap OverlapOf(const Tensor& a, const Tensor& b);
// Some dimension larger than 1 has stride 0: one address stands for several elements.
bool SelfOverlaps(const Tensor& t);

}  // namespace npu
