// Distances between rows and their gradients, and the margin losses of labels. Plain loops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

template <class T>
T Distance(const T* a, const T* b, int64_t n, double p) {
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) {
    const double d = std::abs(static_cast<double>(a[k]) - static_cast<double>(b[k]));
    if (p == 0)
      sum += d != 0 ? 1 : 0;
    else if (p == 1)
      sum += d;
    else if (p == 2)
      sum += d * d;
    else if (std::isinf(p))
      sum = std::isnan(d) || d > sum ? d : sum;
    else
      sum += std::pow(d, p);
  }
  if (p == 0 || p == 1 || std::isinf(p)) return static_cast<T>(sum);
  return static_cast<T>(p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p));
}

struct CdistGrad {
  static constexpr std::string_view kName = "CdistGrad";
  static constexpr Param kParams[] = {{"grad", Kind::tensor, Role::in, false},  {"x1", Kind::tensor, Role::in, false}, {"x2", Kind::tensor, Role::in, false},
                                      {"cdist", Kind::tensor, Role::in, false}, {"p", Kind::real64, Role::in, false},  {"out", Kind::tensor, Role::out, false}};
  static constexpr TensorIn grad{0}, x1{1}, x2{2}, cdist{3};
  static constexpr RealIn p{4};
  static constexpr TensorOut out{5};
};

// How the distance changes with a − b.
double Slope(double d, double distance, double p) {
  if (p == 0 || distance == 0) return 0;
  const double sign = d > 0 ? 1 : d < 0 ? -1 : 0;
  if (p == 1) return sign;
  if (p == 2) return d / distance;
  if (std::isinf(p)) return std::abs(d) == distance ? sign : 0;
  if (d == 0) return 0;
  return sign * std::pow(std::abs(d), p - 1) / std::pow(distance, p - 1);
}

// Batches of x1 and x2 broadcast; the last dimensions are rows and features.
Status WantPairs(const Planning& p, const Tensor& a, const Tensor& b, Dims* distances) {
  *distances = {a.rank - 2, a.shape};
  int bad = 0;
  if (a.rank < 2 || b.rank < 2 || SizeAt(a, 0) != SizeAt(b, 0) ||
      !BroadcastInto(distances, b.Shape().first(U(b.rank - 2)), &bad)) {
    return p.Refuse("x1 has shape {} and x2 {}.", ShapeText(a.Shape()), ShapeText(b.Shape()))
        .Remedy("They have rows of one length, in batches that broadcast.");
  }
  distances->Push(SizeAt(a, 1));
  distances->Push(SizeAt(b, 1));
  return {};
}

Tensor Batched(const Tensor& t, const Dims& distances) {
  Dims want = distances;
  want.size[U(want.rank - 2)] = SizeAt(t, 1);
  want.size[U(want.rank - 1)] = SizeAt(t, 0);
  return Expanded(t, want.Span());
}

}  // namespace

extern const OpDef op_named_CdistGrad;

using abi::Cdist, abi::CdistBackward, abi::Pdist;
NPU_OP(Cdist) = Op<Cdist>()
                    .Rules(FloatTensors(Cdist::x1, Cdist::x2, Cdist::out), AnyShape(Cdist::out))
                    .Uses(Cdist::p, Cdist::compute_mode)
                    .Tolerance("accumulated")
                    .Like("torch.cdist(x1, x2, p)")
                    .Prepares([](Planning& p) -> Status {
                      Dims want;
                      if (!(p.args[Cdist::p] >= 0))
                        return p.Refuse("p is {}.", p.args[Cdist::p]).Remedy("It is not negative.");
                      NPU_TRY(WantPairs(p, p.args[Cdist::x1], p.args[Cdist::x2], &want));
                      return WantShape(p, Cdist::out, want, "there is one distance for each pair of rows");
                    })
                    .Does([](const Call& c) -> Status {
                      const Dims shape = DimsOf(c.args[Cdist::out]);
                      const double power = c.args[Cdist::p];
                      return WithFloat(c.args[Cdist::x1].dtype, [&]<class T>() -> Status {
                        const Values<T> a(Batched(c.args[Cdist::x1], shape), c.parallel),
                            b(Batched(c.args[Cdist::x2], shape), c.parallel);
                        Results<T> out(c.args[Cdist::out], c.parallel);
                        const int64_t rows = shape.size[U(shape.rank - 2)], others = shape.size[U(shape.rank - 1)],
                                      n = SizeAt(c.args[Cdist::x1], 0);
                        c.parallel.For(out.size() / std::max<int64_t>(1, others), Grain(others * n),
                                       [&](int64_t begin, int64_t end) {
                                         for (int64_t r = begin; r < end; ++r)
                                           for (int64_t k = 0; k < others; ++k)
                                             out[r * others + k] = Distance(
                                                 a.data() + r * n, b.data() + (r / rows * others + k) * n, n, power);
                                       });
                        return {};
                      });
                    });
