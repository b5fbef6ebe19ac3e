// Grouped matrix products. Groups are pairs of lists, rows of one x that a group list divides, or pieces of the inner size.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"
#include "ops/linalg/product.h"
#include "ops/quant/product.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

using abi::GroupedMatmul, abi::GroupedMatmulV4, abi::GroupedMatmulV5, abi::GroupedMatmulAdd;

size_t U(int64_t i) { return static_cast<size_t>(i); }

Tensor Rows(const Tensor& t, int64_t begin, int64_t end) {
  Tensor s = t;
  s.data = simd::At(t.data, t.dtype, begin * t.strides[0]);
  s.shape[0] = end - begin;
  return s;
}
Tensor Expert(const Tensor& t, int64_t i) {
  Tensor s = t;
  s.data = simd::At(t.data, t.dtype, i * t.strides[0]);
  s.rank = 2;
  for (size_t d = 0; d < 2; ++d) s.shape[d] = t.shape[d + 1], s.strides[d] = t.strides[d + 1];
  return s;
}

// Experts: a list of matrices, or one tensor [experts, k, n].
int64_t Experts(std::span<const Tensor> weight) {
  return weight.size() == 1 && weight[0].rank == 3 ? weight[0].shape[0] : static_cast<int64_t>(weight.size());
}
Tensor WeightOf(std::span<const Tensor> weight, int64_t i) {
  return weight.size() == 1 && weight[0].rank == 3 ? Expert(weight[0], i) : weight[U(i)];
}

Status CheckLists(const Planning& p, std::span<const Tensor> x, std::span<const Tensor> weight,
                  std::span<const Tensor> bias, std::span<const Tensor> y, bool grouped) {
  const int64_t experts = Experts(weight);
  if (x.empty() || y.empty() || experts == 0)
    return p.Refuse("x has {}, weight {} and the result {} tensors.", x.size(), experts, y.size())
        .Remedy("Pass at least one of each.");
  for (const Tensor& t : x)
    if (t.dtype == DType::none || t.rank < 2 || (!IsFloat(t.dtype) && t.dtype != DType::i8))
      return p.Refuse("a tensor of x is {} of shape {}.", Name(t.dtype), ShapeText(t.Shape()))
          .Remedy("Pass matrices of floats or int8.");
  for (const Tensor& t : y)
    if (t.dtype == DType::none || t.rank < 2 || (!IsFloat(t.dtype) && t.dtype != DType::i32))
      return p.Refuse("a result is {} of shape {}.", Name(t.dtype), ShapeText(t.Shape()))
          .Remedy("Ask for floats, or for int32 of int8 products.");
  const bool single_x = x.size() == 1 && experts > 1, single_y = y.size() == 1 && experts > 1;
  if ((!single_x && static_cast<int64_t>(x.size()) != experts) ||
      (!single_y && static_cast<int64_t>(y.size()) != experts) || (single_x && !grouped)) {
    return p.Refuse("x has {} and the result {} tensors for {} weights.", x.size(), y.size(), experts)
        .Remedy("There is one for each weight, or one that groupList divides.");
  }
  if (!bias.empty() && static_cast<int64_t>(bias.size()) != experts &&
      !(bias.size() == 1 && bias[0].rank == 2 && bias[0].shape[0] == experts))
    return p.Refuse("bias has {} tensors for {} weights.", bias.size(), experts).Remedy("There is one for each.");
  for (int64_t e = 0; e < experts; ++e) {
    const Tensor w = WeightOf(weight, e);
    if (!bias.empty()) {
      const bool shared = bias.size() == 1 && experts > 1;
      const Tensor& b = bias[shared ? 0 : U(e)];
      const int64_t columns = SizeAt(w, 0);
      if (SizeAt(b, 0) != columns || b.Numel() != (shared ? experts * columns : columns))
        return p.Refuse("group {} has a bias of shape {} for {} columns.", e, ShapeText(b.Shape()), columns)
            .Remedy("There is one value for each column.");
    }
    const Tensor &in = x[single_x ? 0 : U(e)], &out = y[single_y ? 0 : U(e)];
    if (w.rank != 2 || SizeAt(in, 0) != w.shape[0] || SizeAt(out, 0) != w.shape[1])
      return p
          .Refuse("group {} multiplies {} with {} to {}.", e, ShapeText(in.Shape()), ShapeText(w.Shape()),
                  ShapeText(out.Shape()))
          .Remedy("Inner sizes are equal.");
    if (!single_x && !single_y && !npu::SameShape(in.Shape().first(U(in.rank - 1)), out.Shape().first(U(out.rank - 1))))
      return p.Refuse("group {} has rows {} and results {}.", e, ShapeText(in.Shape()), ShapeText(out.Shape()))
          .Remedy("A result has the rows of x.");
  }
  return {};
}

