// Products of int8 matrices with scales, and of floats with weights kept in int8.
//
// int8 values are exact in bfloat16, and 1024 products of them in float32: the inner size is cut there and the pieces
// are added as integers, so sums are exact at the speed of float products.
#include <cstring>
#include <vector>

#include "gen/abi/ops.h"
#include "kernels/gemm/gemm.h"
#include "ops/core/formats.h"
#include "ops/linalg/weight_nz.h"
#include "ops/quant/product.h"
#include "ops/quant/quantize.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int64_t kExact = 1024;  // 1024 · 127 · 128 < 2^24

size_t U(int64_t i) { return static_cast<size_t>(i); }

Tensor Turned(Tensor t, bool turn) {
  if (!turn) return t;
  const auto r = U(t.rank);
  std::swap(t.shape[r - 1], t.shape[r - 2]);
  std::swap(t.strides[r - 1], t.strides[r - 2]);
  return t;
}

// Matrix i of a batch that broadcasts to `batch`.
Tensor MatrixAt(const Tensor& t, std::span<const int64_t> batch, int64_t i) {
  Tensor m = t;
  int64_t offset = 0;
  const int own = t.rank - 2;
  for (auto d = static_cast<int>(batch.size()) - 1; d >= 0; --d) {
    const int mine = d - (static_cast<int>(batch.size()) - own);
    const int64_t at = i % batch[U(d)];
    i /= batch[U(d)];
    if (mine >= 0 && t.shape[U(mine)] != 1) offset += at * t.strides[U(mine)];
  }
  m.data = simd::At(t.data, t.dtype, offset);
  m.rank = 2;
  for (size_t d = 0; d < 2; ++d) m.shape[d] = t.shape[U(own) + d], m.strides[d] = t.strides[U(own) + d];
  return m;
}

}  // namespace

Status quant::IntegerProduct(const Call& c, const Tensor& a, const Tensor& b, int32_t* sums) {
  const int64_t m = a.shape[0], k = a.shape[1], n = b.shape[1];
  simd::Scratch<uint16_t> left(m * k), right(k * n);
  simd::Scratch<float> part(m * n);
  const Tensor la = MakeContiguous(left.data(), DType::bf16, a.Shape()),
               rb = MakeContiguous(right.data(), DType::bf16, b.Shape());
  simd::Copy(a, la, c.parallel);
  simd::Copy(b, rb, c.parallel);
  std::fill(sums, sums + m * n, 0);
  for (int64_t at = 0; at < k; at += kExact) {
    gemm::Problem p;
    p.m = m, p.n = n, p.k = std::min(kExact, k - at);
    p.a = {left.data() + at, DType::bf16, k, 1, {}};
    p.b = {right.data() + at * n, DType::bf16, n, 1, {}};
    p.c = {part.data(), DType::f32, n, 1, {}};
    NPU_TRY(gemm::Gemm(c.parallel, p));
    c.parallel.For(m * n, 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) quant::AddTo(sums[i], static_cast<int64_t>(part[i]));
    });
  }
  return {};
}