NPU_OP(CdistBackward) = Op<CdistBackward>()
                            .Rules(FloatTensors(CdistBackward::grad, CdistBackward::x1, CdistBackward::x2,
                                                CdistBackward::cdist, CdistBackward::out),
                                   AnyShape(CdistBackward::out), SameShape(CdistBackward::grad, CdistBackward::cdist))
                            .Uses(CdistBackward::p)
                            .Tolerance("accumulated")
                            .Like("torch.ops.aten._cdist_backward(grad, x1, x2, p, cdist)")
                            .Prepares([](Planning& p) -> Status {
                              using B = CdistBackward;
                              Dims want;
                              NPU_TRY(WantPairs(p, p.args[B::x1], p.args[B::x2], &want));
                              NPU_TRY(WantShape(p, B::grad, want, "there is one distance for each pair of rows"));
                              want.size[U(want.rank - 1)] = SizeAt(p.args[B::x1], 0);
                              return WantShape(p, B::out, want, "it is the gradient of x1 in all batches");
                            })
                            .Does([](const Call& c) -> Status {
                              using B = CdistBackward;
                              const Dims shape = DimsOf(c.args[B::grad]);
                              const double power = c.args[B::p];
                              return WithFloat(c.args[B::x1].dtype, [&]<class T>() -> Status {
                                const Values<T> a(Batched(c.args[B::x1], shape), c.parallel),
                                    b(Batched(c.args[B::x2], shape), c.parallel), grad(c.args[B::grad], c.parallel),
                                    distance(c.args[B::cdist], c.parallel);
                                Results<T> out(c.args[B::out], c.parallel);
                                const int64_t rows = shape.size[U(shape.rank - 2)],
                                              others = shape.size[U(shape.rank - 1)], n = SizeAt(c.args[B::x1], 0);
                                c.parallel.For(
                                    n == 0 ? 0 : out.size() / n, Grain(others * n), [&](int64_t begin, int64_t end) {
                                      for (int64_t r = begin; r < end; ++r) {
                                        for (int64_t f = 0; f < n; ++f) {
                                          double sum = 0;
                                          for (int64_t k = 0; k < others; ++k) {
                                            const double d = static_cast<double>(a[r * n + f]) -
                                                             static_cast<double>(b[(r / rows * others + k) * n + f]);
                                            sum += static_cast<double>(grad[r * others + k]) *
                                                   Slope(d, static_cast<double>(distance[r * others + k]), power);
                                          }
                                          out[r * n + f] = static_cast<T>(sum);
                                        }
                                      }
                                    });
                                return {};
                              });
                            });
// By type name: everything broadcast to [.., rows, others, features]; the result may be summed over the others.
constinit const OpDef op_named_CdistGrad =
    Op<CdistGrad>()
        .Rules(FloatTensors(CdistGrad::grad, CdistGrad::x1, CdistGrad::x2, CdistGrad::cdist, CdistGrad::out), SameShape(CdistGrad::grad, CdistGrad::x1),
               SameShape(CdistGrad::grad, CdistGrad::x2), SameShape(CdistGrad::grad, CdistGrad::cdist), AnyShape(CdistGrad::out))
        .Uses(CdistGrad::p)
        .Tolerance("accumulated")
        .Like("cdist_grad(grad, x1, x2, cdist, p)")
        .Prepares([](Planning& p) -> Status {
          const Tensor &grad = p.args[CdistGrad::grad], &out = p.args[CdistGrad::out];
          if (npu::SameShape(grad.Shape(), out.Shape())) return {};
          if (grad.rank < 2) return p.Refuse("grad has shape {}.", ShapeText(grad.Shape())).Remedy("It has rows, others and features.");
          Dims want = {grad.rank - 1, grad.shape};
          want.size[U(grad.rank - 2)] = SizeAt(grad, 0);
          return WantShape(p, CdistGrad::out, want, "it is summed over the second rows");
        })
        .Does([](const Call& c) -> Status {
          const double power = c.args[CdistGrad::p];
          const Tensor& to = c.args[CdistGrad::out];
          return WithFloat(c.args[CdistGrad::x1].dtype, [&]<class T>() -> Status {
            const Values<T> a(c.args[CdistGrad::x1], c.parallel), b(c.args[CdistGrad::x2], c.parallel), grad(c.args[CdistGrad::grad], c.parallel),
                distance(c.args[CdistGrad::cdist], c.parallel);
            Results<T> out(to, c.parallel);
            const int64_t n = SizeAt(to, 0), others = out.size() == 0 ? 0 : a.size() / out.size();
            for (int64_t i = 0; i < out.size(); ++i) {
              double sum = 0;
              for (int64_t k = 0; k < others; ++k) {
                const int64_t at = (i / n * others + k) * n + i % n;
                sum += static_cast<double>(grad[at]) * Slope(static_cast<double>(a[at]) - static_cast<double>(b[at]), static_cast<double>(distance[at]), power);
              }
              out[i] = static_cast<T>(sum);
            }
            return {};
          });
        });