// What is done besides the product: scales of int8 products, scales of weights kept in int8, an activation.
struct Extras {
  std::span<const Tensor> scale, per_token, weight_scale, weight_offset;
  int64_t activation = 0;
};

// Values for group e out of a list of vectors, or of one tensor with a row for each group; empty when there is none.
std::vector<float> RowOfGroup(const Call& c, std::span<const Tensor> list, int64_t e, int64_t columns) {
  if (list.empty() || list[0].dtype == DType::none || list[0].Numel() == 0) return {};
  const Tensor& t = list.size() > 1 ? list[U(e)] : list[0];
  const Values<float> v(t, c.parallel);
  const int64_t from = list.size() > 1 || v.size() == columns || v.size() == 1 ? 0 : e * columns;
  std::vector<float> row(U(columns));
  for (int64_t i = 0; i < columns; ++i) row[U(i)] = v[v.size() == 1 ? 0 : from + i];
  return row;
}

float Activated(float v, int64_t type) {
  switch (type) {
    case 1:
      return v < 0 ? 0 : v;
    case 2:
      return 0.5f * v * (1 + std::tanh(0.7978845608028654f * (v + 0.044715f * v * v * v)));
    case 3:
      return 0.5f * v * (1 + std::erf(v * 0.70710678f));
    case 4:  // the fast form: v · sigmoid(1.702 |v|) · exp(0.851 (v − |v|))
      return v / (1 + std::exp(-1.702f * std::abs(v))) * std::exp(0.851f * (v - std::abs(v)));
    case 5:
      return v / (1 + std::exp(-v));
    default:
      return v;
  }
}

// One group with int8 weights or an activation, in float32 rows.
Status RunGroup(const Call& c, const Extras& extras, int64_t e, int64_t first_row, const Tensor& x, const Tensor& w, const Tensor* bias,
                const Tensor& y) {
  const int64_t k = w.shape[0], n = w.shape[1], m = y.Numel() / n;
  const Tensor in = x.rank == 2 ? x : MakeContiguous(x.data, x.dtype, std::array<int64_t, 2>{m, k});
  simd::Scratch<float> rows(m * n);
  const Tensor result = MakeContiguous(rows.data(), DType::f32, std::array<int64_t, 2>{m, n});
  const auto finish = [&](auto&& value) {
    c.parallel.For(m, Grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        for (int64_t j = 0; j < n; ++j) rows[r * n + j] = Activated(value(r, j), extras.activation);
    });
    simd::Copy(MakeContiguous(rows.data(), DType::f32, y.Shape()), y, c.parallel);
  };
  if (x.dtype == DType::i8) {
    simd::Scratch<int32_t> sums(m * n);
    NPU_TRY(quant::IntegerProduct(c, in, w, sums.data()));
    std::vector<int64_t> added(U(n), 0);
    if (bias != nullptr) {
      const Values<int64_t> v(*bias, c.parallel);
      std::copy(v.data(), v.data() + n, added.begin());
    }
    if (y.dtype == DType::i32) {
      for (int64_t i = 0; i < m * n; ++i) quant::AddTo(sums[i], added[U(i % n)]);
      simd::Copy(MakeContiguous(sums.data(), DType::i32, y.Shape()), y, c.parallel);
      return {};
    }
    const std::vector<float> scale = RowOfGroup(c, extras.scale, e, n);
    std::vector<float> token;
    if (!extras.per_token.empty() && extras.per_token[0].dtype != DType::none && extras.per_token[0].Numel() > 0) {
      const bool own = extras.per_token.size() > 1;
      const Values<float> v(extras.per_token[own ? U(e) : 0], c.parallel);
      token.assign(v.data() + (own ? 0 : first_row), v.data() + (own ? 0 : first_row) + m);
    }
    finish([&](int64_t r, int64_t j) {
      return static_cast<float>(sums[r * n + j] + added[U(j)]) * (scale.empty() ? 1.0f : scale[U(j)]) * (token.empty() ? 1.0f : token[U(r)]);
    });
    return {};
  }
  Tensor plain = w;
  std::optional<simd::Scratch<float>> memory;
  if (w.dtype == DType::i8) {
    memory.emplace(k * n);
    plain = MakeContiguous(memory->data(), DType::f32, w.Shape());
    simd::Copy(w, plain, c.parallel);
    const std::vector<float> scale = RowOfGroup(c, extras.weight_scale, e, n), offset = RowOfGroup(c, extras.weight_offset, e, n);
    c.parallel.For(k, Grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * n; i < end * n; ++i)
        (*memory)[i] = ((*memory)[i] + (offset.empty() ? 0.0f : offset[U(i % n)])) * (scale.empty() ? 1.0f : scale[U(i % n)]);
    });
  }
  ProductTerms terms;
  if (bias != nullptr) terms.self = bias, terms.beta = 1;
  NPU_TRY(RunProduct(c, in, plain, result, terms));
  finish([&](int64_t r, int64_t j) { return rows[r * n + j]; });
  return {};
}

