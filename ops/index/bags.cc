// Embedding bags, and rows held below a norm. Plain loops.
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

// Norm of n elements `step` apart.
template <class T>
double NormOf(const T* x, int64_t n, int64_t step, double p) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double v = std::abs(static_cast<double>(x[i * step]));
    if (std::isinf(p))
      sum = std::max(sum, v);
    else if (p == 0)
      sum += v != 0 ? 1 : 0;
    else if (p == 2)
      sum += v * v;
    else
      sum += p == 1 ? v : std::pow(v, p);
  }
  if (std::isinf(p) || p == 0 || p == 1) return sum;
  return p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
}

Status RenormSlices(const Call& c, const Tensor& self, double p, int64_t dim, double limit, const Tensor& out) {
  const int d = WrapDim(dim, self.rank);
  return WithFloat(self.dtype, [&]<class T>() -> Status {
    const Values<T> x(self, c.parallel);
    Results<T> y(out, c.parallel);
    int64_t inner = 1;
    for (int k = d + 1; k < self.rank; ++k) inner *= self.shape[U(k)];
    const int64_t slices = self.shape[U(d)], outer = slices == 0 ? 0 : x.size() / (slices * inner);
    c.parallel.For(slices, Grain(outer * inner), [&](int64_t begin, int64_t end) {
      std::vector<T> slice(U(outer * inner));
      for (int64_t s = begin; s < end; ++s) {
        for (int64_t o = 0; o < outer; ++o)
          std::copy(x.data() + (o * slices + s) * inner, x.data() + (o * slices + s + 1) * inner,
                    slice.data() + o * inner);
        const double norm = NormOf(slice.data(), outer * inner, 1, p);
        const T factor = norm > limit ? static_cast<T>(limit / (norm + 1e-7)) : T{1};
        for (int64_t o = 0; o < outer; ++o)
          for (int64_t i = 0; i < inner; ++i) y[(o * slices + s) * inner + i] = slice[U(o * inner + i)] * factor;
      }
    });
    return {};
  });
}

Status CheckRenorm(const Planning& plan, const Tensor& self, double p, double limit) {
  if (self.rank >= 2 && p > 0 && limit >= 0) return {};
  return plan.Refuse("self has {} dimensions, p is {} and maxNorm {}.", self.rank, p, limit)
      .Remedy("Pass at least two dimensions, a positive p and a maxNorm of at least 0.");
}

}  // namespace

using abi::Renorm, abi::InplaceRenorm, abi::EmbeddingRenorm, abi::EmbeddingBag;
NPU_OP(Renorm) = Op<Renorm>()
                     .Rules(DtypeIn(Renorm::self, kFloats), SameShape(Renorm::self, Renorm::out),
                            SameDtype(Renorm::self, Renorm::out), DimInRange(Renorm::dim, Renorm::self))
                     .Uses(Renorm::p, Renorm::maxNorm)
                     .Tolerance("accumulated")
                     .Like("torch.renorm(self, p, dim, maxNorm)")
                     .Prepares([](Planning& plan) {
                       return CheckRenorm(plan, plan.args[Renorm::self], plan.args[Renorm::p].re,
                                          plan.args[Renorm::maxNorm].re);
                     })
                     .Does([](const Call& c) {
                       return RenormSlices(c, c.args[Renorm::self], c.args[Renorm::p].re, c.args[Renorm::dim],
                                           c.args[Renorm::maxNorm].re, c.args[Renorm::out]);
                     });
NPU_OP(InplaceRenorm) = Op<InplaceRenorm>()
                            .Rules(DtypeIn(InplaceRenorm::selfRef, kFloats),
                                   DimInRange(InplaceRenorm::dim, InplaceRenorm::selfRef))
                            .Uses(InplaceRenorm::p, InplaceRenorm::maxNorm)
                            .Tolerance("accumulated")
                            .Like("selfRef.renorm_(p, dim, maxNorm)")
                            .Prepares([](Planning& plan) {
                              return CheckRenorm(plan, plan.args[InplaceRenorm::selfRef],
                                                 plan.args[InplaceRenorm::p].re, plan.args[InplaceRenorm::maxNorm].re);
                            })
                            .Does([](const Call& c) {
                              using A = InplaceRenorm;
                              return RenormSlices(c, c.args[A::selfRef], c.args[A::p].re, c.args[A::dim],
                                                  c.args[A::maxNorm].re, c.args[A::selfRef]);
                            });
