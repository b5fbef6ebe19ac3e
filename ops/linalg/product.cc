#include "ops/linalg/product.h"

#include <algorithm>

#include "kernels/gemm/gemm.h"
#include "tensor/shape.h"

namespace npu::ops {
namespace {

constexpr double kFlopsPerNs = 50;

size_t U(int i) { return static_cast<size_t>(i); }

// The shape of a @ b as torch.matmul has it; false when the sizes do not fit.
bool ProductShape(const Tensor& a, const Tensor& b, Dims* out, int* bad_dim) {
  *bad_dim = -1;
  if (a.rank == 0 || b.rank == 0) return false;
  const int64_t ka = a.shape[U(a.rank - 1)];
  const int64_t kb = b.rank == 1 ? b.shape[0] : b.shape[U(b.rank - 2)];
  if (ka != kb) return false;
  Dims dims;
  for (int d = 0; d < a.rank - 2; ++d) dims.Push(a.shape[U(d)]);
  if (b.rank > 2 && !BroadcastInto(&dims, {b.shape.data(), U(b.rank - 2)}, bad_dim)) return false;
  if (a.rank > 1) dims.Push(a.shape[U(a.rank - 2)]);
  if (b.rank > 1) dims.Push(b.shape[U(b.rank - 1)]);
  *out = dims;
  return true;
}

// Strides of the batch of `t`, seen with the batch dimensions of out.
void BatchStrides(const Tensor& t, int matrix_rank, int batch_rank, gemm::Operand* o) {
  const int own = std::max(0, t.rank - matrix_rank);
  for (int d = 0; d < own; ++d) {
    const int to = batch_rank - own + d;
    o->batch[U(to)] = t.shape[U(d)] == 1 ? 0 : t.strides[U(d)];
  }
}

}  // namespace

namespace rule::check {

Status Product(const Planning& plan, const Rule& rule) {
  const TensorToken ka{{rule.params[0]}}, kb{{rule.params[1]}}, kout{{rule.params[2]}};
  const Tensor& a = *plan.args.Maybe(ka);
  const Tensor& b = *plan.args.Maybe(kb);
  const Tensor* out = plan.args.Maybe(kout);
  const bool sums_batch = rule.imm == 133;
  const int64_t ranks = rule.imm % 100;
  if (ranks != 0 && (a.rank != ranks / 10 || b.rank != ranks % 10)) {
    return plan
        .Refuse("{} has {} and {} has {} dimensions; {} and {} are wanted.", plan.ParamName(ka), a.rank,
                plan.ParamName(kb), b.rank, ranks / 10, ranks % 10)
        .Remedy("Reshape {} or {}.", plan.ParamName(ka), plan.ParamName(kb));
  }
  Dims dims;
  int bad = -1;
  if (!ProductShape(a, b, &dims, &bad) || (ranks == 33 && a.shape[0] != b.shape[0])) {
    return plan
        .Refuse("{} of shape {} cannot be multiplied with {} of shape {}{}.", plan.ParamName(ka), ShapeText(a.Shape()),
                plan.ParamName(kb), ShapeText(b.Shape()),
                bad >= 0 || ranks == 33 ? ": their batches or inner sizes differ" : ": the inner sizes differ")
        .Remedy("The last size of {} must be the last but one of {}.", plan.ParamName(ka), plan.ParamName(kb));
  }
  if (out == nullptr) return {};
  if (sums_batch) {
    dims.size[0] = dims.size[1];
    dims.size[1] = dims.size[2];
    dims.rank = 2;
  }
  if (!npu::SameShape(out->Shape(), dims.Span())) {
    return plan
        .Refuse("{} has shape {}, but the product has {}.", plan.ParamName(kout), ShapeText(out->Shape()),
                ShapeText(dims.Span()))
        .Remedy("Give {} the shape {}.", plan.ParamName(kout), ShapeText(dims.Span()));
  }
  if (!gemm::Supports(a.dtype, b.dtype, out->dtype)) {
    return plan
        .Refuse("{} is {}, {} is {} and {} is {}; such a product is not computed.", plan.ParamName(ka), Name(a.dtype),
                plan.ParamName(kb), Name(b.dtype), plan.ParamName(kout), Name(out->dtype))
        .Remedy("Use float32, float16 or bfloat16, or one and the same type for all.");
  }
  return {};
}

Status Addend(const Planning& plan, const Rule& rule) {
  const TensorToken kself{{rule.params[0]}}, kout{{rule.params[1]}};
  const Tensor* self = plan.args.Maybe(kself);
  const Tensor* out = plan.args.Maybe(kout);
  if (self == nullptr || out == nullptr) return {};
  if (!npu::ExpandsTo(self->Shape(), out->Shape())) {
    return plan
        .Refuse("{} has shape {}, which cannot be expanded to that of {}, {}.", plan.ParamName(kself),
                ShapeText(self->Shape()), plan.ParamName(kout), ShapeText(out->Shape()))
        .Remedy("Sizes must be equal or 1, counted from the last dimension.");
  }
  if (!gemm::Supports(self->dtype, self->dtype, out->dtype)) {
    return plan
        .Refuse("{} is {} and {} is {}; they cannot be added.", plan.ParamName(kself), Name(self->dtype),
                plan.ParamName(kout), Name(out->dtype))
        .Remedy("Cast {} to {}.", plan.ParamName(kself), Name(out->dtype));
  }
  return {};
}

}  // namespace rule::check

Status RunProduct(const Call& c, const Tensor& a, const Tensor& b, const Tensor& out, const ProductTerms& terms) {
  const int matrix_rank = (a.rank > 1) + (b.rank > 1);
  const int batch_rank = out.rank - matrix_rank;
  gemm::Problem p;
  p.m = a.rank > 1 ? a.shape[U(a.rank - 2)] : 1;
  p.k = a.shape[U(a.rank - 1)];
  p.n = b.rank > 1 ? b.shape[U(b.rank - 1)] : 1;
  p.batch_rank = batch_rank;
  for (int d = 0; d < batch_rank; ++d) p.batch_shape[U(d)] = out.shape[U(d)];
  p.a = {a.data, a.dtype, a.rank > 1 ? a.strides[U(a.rank - 2)] : 0, a.strides[U(a.rank - 1)], {}};
  p.b = {b.data, b.dtype, b.strides[U(std::max(0, b.rank - 2))], b.rank > 1 ? b.strides[U(b.rank - 1)] : 0, {}};
  auto result = [&](const Tensor& t) {
    gemm::Operand o{t.data, t.dtype, 0, 0, {}};
    if (a.rank > 1) o.row = t.strides[U(batch_rank)];
    if (b.rank > 1) o.col = t.strides[U(t.rank - 1)];
    for (int d = 0; d < batch_rank; ++d) o.batch[U(d)] = t.strides[U(d)];
    return o;
  };
  p.c = result(out);
  BatchStrides(a, 2, batch_rank, &p.a);
  BatchStrides(b, 2, batch_rank, &p.b);
  p.alpha = terms.alpha;
  if (terms.self != nullptr && terms.beta != 0.0) {
    p.beta = terms.beta;
    p.self = result(Expanded(*terms.self, out.Shape()));
  }
  return gemm::Gemm(c.parallel, p);
}

void ProductCost(Planning& plan, const Tensor& a, const Tensor& b, const Tensor& out) {
  const double k = a.rank == 0 ? 1 : static_cast<double>(a.shape[U(a.rank - 1)]);
  const double reads = static_cast<double>(a.Numel() + b.Numel()) / 8;
  plan.Cost(1000 + reads + 2 * k * static_cast<double>(out.Numel()) / kFlopsPerNs);
}

}  // namespace npu::ops