namespace {

// Scales as floats; whole words are what aclnnTransQuantParamV2 made.
struct Scales {
  std::vector<float> scale, offset;
  Scales(const Tensor& t, Parallel& parallel) : scale(U(t.Numel())), offset(U(t.Numel()), 0.0f) {
    if (t.dtype == DType::i64 || t.dtype == DType::u64) {
      Tensor words = t;
      words.dtype = DType::i64;
      const Values<int64_t> v(words, parallel);
      for (size_t i = 0; i < scale.size(); ++i) {
        const auto word = static_cast<uint64_t>(v[static_cast<int64_t>(i)]);
        const auto bits = static_cast<uint32_t>(word);
        std::memcpy(&scale[i], &bits, sizeof bits);
        const auto nine = static_cast<int32_t>(word >> 37 & 0x1ff);
        offset[i] = static_cast<float>(nine >= 256 ? nine - 512 : nine);
      }
      return;
    }
    const Values<float> v(t, parallel);
    std::copy(v.data(), v.data() + v.size(), scale.begin());
  }
  float Of(int64_t column) const { return scale[scale.size() == 1 ? 0 : U(column)]; }
  float OffsetOf(int64_t column) const { return offset[offset.size() == 1 ? 0 : U(column)]; }
};

// Where the parameters of both functions stand.
struct QuantPlan {
  Weight weight;
  Dims batch;
};

template <class A>
Status PrepareQuantMatmul(Planning& p) {
  QuantPlan plan;
  NPU_TRY(ReadWeight(p, A::x2, &plan.weight));
  const Tensor& a0 = p.args[A::x1];
  const Tensor& b0 = p.args[A::x2];
  if (a0.dtype != DType::i8 || b0.dtype != DType::i8)
    return NotYet(p.op.name,
                  fmt::format("products of int8 are computed; x1 is {} and x2 {}", Name(a0.dtype), Name(b0.dtype)));
  for (const TensorToken t : {TensorToken(A::yScale), TensorToken(A::x1Offset), TensorToken(A::yOffset)})
    if (const Tensor* given = p.args.Maybe(t); given != nullptr && given->Numel() > 0)
      return NotYet(p.op.name, fmt::format("{} is not applied", p.ParamName(t)));
  if (a0.rank < 2 || b0.rank < 2)
    return p.Refuse("x1 has shape {} and x2 {}.", ShapeText(a0.Shape()), ShapeText(b0.Shape()))
        .Remedy("Both are matrices or batches of them.");
  const Tensor a = Turned(a0, p.args[A::transposeX1]), b = Turned(b0, p.args[A::transposeX2]);
  const auto ra = U(a.rank), rb = U(b.rank);
  if (a.shape[ra - 1] != b.shape[rb - 2])
    return p
        .Refuse("x1 of shape {} cannot be multiplied with x2 of shape {}.", ShapeText(a.Shape()), ShapeText(b.Shape()))
        .Remedy("Inner sizes are equal.");
  Dims want;
  for (size_t d = 0; d + 2 < ra; ++d) want.Push(a.shape[d]);
  int bad = 0;
  if (!BroadcastInto(&want, b.Shape().first(rb - 2), &bad))
    return p.Refuse("the batches of x1 {} and x2 {} do not broadcast.", ShapeText(a.Shape()), ShapeText(b.Shape()));
  plan.batch = want;
  const int64_t m = a.shape[ra - 2], n = b.shape[rb - 1];
  want.Push(m);
  want.Push(n);
  NPU_TRY(WantShape(p, A::out, want, "it is the product"));
  NPU_TRY(quant::WantColumns(p, A::x2Scale, n));
  if (const Tensor* token = p.args[A::x1Scale]; token != nullptr && token->Numel() != m && token->Numel() != 1)
    return NotYet(p.op.name,
                  fmt::format("x1Scale has shape {}; one value for each row is applied", ShapeText(token->Shape())));
  if (p.args[A::groupSize] != 0) return NotYet(p.op.name, "scales of groups of the inner size are not applied");
  NPU_TRY(quant::WantColumns(p, A::x2Offset, n));
  if (const Tensor* bias = p.args[A::bias]; bias != nullptr && bias->Numel() != n)
    return NotYet(p.op.name,
                  fmt::format("bias has shape {}; one value for each column is added", ShapeText(bias->Shape())));
  const DType out = p.args[A::out].dtype;
  if (!IsFloat(out) && out != DType::i8 && out != DType::i32)
    return p.Refuse("out is {}.", Name(out)).Remedy("Ask for a float type, int8 or int32.");
  p.NewState(plan);
  ProductCost(p, a, b, p.args[A::out]);
  return {};
}

template <class A>
Status RunQuantMatmul(const Call& c) {
  const auto& plan = c.State<QuantPlan>();
  const Tensor a = Turned(c.args[A::x1], c.args[A::transposeX1]);
  const Tensor b = Turned(PlainWeight(c, A::x2, plan.weight), c.args[A::transposeX2]);
  const Tensor& out = c.args[A::out];
  const int64_t m = a.shape[U(a.rank - 2)], n = b.shape[U(b.rank - 1)];
  const Scales columns(c.args[A::x2Scale], c.parallel);
  std::vector<float> rows(U(m), 1.0f), after(U(n), 0.0f), offset(U(n), 0.0f);
  std::vector<int64_t> before(U(n), 0);
  if (const Tensor* t = c.args[A::x1Scale]; t != nullptr) {
    const Values<float> v(*t, c.parallel);
    for (int64_t i = 0; i < m; ++i) rows[U(i)] = v[v.size() == 1 ? 0 : i];
  }
  if (const Tensor* t = c.args[A::bias]; t != nullptr) {
    const bool whole = t->dtype == DType::i32;
    const Values<double> v(*t, c.parallel);
    for (int64_t i = 0; i < n; ++i)
      (whole ? before[U(i)] = static_cast<int64_t>(v[i]) : 0, after[U(i)] = whole ? 0.0f : static_cast<float>(v[i]));
  }
  for (int64_t j = 0; j < n; ++j) offset[U(j)] = columns.OffsetOf(j);
  if (const Tensor* t = c.args[A::x2Offset]; t != nullptr) {
    const quant::PerColumn v(*t, c.parallel);
    for (int64_t j = 0; j < n; ++j) offset[U(j)] = v[j];
  }
  simd::Scratch<int32_t> sums(m * n);
  simd::Scratch<float> row_major(m * n);
  for (int64_t i = 0; i < plan.batch.Numel(); ++i) {
    NPU_TRY(
        quant::IntegerProduct(c, MatrixAt(a, plan.batch.Span(), i), MatrixAt(b, plan.batch.Span(), i), sums.data()));
    const Tensor to = MatrixAt(out, plan.batch.Span(), i);
    if (out.dtype == DType::i32) {
      for (int64_t e = 0; e < m * n; ++e) quant::AddTo(sums[e], before[U(e % n)]);
      simd::Copy(MakeContiguous(sums.data(), DType::i32, to.Shape()), to, c.parallel);
      continue;
    }
    const bool bytes = out.dtype == DType::i8;
    c.parallel.For(m, Grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t j = 0; j < n; ++j) {
          const float v = static_cast<float>(sums[r * n + j] + before[U(j)]) * columns.Of(j) * rows[U(r)] + after[U(j)];
          row_major[r * n + j] = bytes ? static_cast<float>(quant::ToByte(v + offset[U(j)])) : v;
        }
      }
    });
    simd::Copy(MakeContiguous(row_major.data(), DType::f32, to.Shape()), to, c.parallel);
  }
  return {};
}