NPU_OP(EmbeddingRenorm) = Op<EmbeddingRenorm>()
                              .Rules(DtypeIn(EmbeddingRenorm::selfRef, kFloats), RankIs(EmbeddingRenorm::selfRef, 2),
                                     DtypeIn(EmbeddingRenorm::indices, kIndexTypes))
                              .Uses(EmbeddingRenorm::maxNorm, EmbeddingRenorm::normType)
                              .Tolerance("accumulated")
                              .Like("torch.embedding_renorm_(selfRef, indices, maxNorm, normType)")
                              .Does([](const Call& c) -> Status {
                                const Tensor& self = c.args[EmbeddingRenorm::selfRef];
                                const Values<int64_t> indices(c.args[EmbeddingRenorm::indices], c.parallel);
                                std::vector<int64_t> rows;
                                for (int64_t i = 0; i < indices.size(); ++i) {
                                  if (indices[i] < 0 || indices[i] >= self.shape[0])
                                    return IndexError(c, EmbeddingRenorm::indices, EmbeddingRenorm::selfRef,
                                                      {indices[i], i, 0, self.shape[0]});
                                  rows.push_back(indices[i]);
                                }
                                std::sort(rows.begin(), rows.end());
                                rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
                                const double limit = c.args[EmbeddingRenorm::maxNorm];
                                return WithFloat(self.dtype, [&]<class T>() -> Status {
                                  for (int64_t row : rows) {
                                    Tensor one = self;
                                    one.rank = 1;
                                    one.shape[0] = self.shape[1], one.strides[0] = self.strides[1];
                                    one.data = simd::At(self.data, self.dtype, row * self.strides[0]);
                                    Results<T> x(one, c.parallel, true);
                                    const double norm =
                                        NormOf(x.data(), x.size(), 1, c.args[EmbeddingRenorm::normType]);
                                    if (norm <= limit) continue;
                                    const T factor = static_cast<T>(limit / (norm + 1e-7));
                                    for (int64_t i = 0; i < x.size(); ++i) x[i] *= factor;
                                  }
                                  return {};
                                });
                              });

