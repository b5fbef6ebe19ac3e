#include "kernels/gemm/gemm.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "kernels/gemm/pairs.h"
#include "kernels/gemm/plain.h"
#include "kernels/gemm/skinny.h"

namespace npu::gemm {
namespace {

bool IsPacked(DType t) { return t == DType::f32 || IsHalf(t); }

Element ElementOf(DType t) {
  return t == DType::f32 ? Element::kF32 : t == DType::f16 ? Element::kF16 : Element::kBf16;
}

// Rows of c become columns: c' = b' a'.
void Transpose(Problem& p) {
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  for (Operand* o : {&p.a, &p.b, &p.c, &p.self}) std::swap(o->row, o->col);
}

// Batch dimensions over which b stands still become rows of a (Linear on [batch, tokens, features]).
void FoldBatch(Problem& p) {
  for (int d = p.batch_rank - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    const bool folds = p.b.batch[i] == 0 && p.a.batch[i] == p.m * p.a.row && p.c.batch[i] == p.m * p.c.row &&
                       (p.beta == 0.0 || p.self.batch[i] == p.m * p.self.row);
    if (!folds && p.batch_shape[i] != 1) return;
    if (folds) p.m *= p.batch_shape[i];
    p.batch_rank = d;
  }
}

Operand At(const Operand& o, const Problem& p, int64_t index) {
  Operand out = o;
  if (o.data == nullptr) return out;
  int64_t offset = 0;
  for (int d = p.batch_rank - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    offset += index % p.batch_shape[i] * o.batch[i];
    index /= p.batch_shape[i];
  }
  out.data = static_cast<char*>(o.data) + offset * ItemSize(o.dtype);
  return out;
}

Status PackedProduct(Parallel& parallel, const Problem& p, int64_t index) {
  const Operand a = At(p.a, p, index), b = At(p.b, p, index), c = At(p.c, p, index), self = At(p.self, p, index);
  const MatrixSource rows(a.data, ElementOf(a.dtype), a.row, a.col);
  Sink sink{.data = c.data, .element = ElementOf(c.dtype), .row = c.row};
  sink.columns.step = c.col;
  sink.alpha = static_cast<float>(p.alpha.real());
  if (p.beta != 0.0 && self.data != nullptr) {
    sink.beta = static_cast<float>(p.beta.real());
    sink.self = self.data;
    sink.self_element = ElementOf(self.dtype);
    sink.self_row = self.row;
    sink.self_col = self.col;
    sink.in_place = self.data == c.data && self.dtype == c.dtype && self.row == c.row && self.col == c.col;
  }
  const SkinnyB skinny{b.data, ElementOf(b.dtype), b.col, b.row};
  if (IsSkinny(p.m, p.n, p.k, skinny)) return Skinny(parallel, p.m, p.n, p.k, rows, skinny, sink);
  if (a.dtype == DType::bf16 && b.dtype == DType::bf16 && IsForPairs(p.m, p.n, p.k)) {
    return Pairs(parallel, p.m, p.n, p.k, {static_cast<const uint16_t*>(a.data), a.row, a.col},
                 {static_cast<const uint16_t*>(b.data), b.col, b.row}, sink);
  }
  const MatrixSource cols(b.data, ElementOf(b.dtype), b.col, b.row);
  return Blocked(parallel, p.m, p.n, p.k, rows, cols, sink);
}

Status One(Parallel& parallel, const Problem& p, int64_t index) {
  if (IsPacked(p.c.dtype)) return PackedProduct(parallel, p, index);
  return Plain(parallel, p, At(p.a, p, index), At(p.b, p, index), At(p.c, p, index), At(p.self, p, index));
}

}  // namespace

bool Supports(DType a, DType b, DType c) {
  if (IsPacked(a) && IsPacked(b) && IsPacked(c)) return true;
  return a == b && b == c && (a == DType::f64 || a == DType::c64 || a == DType::c128 || IsInt(a));
}

Status Gemm(Parallel& parallel, const Problem& problem) {
  Problem p = problem;
  if (p.m <= 0 || p.n <= 0) return {};
  if (p.beta == 0.0) p.self = {};
  // A stride that is never used must not keep a matrix from a quick path.
  if (p.n == 1) p.c.col = 1, p.b.col = 1;
  if (p.m == 1) p.c.row = 1, p.a.row = 1;
  FoldBatch(p);
  // The side with few rows, or else the unit stride of c, runs along columns.
  const bool few_rows = p.m <= kSkinnyRows, few_cols = p.n <= kSkinnyRows;
  if (few_cols && !(few_rows && p.m <= p.n)) {
    Transpose(p);
  } else if (!few_rows && p.c.col != 1 && p.c.row == 1) {
    Transpose(p);
  }

  int64_t count = 1;
  for (int d = 0; d < p.batch_rank; ++d) count *= p.batch_shape[static_cast<size_t>(d)];
  const double flops =
      2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(std::max<int64_t>(p.k, 1));
  // Many products, or small ones, are shared out whole; few large ones are cut.
  constexpr double kLarge = 2e8, kWorthATask = 2e5;
  if (count == 1 || flops > kLarge || (count < parallel.Workers() && flops > 1e7)) {
    for (int64_t i = 0; i < count; ++i) NPU_TRY(One(parallel, p, i));
    return {};
  }
  const int64_t worth = std::max<int64_t>(1, static_cast<int64_t>(kWorthATask / flops));
  const int64_t share = std::max<int64_t>(1, count / (int64_t{8} * parallel.Workers()));
  std::atomic<bool> ok{true};
  parallel.For(count, std::max(worth, share), [&](int64_t begin, int64_t end) {
    SerialParallel serial;
    for (int64_t i = begin; i < end; ++i) {
      if (!One(serial, p, i).ok()) ok.store(false, std::memory_order_relaxed);
    }
  });
  if (!ok.load(std::memory_order_relaxed))
    return Error(Code::kOutOfHostMemory, "The host has no memory left for a batch of {} matrix products.", count)
        .Remedy("Free host memory or raise the memory limit of the process.");
  return {};
}

}  // namespace npu::gemm