NPU_OP(Pdist) =
    Op<Pdist>()
        .Rules(FloatTensors(Pdist::self, Pdist::out), RankIs(Pdist::self, 2), AnyShape(Pdist::out))
        .Uses(Pdist::p)
        .Tolerance("accumulated")
        .Like("torch.pdist(self, p)")
        .Prepares([](Planning& p) -> Status {
          const int64_t rows = p.args[Pdist::self].shape[0];
          if (!(p.args[Pdist::p] >= 0)) return p.Refuse("p is {}.", p.args[Pdist::p]).Remedy("It is not negative.");
          return WantShape(p, Pdist::out, {1, {rows * (rows - 1) / 2}}, "there is one distance for each pair of rows");
        })
        .Does([](const Call& c) -> Status {
          return WithFloat(c.args[Pdist::self].dtype, [&]<class T>() -> Status {
            const Values<T> x(c.args[Pdist::self], c.parallel);
            Results<T> out(c.args[Pdist::out], c.parallel);
            const int64_t rows = c.args[Pdist::self].shape[0], n = c.args[Pdist::self].shape[1];
            int64_t at = 0;
            for (int64_t i = 0; i < rows; ++i)
              for (int64_t j = i + 1; j < rows; ++j)
                out[at++] = Distance(x.data() + i * n, x.data() + j * n, n, c.args[Pdist::p]);
            return {};
          });
        });

namespace {

Status WantReduced(const Planning& p, const Dims& each, int64_t reduction, TensorToken out) {
  if (reduction < 0 || reduction > 2)
    return p.Refuse("reduction is {}.", reduction).Remedy("Use 0 none, 1 mean or 2 sum.");
  if (reduction == 0) return WantShape(p, out, each, "it holds one loss for each");
  if (p.args.Maybe(out)->Numel() == 1) return {};
  return WantShape(p, out, Dims{}, "the reduced loss is one number");
}

template <class T>
void Reduce(const std::vector<double>& losses, int64_t reduction, Results<T>* out) {
  if (reduction == 0) {
    for (size_t i = 0; i < losses.size(); ++i) (*out)[static_cast<int64_t>(i)] = static_cast<T>(losses[i]);
    return;
  }
  double sum = 0;
  for (double l : losses) sum += l;
  (*out)[0] = static_cast<T>(reduction == 1 ? sum / static_cast<double>(losses.size()) : sum);
}

}  // namespace

using abi::SoftMarginLoss, abi::SoftMarginLossBackward, abi::MultilabelMarginLoss;
NPU_OP(SoftMarginLoss) = Op<SoftMarginLoss>()
                             .Rules(FloatTensors(SoftMarginLoss::self, SoftMarginLoss::target, SoftMarginLoss::out),
                                    AnyShape(SoftMarginLoss::out))
                             .Uses(SoftMarginLoss::reduction)
                             .Tolerance("accumulated")
                             .Like("torch.ops.aten.soft_margin_loss(self, target, reduction)")
                             .Prepares([](Planning& p) -> Status {
                               using A = SoftMarginLoss;
                               Dims each = DimsOf(p.args[A::self]);
                               int bad = 0;
                               if (!BroadcastInto(&each, p.args[A::target].Shape(), &bad)) {
                                 return p
                                     .Refuse("self has shape {} and target {}.", ShapeText(p.args[A::self].Shape()),
                                             ShapeText(p.args[A::target].Shape()))
                                     .Remedy("Sizes must be equal or 1.");
                               }
                               return WantReduced(p, each, p.args[A::reduction], A::out);
                             })
                             .Does([](const Call& c) -> Status {
                               using A = SoftMarginLoss;
                               return WithFloat(c.args[A::self].dtype, [&]<class T>() -> Status {
                                 Dims each = DimsOf(c.args[A::self]);
                                 int bad = 0;
                                 BroadcastInto(&each, c.args[A::target].Shape(), &bad);
                                 const Values<T> x(Expanded(c.args[A::self], each.Span()), c.parallel),
                                     y(Expanded(c.args[A::target], each.Span()), c.parallel);
                                 Results<T> out(c.args[A::out], c.parallel);
                                 std::vector<double> losses(U(x.size()));
                                 for (int64_t i = 0; i < x.size(); ++i)
                                   losses[U(i)] =
                                       std::log1p(std::exp(-static_cast<double>(x[i]) * static_cast<double>(y[i])));
                                 Reduce(losses, c.args[A::reduction], &out);
                                 return {};
                               });
                             });