// mode: 0 sum, 1 mean, 2 max. Rows of padding count for nothing.
NPU_OP(EmbeddingBag) =
    Op<EmbeddingBag>()
        .Rules(DtypeIn(EmbeddingBag::weight, kFloats), RankIs(EmbeddingBag::weight, 2),
               SameDtype(EmbeddingBag::weight, EmbeddingBag::output),
               AnyShapes(EmbeddingBag::output, EmbeddingBag::offset2bag, EmbeddingBag::bagSize,
                         EmbeddingBag::maxIndices),
               DtypeIn(EmbeddingBag::indices, kInts), DtypeIn(EmbeddingBag::offsets, kInts),
               DtypeIn(EmbeddingBag::offset2bag, kInts), DtypeIn(EmbeddingBag::bagSize, kInts),
               DtypeIn(EmbeddingBag::maxIndices, kInts))
        .Uses(EmbeddingBag::scaleGradByFreq, EmbeddingBag::mode, EmbeddingBag::sparse, EmbeddingBag::perSampleWeights,
              EmbeddingBag::includeLastOffset, EmbeddingBag::paddingIdx)
        .Tolerance("accumulated")
        .Like(
            "torch.ops.aten._embedding_bag(weight, indices, offsets, scaleGradByFreq, mode, sparse, perSampleWeights, "
            "includeLastOffset, paddingIdx)")
        .Prepares([](Planning& p) -> Status {
          using A = EmbeddingBag;
          const int64_t mode = p.args[A::mode],
                        bags = p.args[A::offsets].Numel() - (p.args[A::includeLastOffset] ? 1 : 0);
          if (mode < 0 || mode > 2) return p.Refuse("mode is {}.", mode).Remedy("Use 0 sum, 1 mean or 2 max.");
          const Tensor* weights = p.args[A::perSampleWeights];
          if (weights != nullptr && weights->Numel() > 0 &&
              (mode != 0 || weights->Numel() != p.args[A::indices].Numel()))
            return p.Refuse("perSampleWeights has {} elements and mode is {}.", weights->Numel(), mode)
                .Remedy("There is one for each index, in mode 0.");
          if (bags < 0 || p.args[A::indices].rank > 2)
            return p.Refuse("there are {} bags.", bags).Remedy("Pass indices in one row, and where each bag begins.");
          return WantShape(p, A::output, {2, {bags, p.args[A::weight].shape[1]}}, "there is one row for each bag");
        })
        .Does([](const Call& c) -> Status {
          using A = EmbeddingBag;
          const Tensor& weight = c.args[A::weight];
          const int64_t mode = c.args[A::mode], padding = c.args[A::paddingIdx], width = weight.shape[1],
                        bags = c.args[A::output].shape[0];
          const Values<int64_t> indices(c.args[A::indices], c.parallel), offsets(c.args[A::offsets], c.parallel);
          for (int64_t i = 0; i < indices.size(); ++i) {
            if (indices[i] < 0 || indices[i] >= weight.shape[0])
              return IndexError(c, A::indices, A::weight, {indices[i], i, 0, weight.shape[0]});
          }
          auto end_of = [&](int64_t b) { return b + 1 < offsets.size() ? offsets[b + 1] : indices.size(); };
          for (int64_t b = 0; b < bags; ++b) {
            if (offsets[b] < 0 || offsets[b] > end_of(b) || end_of(b) > indices.size()) {
              return Error(Code::kTaskException, "{}: bag {} runs from {} to {} of {} indices.", c.op.name, b,
                           offsets[b], end_of(b), indices.size())
                  .Remedy("Offsets begin with 0, never fall, and end with the number of indices.");
            }
          }
          std::vector<int64_t> bag_of(U(indices.size())), sizes(U(bags)), origins(U(bags * width));
          const Tensor* scales = c.args[A::perSampleWeights];
          if (scales != nullptr && scales->Numel() == 0) scales = nullptr;
          NPU_TRY(WithFloat(weight.dtype, [&]<class T>() -> Status {
            const Values<T> rows(weight, c.parallel);
            std::optional<Values<T>> factors;
            if (scales != nullptr) factors.emplace(*scales, c.parallel);
            Results<T> out(c.args[A::output], c.parallel);
            c.parallel.For(bags, 1, [&](int64_t first, int64_t last) {
              for (int64_t b = first; b < last; ++b) {
                T* to = out.data() + b * width;
                std::fill(to, to + width, T{0});
                for (int64_t i = offsets[b]; i < end_of(b); ++i) {
                  bag_of[U(i)] = b;
                  if (indices[i] == padding) continue;
                  const T* from = rows.data() + indices[i] * width;
                  const T factor = factors ? (*factors)[i] : T{1};
                  for (int64_t k = 0; k < width; ++k) {
                    if (mode != 2) {
                      to[k] += factor * from[k];
                    } else if (sizes[U(b)] == 0 || from[k] > to[k]) {
                      to[k] = from[k];
                      origins[U(b * width + k)] = indices[i];
                    }
                  }
                  ++sizes[U(b)];
                }
                if (mode == 1 && sizes[U(b)] > 0)
                  for (int64_t k = 0; k < width; ++k) to[k] /= static_cast<T>(sizes[U(b)]);
              }
            });
            return {};
          }));
          // Clients allocate these as their kernel needs them; what has the size is filled.
          auto store = [&](const std::vector<int64_t>& values, const Tensor& to) {
            if (to.Numel() == 0) return;
            Results<int64_t> out(to, c.parallel);
            for (int64_t i = 0; i < out.size(); ++i)
              out[i] = i < static_cast<int64_t>(values.size()) ? values[U(i)] : 0;
          };
          store(bag_of, c.args[A::offset2bag]);
          store(sizes, c.args[A::bagSize]);
          store(mode == 2 ? origins : std::vector<int64_t>(), c.args[A::maxIndices]);
          return {};
        });

}  // namespace npu::ops