// `ends`: rows of each group counted from the start.
Status RunGroups(const Call& c, std::span<const Tensor> x, std::span<const Tensor> weight, std::span<const Tensor> bias,
                 std::span<const Tensor> y, std::span<const int64_t> ends, const Extras& extras = {}) {
  const int64_t experts = Experts(weight);
  const bool single_x = x.size() == 1 && experts > 1, single_y = y.size() == 1 && experts > 1;
  int64_t x_row = 0, y_row = 0;
  for (int64_t e = 0; e < experts; ++e) {
    Tensor in = x[single_x ? 0 : U(e)], out = y[single_y ? 0 : U(e)];
    int64_t rows = in.shape[0];
    if (U(e) < ends.size()) rows = ends[U(e)] - (e == 0 ? 0 : ends[U(e - 1)]);
    if (single_x || single_y) {
      if (rows < 0 || (single_x && rows > in.shape[0] - x_row) || (single_y && rows > out.shape[0] - y_row)) {
        return Error(Code::kTaskException, "{}: group {} has {} rows from row {}.", c.op.name, e, rows, x_row)
            .Remedy("groupList divides the rows of x.");
      }
      if (single_x) in = Rows(in, x_row, x_row + rows);
      if (single_y) out = Rows(out, y_row, y_row + rows);
    }
    x_row += rows, y_row += rows;
    if (out.Numel() == 0) continue;
    const int64_t given = in.Numel() / std::max<int64_t>(1, SizeAt(in, 0)), made = out.Numel() / SizeAt(out, 0);
    if (SizeAt(in, 0) > 0 && given != made) {
      return Error(Code::kTaskException, "{}: group {} has {} rows and a result of {}.", c.op.name, e, given, made)
          .Remedy("A result has the rows of its group.");
    }
    ProductTerms terms;
    Tensor addend;
    if (!bias.empty()) {
      addend = bias.size() == 1 && experts > 1 ? bias[0] : bias[U(e)];
      if (bias.size() == 1 && experts > 1) addend = Rows(addend, e, e + 1);
      terms.self = &addend, terms.beta = 1;
    }
    const Tensor w = WeightOf(weight, e);
    if (extras.activation != 0 || w.dtype == DType::i8) {
      NPU_TRY(RunGroup(c, extras, e, x_row - rows, in, w, terms.self, out));
      continue;
    }
    NPU_TRY(RunProduct(c, in, w, out, terms));
  }
  return {};
}

// Groups along the inner size: y[e] = x[:, its columns] @ weight[its rows].
Status RunInnerGroups(const Call& c, const Tensor& x, const Tensor& weight, std::span<const Tensor> y, std::span<const int64_t> ends, bool adds) {
  int64_t begin = 0;
  for (size_t e = 0; e < ends.size(); ++e) {
    const int64_t end = ends[e];
    if (end < begin || end > x.shape[1])
      return Error(Code::kTaskException, "{}: group {} ends at {} of {} inner elements.", c.op.name, e, end, x.shape[1])
          .Remedy("groupList divides the inner size.");
    Tensor a = x;
    a.data = simd::At(x.data, x.dtype, begin * x.strides[1]);
    a.shape[1] = end - begin;
    const Tensor out = y.size() == 1 && y[0].rank == 3 ? Expert(y[0], static_cast<int64_t>(e)) : y[e];
    ProductTerms terms;
    if (adds) terms.self = &out, terms.beta = 1;
    NPU_TRY(RunProduct(c, a, Rows(weight, begin, end), out, terms));
    begin = end;
  }
  return {};
}