template <class A>
consteval Builder QuantMatmul() {
  return Op<A>()
      .Imm(kTakesFormats)
      .Optional(A::x1Offset, A::yOffset)
      .Rules(AnyShape(A::out), AnyDtype(A::out))
      .Uses(A::x1, A::x2, A::x1Scale, A::x2Scale, A::yScale, A::x1Offset, A::x2Offset, A::yOffset, A::bias,
            A::transposeX1, A::transposeX2, A::groupSize)
      .Tolerance("accumulated")
      .Like("quantised_product(x1, x2, x2Scale)")
      .Prepares(PrepareQuantMatmul<A>)
      .Does(RunQuantMatmul<A>);
}

}  // namespace

using abi::QuantMatmulV5, abi::QuantMatmulWeightNz, abi::WeightQuantBatchMatmulV2, abi::WeightQuantBatchMatmulV3;
NPU_OP(QuantMatmulV5) = QuantMatmul<QuantMatmulV5>();
NPU_OP(QuantMatmulWeightNz) = QuantMatmul<QuantMatmulWeightNz>();

namespace {

// y = x @ ((weight + offset) · scale) + bias; scale and offset are one number, one for each column, or one for each
// group of rows and column.
template <class A>
Status PrepareWeightQuant(Planning& p) {
  const Tensor &x = p.args[A::x], &w = p.args[A::weight], &y = p.args[A::y], &scale = p.args[A::antiquantScale];
  for (const TensorToken t : {TensorToken(A::quantScaleOptional), TensorToken(A::quantOffsetOptional)})
    if (const Tensor* given = p.args.Maybe(t); given != nullptr && given->Numel() > 0)
      return NotYet(p.op.name, fmt::format("{} (results in int8) is not applied", p.ParamName(t)));
  if (x.rank != 2 || w.rank != 2 || x.shape[1] != w.shape[0])
    return p
        .Refuse("x of shape {} cannot be multiplied with weight of shape {}.", ShapeText(x.Shape()),
                ShapeText(w.Shape()))
        .Remedy("Both are matrices whose inner sizes are equal.");
  Dims want;
  want.Push(x.shape[0]);
  want.Push(w.shape[1]);
  NPU_TRY(WantShape(p, A::y, want, "it is the product"));
  const int64_t k = w.shape[0], n = w.shape[1], group = p.args[A::antiquantGroupSize];
  const int64_t groups = group > 0 ? (k + group - 1) / group : 1;
  for (const Tensor* t : {&scale, p.args[A::antiquantOffsetOptional]}) {
    if (t == nullptr || t->Numel() == 1 || t->Numel() == groups * n) continue;
    return p.Refuse("scales or offsets have shape {} for {} groups of {} columns.", ShapeText(t->Shape()), groups, n)
        .Remedy("Give one value, one for each column, or one for each group and column.");
  }
  if (const Tensor* bias = p.args[A::biasOptional]; bias != nullptr && (bias->Numel() != n || SizeAt(*bias, 0) != n))
    return p.Refuse("bias has shape {} for {} columns.", ShapeText(bias->Shape()), n)
        .Remedy("Give one value for each column.");
  p.NeedScratch(static_cast<uint64_t>(k * n) * sizeof(float));
  ProductCost(p, x, w, y);
  return {};
}

template <class A>
Status RunWeightQuant(const Call& c) {
  const Tensor &w = c.args[A::weight], &scale = c.args[A::antiquantScale];
  const int64_t k = w.shape[0], n = w.shape[1], group = c.args[A::antiquantGroupSize];
  const Values<float> whole(w, c.parallel), factor(scale, c.parallel);
  std::optional<Values<float>> offset;
  if (c.args[A::antiquantOffsetOptional] != nullptr) offset.emplace(*c.args[A::antiquantOffsetOptional], c.parallel);
  auto* plain = reinterpret_cast<float*>(c.scratch);
  c.parallel.For(k, Grain(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t row = group > 0 ? r / group * n : 0;
      for (int64_t j = 0; j < n; ++j) {
        const float o = !offset ? 0.0f : (*offset)[offset->size() == 1 ? 0 : row + j];
        plain[r * n + j] = (whole[r * n + j] + o) * factor[factor.size() == 1 ? 0 : row + j];
      }
    }
  });
  ProductTerms terms;
  Tensor bias;
  if (c.args[A::biasOptional] != nullptr) {
    bias = *c.args[A::biasOptional];
    if (bias.rank > 1) {  // its last dimension
      const int64_t step = bias.strides[U(bias.rank - 1)];
      bias = MakeContiguous(bias.data, bias.dtype, std::array<int64_t, 1>{n});
      bias.strides[0] = step;
    }
    terms.self = &bias, terms.beta = 1;
  }
  return RunProduct(c, c.args[A::x], MakeContiguous(plain, DType::f32, w.Shape()), c.args[A::y], terms);
}

template <class A>
consteval Builder WeightQuant() {
  return Op<A>()
      .Rules(FloatTensors(A::x, A::antiquantScale, A::antiquantOffsetOptional, A::biasOptional, A::y),
             DtypeIn(A::weight, TypeSet{DType::i8}), AnyShape(A::y))
      .Uses(A::quantScaleOptional, A::quantOffsetOptional, A::antiquantGroupSize)
      .Tolerance("accumulated")
      .Like("x @ ((weight + antiquantOffsetOptional) * antiquantScale)")
      .Prepares(PrepareWeightQuant<A>)
      .Does(RunWeightQuant<A>);
}

}  // namespace

NPU_OP(WeightQuantBatchMatmulV2) = WeightQuant<WeightQuantBatchMatmulV2>();
NPU_OP(WeightQuantBatchMatmulV3) = WeightQuant<WeightQuantBatchMatmulV3>().Uses(WeightQuantBatchMatmulV3::innerPrecise);

}  // namespace npu::ops
