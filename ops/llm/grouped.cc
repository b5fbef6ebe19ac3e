// Grouped matrix products without quantisation. Groups are pairs of lists, or rows of one x that a group list divides.
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"
#include "ops/linalg/product.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

using abi::GroupedMatmul, abi::GroupedMatmulV4, abi::GroupedMatmulV5;

size_t U(int64_t i) { return static_cast<size_t>(i); }

struct Group {
  Tensor x, w, y;
};

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
    if (t.dtype == DType::none || t.rank < 2 || !IsFloat(t.dtype))
      return p.Refuse("a tensor of x is {} of shape {}.", Name(t.dtype), ShapeText(t.Shape()))
          .Remedy("Pass float matrices.");
  for (const Tensor& t : y)
    if (t.dtype == DType::none || t.rank < 2 || !IsFloat(t.dtype))
      return p.Refuse("a result is {} of shape {}.", Name(t.dtype), ShapeText(t.Shape()))
          .Remedy("Pass float matrices.");
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

// `ends`: rows of each group counted from the start.
Status RunGroups(const Call& c, std::span<const Tensor> x, std::span<const Tensor> weight, std::span<const Tensor> bias,
                 std::span<const Tensor> y, std::span<const int64_t> ends) {
  const int64_t experts = Experts(weight);
  const bool single_x = x.size() == 1 && experts > 1, single_y = y.size() == 1 && experts > 1;
  int64_t x_row = 0, y_row = 0;
  for (int64_t e = 0; e < experts; ++e) {
    Tensor in = x[single_x ? 0 : U(e)], out = y[single_y ? 0 : U(e)];
    int64_t rows = in.shape[0];
    if (U(e) < ends.size()) rows = ends[U(e)] - (e == 0 ? 0 : ends[U(e - 1)]);
    if (single_x || single_y) {
      if (rows < 0 || (single_x && x_row + rows > in.shape[0]) || (single_y && y_row + rows > out.shape[0])) {
        return Error(Code::kTaskException, "{}: group {} has {} rows from row {}.", c.op.name, e, rows, x_row)
            .Remedy("groupList divides the rows of x.");
      }
      if (single_x) in = Rows(in, x_row, x_row + rows);
      if (single_y) out = Rows(out, y_row, y_row + rows);
    }
    x_row += rows, y_row += rows;
    if (out.Numel() == 0) continue;
    ProductTerms terms;
    Tensor addend;
    if (!bias.empty()) {
      addend = bias.size() == 1 && experts > 1 ? bias[0] : bias[U(e)];
      if (bias.size() == 1 && experts > 1) addend = Rows(addend, e, e + 1);
      terms.self = &addend, terms.beta = 1;
    }
    NPU_TRY(RunProduct(c, in, WeightOf(weight, e), out, terms));
  }
  return {};
}

// Lists that belong to quantised forms.
Status RefuseQuantised(const Planning& p) {
  for (size_t i = 0; i < p.op.params.size(); ++i) {
    const auto& param = p.op.params[i];
    if (param.kind != Kind::tensor_list || param.role != Role::in || param.name == "x" || param.name == "weight" ||
        param.name == "biasOptional")
      continue;
    for (const Tensor& t : p.args.Many<Tensor>(Token{static_cast<uint8_t>(i)}))
      if (t.dtype != DType::none && t.Numel() > 0)
        return NotYet(p.op.name, fmt::format("products with {} are not computed yet.", param.name));
  }
  return {};
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
        NPU_TRY(RefuseQuantised(p));
        if (p.args[A::actType] != 0) return NotYet(p.op.name, "an activation behind the product is not computed yet.");
        if (p.args[A::groupType] == 2) return NotYet(p.op.name, "groups along the inner size are not computed yet.");
        return CheckLists(p, p.args[A::x], p.args[A::weight], Bias(p.args[A::biasOptional]), p.args[A::out],
                          p.args[A::groupListOptional] != nullptr);
      })
      .Does([](const Call& c) -> Status {
        std::vector<int64_t> ends;
        if (const Tensor* list = c.args[A::groupListOptional]; list != nullptr) {
          const Values<int64_t> given(*list, c.parallel);
          for (int64_t i = 0; i < given.size(); ++i)
            ends.push_back(given[i] + (c.args[A::groupListType] == 1 && i > 0 ? ends.back() : 0));
        }
        return RunGroups(c, c.args[A::x], c.args[A::weight], Bias(c.args[A::biasOptional]), c.args[A::out], ends);
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
                              NPU_TRY(RefuseQuantised(p));
                              return CheckLists(p, p.args[A::x], p.args[A::weight], Bias(p.args[A::biasOptional]),
                                                p.args[A::y], !p.args[A::groupListOptional].empty());
                            })
                            .Does([](const Call& c) {
                              using A = GroupedMatmul;
                              return RunGroups(c, c.args[A::x], c.args[A::weight], Bias(c.args[A::biasOptional]),
                                               c.args[A::y], c.args[A::groupListOptional]);
                            });
NPU_OP(GroupedMatmulV4) = Newer<GroupedMatmulV4>();
NPU_OP(GroupedMatmulV5) = Newer<GroupedMatmulV5>();

}  // namespace npu::ops