NPU_OP(SoftMarginLossBackward) =
    Op<SoftMarginLossBackward>()
        .Rules(FloatTensors(SoftMarginLossBackward::gradOutput, SoftMarginLossBackward::self,
                            SoftMarginLossBackward::target, SoftMarginLossBackward::out),
               AnyShape(SoftMarginLossBackward::out),
               ExpandsTo(SoftMarginLossBackward::gradOutput, SoftMarginLossBackward::out),
               ExpandsTo(SoftMarginLossBackward::self, SoftMarginLossBackward::out),
               ExpandsTo(SoftMarginLossBackward::target, SoftMarginLossBackward::out))
        .Uses(SoftMarginLossBackward::reduction)
        .Tolerance("accumulated")
        .Like("torch.ops.aten.soft_margin_loss_backward(gradOutput, self, target, reduction)")
        .Does([](const Call& c) -> Status {
          using B = SoftMarginLossBackward;
          const auto shape = c.args[B::out].Shape();
          return WithFloat(c.args[B::self].dtype, [&]<class T>() -> Status {
            const Values<T> x(Expanded(c.args[B::self], shape), c.parallel),
                y(Expanded(c.args[B::target], shape), c.parallel),
                dy(Expanded(c.args[B::gradOutput], shape), c.parallel);
            Results<T> out(c.args[B::out], c.parallel);
            const double share = c.args[B::reduction] == 1 ? 1.0 / static_cast<double>(x.size()) : 1.0;
            for (int64_t i = 0; i < x.size(); ++i) {
              const double t = static_cast<double>(y[i]), falling = 1 / (1 + std::exp(static_cast<double>(x[i]) * t));
              out[i] = static_cast<T>(-t * falling * share * static_cast<double>(dy[i]));
            }
            return {};
          });
        });
NPU_OP(MultilabelMarginLoss) =
    Op<MultilabelMarginLoss>()
        .Rules(FloatTensors(MultilabelMarginLoss::self, MultilabelMarginLoss::out),
               SameShape(MultilabelMarginLoss::self, MultilabelMarginLoss::target),
               SameShape(MultilabelMarginLoss::self, MultilabelMarginLoss::isTarget),
               DtypeIn(MultilabelMarginLoss::target, kInts), AnyShape(MultilabelMarginLoss::out),
               DtypeIn(MultilabelMarginLoss::isTarget, kNumbers))
        .Uses(MultilabelMarginLoss::reduction)
        .Tolerance("accumulated")
        .Like("torch.ops.aten.multilabel_margin_loss_forward(self, target, reduction)")
        .Prepares([](Planning& p) -> Status {
          const Tensor& x = p.args[MultilabelMarginLoss::self];
          if (x.rank > 2)
            return p.Refuse("self has {} dimensions.", x.rank).Remedy("Pass [batch, classes] or [classes].");
          Dims each;
          if (x.rank == 2) each.Push(x.shape[0]);
          return WantReduced(p, each, p.args[MultilabelMarginLoss::reduction], MultilabelMarginLoss::out);
        })
        .Does([](const Call& c) -> Status {
          using A = MultilabelMarginLoss;
          const Tensor& self = c.args[A::self];
          const int64_t classes = SizeAt(self, 0), batch = self.rank == 2 ? self.shape[0] : 1;
          const Values<int64_t> target(c.args[A::target], c.parallel);
          return WithFloat(self.dtype, [&]<class T>() -> Status {
            const Values<T> x(self, c.parallel);
            Results<T> out(c.args[A::out], c.parallel);
            Results<float> named(c.args[A::isTarget], c.parallel);
            std::fill(named.data(), named.data() + named.size(), 0.0F);
            std::vector<double> losses(U(batch));
            for (int64_t b = 0; b < batch; ++b) {
              int64_t count = 0;
              for (; count < classes && target[b * classes + count] >= 0; ++count) {
                const int64_t label = target[b * classes + count];
                if (label >= classes)
                  return IndexError(c, A::target, A::self, {label, b * classes + count, self.rank - 1, classes});
                named[b * classes + label] = 1;
              }
              double sum = 0;
              for (int64_t k = 0; k < count; ++k) {
                for (int64_t j = 0; j < classes; ++j) {
                  if (named[b * classes + j] != 0) continue;
                  sum += std::max(0.0, 1 - static_cast<double>(x[b * classes + target[b * classes + k]]) +
                                           static_cast<double>(x[b * classes + j]));
                }
              }
              losses[U(b)] = sum / static_cast<double>(std::max<int64_t>(1, classes));
            }
            Reduce(losses, c.args[A::reduction], &out);
            return {};
          });
        });

}  // namespace npu::ops