Status WantInnerGroups(const Planning& p, const Tensor& x, const Tensor& weight, std::span<const Tensor> y, const Tensor* list) {
  if (list == nullptr || list->rank != 1) return p.Refuse("groupList is not a vector.").Remedy("It has the end of each group.");
  const int64_t groups = list->shape[0];
  bool fits = x.rank == 2 && weight.rank == 2 && x.shape[1] == weight.shape[0] && IsFloat(x.dtype) && IsFloat(weight.dtype);
  fits = fits && (y.size() == 1 && y[0].rank == 3 ? y[0].shape[0] == groups : static_cast<int64_t>(y.size()) == groups);
  for (const Tensor& t : y) fits = fits && t.rank == (y.size() == 1 && y[0].rank == 3 ? 3 : 2) && t.dtype != DType::none && IsFloat(t.dtype) && SizeAt(t, 1) == x.shape[0] && SizeAt(t, 0) == weight.shape[1];
  if (fits) return {};
  return p.Refuse("x of shape {} and weight of shape {} are multiplied in {} groups of the inner size.", ShapeText(x.Shape()), ShapeText(weight.Shape()), groups)
      .Remedy("x is [m, k], weight [k, n], both of floats, and the result [groups, m, n].");
}

// Lists that are not applied: all but those named.
Status RefuseLists(const Planning& p, std::initializer_list<std::string_view> applied) {
  for (size_t i = 0; i < p.op.params.size(); ++i) {
    const auto& param = p.op.params[i];
    if (param.kind != Kind::tensor_list || param.role != Role::in || std::find(applied.begin(), applied.end(), param.name) != applied.end()) continue;
    for (const Tensor& t : p.args.Many<Tensor>(Token{static_cast<uint8_t>(i)}))
      if (t.dtype != DType::none && t.Numel() > 0)
        return NotYet(p.op.name, fmt::format("products with {} are not computed yet.", param.name));
  }
  return {};
}

bool Given(std::span<const Tensor> list) { return !list.empty() && list[0].dtype != DType::none && list[0].Numel() > 0; }

// int8 times int8, floats times int8 with scales, or floats alone.
Status CheckTypes(const Planning& p, std::span<const Tensor> x, std::span<const Tensor> weight, const Extras& extras, std::span<const Tensor> y) {
  const bool bytes = x[0].dtype == DType::i8, kept = weight[0].dtype == DType::i8;
  const int64_t columns = SizeAt(weight[0], 0), experts = Experts(weight);
  bool alike = true;  // columns
  for (const auto list : {x, weight, y})
    for (const Tensor& t : list)
      if (t.dtype != list[0].dtype)
        return NotYet(p.op.name, fmt::format("lists of several types ({} and {}) are not computed", Name(list[0].dtype), Name(t.dtype)));
  for (const Tensor& t : weight) alike = alike && SizeAt(t, 0) == columns;
  if ((bytes && !kept) || (!kept && !IsFloat(weight[0].dtype)))
    return NotYet(p.op.name, fmt::format("products of {} and {} are not computed", Name(x[0].dtype), Name(weight[0].dtype)));
  if (y[0].dtype == DType::i32 && !bytes) return p.Refuse("the result of floats is int32.").Remedy("Ask for a float type.");
  if (bytes && y[0].dtype != DType::i32 && !Given(extras.scale)) return p.Refuse("int8 products to {} have no scale.", Name(y[0].dtype)).Remedy("Pass scaleOptional.");
  if (!bytes && kept && !Given(extras.weight_scale)) return p.Refuse("weights in int8 have no antiquantScaleOptional.").Remedy("Pass it.");
  for (const auto list : {extras.scale, extras.weight_scale, extras.weight_offset}) {
    if (!Given(list)) continue;
    for (const Tensor& t : list)
      if (!IsFloat(t.dtype)) return NotYet(p.op.name, fmt::format("scales of type {} are not applied", Name(t.dtype)));
    const int64_t have = list[0].Numel();
    bool fits = have == 1 || (alike && (have == columns || have == columns * experts));
    if (list.size() > 1) {
      fits = static_cast<int64_t>(list.size()) == experts;
      for (size_t e = 0; fits && e < list.size(); ++e)
        fits = list[e].Numel() == 1 || list[e].Numel() == SizeAt(weight[weight.size() == 1 ? 0 : e], 0);
    }
    if (!fits)
      return NotYet(p.op.name, fmt::format("scales of shape {} are not applied; one value for each group and column is", ShapeText(list[0].Shape())));
  }
  if (Given(extras.per_token)) {
    const auto rows_of = [](const Tensor& t) { return t.Numel() / std::max<int64_t>(1, SizeAt(t, 0)); };
    const int64_t rows = rows_of(x[0]);
    bool fits = bytes && extras.per_token.size() == x.size();
    for (size_t i = 0; fits && i < x.size(); ++i) fits = extras.per_token[i].Numel() == rows_of(x[i]);
    if (!fits)
      return p.Refuse("perTokenScaleOptional has shape {} for {} rows of {}.", ShapeText(extras.per_token[0].Shape()), rows, Name(x[0].dtype))
          .Remedy("There is one for each row of an int8 x.");
  }
  if (extras.activation < 0 || extras.activation > 5)
    return p.Refuse("actType is {}.", extras.activation).Remedy("0 none, 1 relu, 2 gelu (tanh), 3 gelu (erf), 4 fast gelu, 5 silu.");
  return {};
}

template <class A>
Extras ExtrasOf(const Args& a) {
  return {a[A::scaleOptional], a[A::perTokenScaleOptional], a[A::antiquantScaleOptional], a[A::antiquantOffsetOptional], a[A::actType]};
}

std::vector<int64_t> EndsOf(const Call& c, const Tensor* list, bool counts) {
  std::vector<int64_t> ends;
  if (list == nullptr) return ends;
  const Values<int64_t> given(*list, c.parallel);
  for (int64_t i = 0; i < given.size(); ++i) ends.push_back(given[i] + (counts && i > 0 ? ends.back() : 0));
  return ends;
}

std::span<const Tensor> Bias(std::span<const Tensor> list) {
  return list.size() == 1 && (list[0].dtype == DType::none || list[0].Numel() == 0) ? std::span<const Tensor>() : list;
}

template <class A>
consteval Builder Newer() {
  Builder b = Op<A>().Rules(AnyShape(A::out), AnyDtype(A::out), AnyShape(A::activationFeatureOutOptional),
                            AnyDtype(A::activationFeatureOutOptional), AnyShape(A::dynQuantScaleOutOptional),
                            AnyDtype(A::dynQuantScaleOutOptional));
  for (uint8_t i = 0; i < std::size(A::kParams); ++i) b = b.Uses(Token{i});
  return b.Tolerance("accumulated")
      .Like("[a @ b for a, b in zip(x, weight)]")
      .Prepares([](Planning& p) -> Status {
        const bool inner = p.args[A::groupType] == 2;
        if (inner) NPU_TRY(RefuseLists(p, {"x", "weight"}));
        NPU_TRY(RefuseLists(p, {"x", "weight", "biasOptional", "scaleOptional", "perTokenScaleOptional", "antiquantScaleOptional", "antiquantOffsetOptional"}));
        if (p.args[A::groupListType] != 0 && p.args[A::groupListType] != 1)
          return NotYet(p.op.name, fmt::format("groupListType {} is not read; 0 (ends) and 1 (counts) are", p.args[A::groupListType]));
        if (inner) {
          if (p.args[A::actType] != 0 || p.args[A::x].size() != 1 || p.args[A::weight].size() != 1)
            return NotYet(p.op.name, "groups along the inner size take one x, one weight and no activation");
          return WantInnerGroups(p, p.args[A::x][0], p.args[A::weight][0], p.args[A::out], p.args[A::groupListOptional]);
        }
        if (p.args[A::x].empty() || p.args[A::weight].empty() || p.args[A::out].empty())
          return p.Refuse("x, weight or out is an empty list.").Remedy("Pass at least one of each.");
        NPU_TRY(CheckTypes(p, p.args[A::x], p.args[A::weight], ExtrasOf<A>(p.args), p.args[A::out]));
        return CheckLists(p, p.args[A::x], p.args[A::weight], Bias(p.args[A::biasOptional]), p.args[A::out],
                          p.args[A::groupListOptional] != nullptr);
      })
      .Does([](const Call& c) -> Status {
        const std::vector<int64_t> ends = EndsOf(c, c.args[A::groupListOptional], c.args[A::groupListType] == 1);
        if (c.args[A::groupType] == 2) return RunInnerGroups(c, c.args[A::x][0], c.args[A::weight][0], c.args[A::out], ends, false);
        return RunGroups(c, c.args[A::x], c.args[A::weight], Bias(c.args[A::biasOptional]), c.args[A::out], ends, ExtrasOf<A>(c.args));
      });
}

}  // namespace

NPU_OP(GroupedMatmul) = Op<GroupedMatmul>()
                            .Rules(AnyShape(GroupedMatmul::y), AnyDtype(GroupedMatmul::y))
                            .Uses(GroupedMatmul::x, GroupedMatmul::weight, GroupedMatmul::biasOptional,
                                  GroupedMatmul::scaleOptional, GroupedMatmul::offsetOptional,
                                  GroupedMatmul::antiquantScaleOptional, GroupedMatmul::antiquantOffsetOptional,
                                  GroupedMatmul::groupListOptional, GroupedMatmul::splitItem)
                            .Tolerance("accumulated")
                            .Like("[a @ b for a, b in zip(x, weight)]")
                            .Prepares([](Planning& p) -> Status {
                              using A = GroupedMatmul;
                              NPU_TRY(RefuseLists(p, {"x", "weight", "biasOptional"}));
                              NPU_TRY(CheckLists(p, p.args[A::x], p.args[A::weight], Bias(p.args[A::biasOptional]),
                                                 p.args[A::y], !p.args[A::groupListOptional].empty()));
                              return CheckTypes(p, p.args[A::x], p.args[A::weight], {}, p.args[A::y]);
                            })
                            .Does([](const Call& c) {
                              using A = GroupedMatmul;
                              return RunGroups(c, c.args[A::x], c.args[A::weight], Bias(c.args[A::biasOptional]),
                                               c.args[A::y], c.args[A::groupListOptional]);
                            });
NPU_OP(GroupedMatmulV4) = Newer<GroupedMatmulV4>();
NPU_OP(GroupedMatmulV5) = Newer<GroupedMatmulV5>();
// y += x's columns of each group times weight's rows: the gradient of grouped weights.
NPU_OP(GroupedMatmulAdd) = Op<GroupedMatmulAdd>()
                               .Rules(FloatTensors(GroupedMatmulAdd::x, GroupedMatmulAdd::weight, GroupedMatmulAdd::yRef), RankIs(GroupedMatmulAdd::x, 2),
                                      RankIs(GroupedMatmulAdd::weight, 2), DtypeIn(GroupedMatmulAdd::groupList, kIndexTypes))
                               .Uses(GroupedMatmulAdd::transposeX, GroupedMatmulAdd::transposeWeight, GroupedMatmulAdd::groupType)
                               .Tolerance("accumulated")
                               .Like("grouped_matmul_add(x, weight, groupList, yRef)")
                               .Prepares([](Planning& p) -> Status {
                                 using A = GroupedMatmulAdd;
                                 if (p.args[A::groupType] != 2 || p.args[A::transposeWeight])
                                   return NotYet(p.op.name, "groups along the inner size (groupType 2) of a plain weight are computed, no others");
                                 Tensor x = p.args[A::x], y = p.args[A::yRef];
                                 if (p.args[A::transposeX]) std::swap(x.shape[0], x.shape[1]);
                                 const Tensor& list = p.args[A::groupList];
                                 if (y.rank == 2) {  // [groups · m, n]
                                   if (list.rank != 1 || list.shape[0] == 0 || y.shape[0] != list.shape[0] * x.shape[0])
                                     return p.Refuse("yRef has shape {} for {} groups of {} rows.", ShapeText(y.Shape()), list.Numel(), x.shape[0])
                                         .Remedy("It is [groups, m, n], or [groups * m, n].");
                                   y = MakeContiguous(y.data, y.dtype, std::array<int64_t, 3>{list.shape[0], x.shape[0], y.shape[1]});
                                 }
                                 return WantInnerGroups(p, x, p.args[A::weight], {&y, 1}, &list);
                               })
                               .Does([](const Call& c) -> Status {
                                 using A = GroupedMatmulAdd;
                                 Tensor x = c.args[A::x], y = c.args[A::yRef];
                                 if (c.args[A::transposeX]) std::swap(x.shape[0], x.shape[1]), std::swap(x.strides[0], x.strides[1]);
                                 const std::vector<int64_t> ends = EndsOf(c, &c.args[A::groupList], false);
                                 if (y.rank == 2) {
                                   Tensor groups = y;
                                   groups.rank = 3;
                                   groups.shape = {static_cast<int64_t>(ends.size()), x.shape[0], y.shape[1]};
                                   groups.strides = {x.shape[0] * y.strides[0], y.strides[0], y.strides[1]};
                                   y = groups;
                                 }
                                 return RunInnerGroups(c, x, c.args[A::weight], {&y, 1}, ends, true);
                               });

}  // namespace npu::ops
