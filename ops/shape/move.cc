// Repeating, flipping, rolling, padding, triangles.
#include <algorithm>
#include <numeric>
#include <vector>

#include "gen/abi/ops.h"
#include "kernels/simd/copy/copy.h"
#include "kernels/simd/index/index.h"
#include "kernels/simd/pointwise.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/dense.h"
#include "kernels/simd/shape/shape.h"
#include "ops/common/dims.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

// self as one dense dimension.
Tensor Flatten(const Tensor& dense) {
  Tensor flat = dense;
  flat.rank = 1;
  flat.shape[0] = dense.Numel();
  flat.strides[0] = 1;
  return flat;
}

// Repeats as a dense vector; one number stands for all.
Result<std::vector<int64_t>> ReadRepeats(const Call& c, const Tensor& t, int64_t n) {
  std::vector<int64_t> repeats(static_cast<size_t>(t.Numel()));
  simd::LoadDense(t, repeats.data());
  if (repeats.size() == 1) repeats.assign(static_cast<size_t>(n), repeats[0]);
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0)
      return Error(Code::kTaskException, "{}: repeats[{}] is {}.", c.op.name, i, repeats[i])
          .Remedy("Repeats must not be negative.");
  }
  if (static_cast<int64_t>(repeats.size()) != n) {
    return Error(Code::kTaskException, "{}: repeats has {} elements, but there are {} slices.", c.op.name,
                 repeats.size(), n);
  }
  return repeats;
}

// Slice i of dim, repeats[i] times.
Status RepeatSlices(const Call& c, const Tensor& self, int dim, const std::vector<int64_t>& repeats,
                    const Tensor& out) {
  std::vector<int64_t> index;
  for (size_t i = 0; i < repeats.size(); ++i)
    index.insert(index.end(), static_cast<size_t>(repeats[i]), static_cast<int64_t>(i));
  const auto n = static_cast<int64_t>(index.size());
  if (out.rank > 0 && out.shape[static_cast<size_t>(dim)] != n) {
    return Error(Code::kTaskException, "{}: repeats add up to {}, but out has size {} there.", c.op.name, n,
                 out.shape[static_cast<size_t>(dim)])
        .Remedy("outputSize must be the sum of repeats.");
  }
  const Tensor indices = MakeContiguous(index.data(), DType::i64, std::array<int64_t, 1>{n});
  simd::IndexSelect(self, dim, indices, out, c.parallel);
  return {};
}

}  // namespace

using abi::Repeat, abi::Flip, abi::Roll, abi::ConstantPadNd;
NPU_OP(Repeat) = Op<Repeat>()
                     .Rules(AnyShape(Repeat::out), SameDtype(Repeat::self, Repeat::out))
                     .Uses(Repeat::repeats)
                     .Samples(Repeat::repeats, "[[1] * self.dim(), [2] * self.dim(), [3] + [1] * self.dim()]")
                     .Tolerance("exact")
                     .Like("self.repeat(repeats)")
                     .Prepares([](Planning& plan) -> Status {
                       const Tensor& self = plan.args[Repeat::self];
                       const auto repeats = plan.args[Repeat::repeats];
                       if (repeats.size() < static_cast<size_t>(self.rank) || repeats.size() > kMaxRank ||
                           std::any_of(repeats.begin(), repeats.end(), [](int64_t n) { return n < 0; })) {
                         return plan
                             .Refuse("repeats is {}, but self has shape {}.", ShapeText(repeats),
                                     ShapeText(self.Shape()))
                             .Remedy("Give one count of at least 0 for each dimension, up to {}.", kMaxRank);
                       }
                       Dims wanted;
                       const size_t missing = repeats.size() - static_cast<size_t>(self.rank);
                       for (size_t d = 0; d < repeats.size(); ++d)
                         wanted.Push(repeats[d] * (d < missing ? 1 : self.shape[d - missing]));
                       return WantShape(plan, Repeat::out, wanted, "that is not self times repeats");
                     })
                     .Does([](const Call& c) -> Status {
                       simd::Repeat(c.args[Repeat::self], c.args[Repeat::repeats], c.args[Repeat::out], c.parallel);
                       return {};
                     });
NPU_OP(Flip) = Op<Flip>()
                   .Rules(SameShape(Flip::self, Flip::out), SameDtype(Flip::self, Flip::out))
                   .Uses(Flip::dims)
                   .Samples(Flip::dims, "[[0], [-1], list(range(self.dim()))]")
                   .Tolerance("exact")
                   .Like("torch.flip(self, dims)")
                   .Prepares([](Planning& plan) -> Status {
                     const Tensor& self = plan.args[Flip::self];
                     for (const int64_t d : plan.args[Flip::dims]) {
                       if (WrapDim(d, self.rank) < 0)
                         return plan.Refuse("dims has {}, but self has shape {}.", d, ShapeText(self.Shape()));
                     }
                     return {};
                   })
                   .Does([](const Call& c) -> Status {
                     const Tensor& self = c.args[Flip::self];
                     const auto dims = c.args[Flip::dims];
                     simd::Flip(self, dims.empty() ? 0 : MaskOf(dims, self.rank), c.args[Flip::out], c.parallel);
                     return {};
                   });
NPU_OP(Roll) = Op<Roll>()
                   .Rules(SameShape(Roll::x, Roll::out), SameDtype(Roll::x, Roll::out))
                   .Uses(Roll::shifts, Roll::dims)
                   .Samples(Roll::shifts, "[[1], [-2], [7]]")
                   .Samples(Roll::dims, "[[], [0], [-1]]")
                   .Tolerance("exact")
                   .Like("torch.roll(x, shifts, dims)")
                   .Prepares([](Planning& plan) -> Status {
                     const Tensor& x = plan.args[Roll::x];
                     const auto shifts = plan.args[Roll::shifts], dims = plan.args[Roll::dims];
                     if (shifts.size() != dims.size() && !(dims.empty() && shifts.size() == 1)) {
                       return plan.Refuse("shifts is {} and dims is {}.", ShapeText(shifts), ShapeText(dims))
                           .Remedy("Give one shift for each dim, or one alone.");
                     }
                     for (const int64_t d : dims) {
                       if (WrapDim(d, x.rank) < 0)
                         return plan.Refuse("dims has {}, but x has shape {}.", d, ShapeText(x.Shape()));
                     }
                     return {};
                   })
                   .Does([](const Call& c) -> Status {
                     const Tensor &x = c.args[Roll::x], &out = c.args[Roll::out];
                     const auto shifts = c.args[Roll::shifts], dims = c.args[Roll::dims];
                     if (dims.empty()) {
                       const simd::DenseIn in(x, c.parallel);
                       const simd::DenseOut to(out, c.parallel);
                       simd::Roll(Flatten(*in), shifts, Flatten(*to), c.parallel);
                       return {};
                     }
                     std::array<int64_t, kMaxRank> by_dim{};
                     for (size_t i = 0; i < dims.size(); ++i)
                       by_dim[static_cast<size_t>(WrapDim(dims[i], x.rank))] += shifts[i];
                     simd::Roll(x, std::span(by_dim).first(static_cast<size_t>(x.rank)), out, c.parallel);
                     return {};
                   });
NPU_OP(ConstantPadNd) =
    Op<ConstantPadNd>()
        .Rules(AnyShape(ConstantPadNd::out), SameDtype(ConstantPadNd::self, ConstantPadNd::out),
               DtypeIn(ConstantPadNd::self, kReals | kComplexes | kUnsigned))
        .Uses(ConstantPadNd::pad, ConstantPadNd::value)
        .Samples(ConstantPadNd::pad, "[[1, 2], [-1, 3], [0, 0]]")
        .Tolerance("exact")
        .Like("torch.constant_pad_nd(self, pad, value)")
        .Prepares([](Planning& plan) -> Status {
          const Tensor& self = plan.args[ConstantPadNd::self];
          const auto pad = plan.args[ConstantPadNd::pad];
          if (pad.size() % 2 != 0 || pad.size() / 2 > static_cast<size_t>(self.rank)) {
            return plan.Refuse("pad is {}, but self has shape {}.", ShapeText(pad), ShapeText(self.Shape()))
                .Remedy("Give two numbers for each padded dimension, the last one first.");
          }
          Dims wanted = DimsOf(self);
          for (size_t k = 0; 2 * k + 1 < pad.size(); ++k) {
            int64_t& n = wanted.size[static_cast<size_t>(self.rank) - 1 - k];
            n += pad[2 * k] + pad[2 * k + 1];
            if (n < 0)
              return plan.Refuse("pad is {}, which cuts more than self {} has.", ShapeText(pad),
                                 ShapeText(self.Shape()));
          }
          return WantShape(plan, ConstantPadNd::out, wanted, "that is not self with the padding");
        })
        .Does([](const Call& c) -> Status {
          const Tensor& out = c.args[ConstantPadNd::out];
          alignas(16) std::byte value[16] = {};
          simd::CopyTensor(simd::NumberTensor(c.args[ConstantPadNd::value]), MakeContiguous(value, out.dtype, {}),
                           c.parallel);
          simd::ConstantPad(c.args[ConstantPadNd::self], c.args[ConstantPadNd::pad], value, out, c.parallel);
          return {};
        });

using abi::Tril, abi::Triu, abi::InplaceTril, abi::InplaceTriu;
namespace {
Status WantMatrix(const Planning& plan, const Tensor& t) {
  if (t.rank >= 2) return {};
  return plan.Refuse("self has shape {}, but a triangle needs two dimensions.", ShapeText(t.Shape()))
      .Remedy("Give it at least two dimensions.");
}
}  // namespace
NPU_OP(Tril) = Op<Tril>()
                   .Rules(SameShape(Tril::self, Tril::out), SameDtype(Tril::self, Tril::out))
                   .Uses(Tril::diagonal)
                   .Samples(Tril::diagonal, "[0, 1, -1, 5]")
                   .Tolerance("exact")
                   .Like("torch.tril(self, diagonal)")
                   .Prepares([](Planning& plan) { return WantMatrix(plan, plan.args[Tril::self]); })
                   .Does([](const Call& c) -> Status {
                     simd::Triangle(c.args[Tril::self], true, c.args[Tril::diagonal], c.args[Tril::out], c.parallel);
                     return {};
                   });
NPU_OP(Triu) = Op<Triu>()
                   .Rules(SameShape(Triu::self, Triu::out), SameDtype(Triu::self, Triu::out))
                   .Uses(Triu::diagonal)
                   .Samples(Triu::diagonal, "[0, 1, -1, 5]")
                   .Tolerance("exact")
                   .Like("torch.triu(self, diagonal)")
                   .Prepares([](Planning& plan) { return WantMatrix(plan, plan.args[Triu::self]); })
                   .Does([](const Call& c) -> Status {
                     simd::Triangle(c.args[Triu::self], false, c.args[Triu::diagonal], c.args[Triu::out], c.parallel);
                     return {};
                   });
NPU_OP(InplaceTril) = Op<InplaceTril>()
                          .Rules(DtypeIn(InplaceTril::selfRef, kAnyType))
                          .Uses(InplaceTril::diagonal)
                          .Samples(InplaceTril::diagonal, "[0, 1, -1, 5]")
                          .Tolerance("exact")
                          .Like("selfRef.tril_(diagonal)")
                          .Prepares([](Planning& plan) { return WantMatrix(plan, plan.args[InplaceTril::selfRef]); })
                          .Does([](const Call& c) -> Status {
                            simd::Triangle(c.args[InplaceTril::selfRef], true, c.args[InplaceTril::diagonal],
                                           c.args[InplaceTril::selfRef], c.parallel);
                            return {};
                          });
NPU_OP(InplaceTriu) = Op<InplaceTriu>()
                          .Rules(DtypeIn(InplaceTriu::selfRef, kAnyType))
                          .Uses(InplaceTriu::diagonal)
                          .Samples(InplaceTriu::diagonal, "[0, 1, -1, 5]")
                          .Tolerance("exact")
                          .Like("selfRef.triu_(diagonal)")
                          .Prepares([](Planning& plan) { return WantMatrix(plan, plan.args[InplaceTriu::selfRef]); })
                          .Does([](const Call& c) -> Status {
                            simd::Triangle(c.args[InplaceTriu::selfRef], false, c.args[InplaceTriu::diagonal],
                                           c.args[InplaceTriu::selfRef], c.parallel);
                            return {};
                          });

using abi::RepeatInterleave, abi::RepeatInterleaveInt, abi::RepeatInterleaveIntWithDim, abi::RepeatInterleaveWithDim,
    abi::RepeatInterleaveTensor, abi::RepeatInterleaveGrad;
NPU_OP(RepeatInterleaveInt) = Op<RepeatInterleaveInt>()
                                  .Rules(AnyShape(RepeatInterleaveInt::out),
                                         SameDtype(RepeatInterleaveInt::self, RepeatInterleaveInt::out))
                                  .Uses(RepeatInterleaveInt::repeats, RepeatInterleaveInt::outputSize)
                                  .Samples(RepeatInterleaveInt::repeats, "[1, 3]")
                                  .Tolerance("exact")
                                  .Like("torch.repeat_interleave(self, repeats)")
                                  .Prepares([](Planning& plan) -> Status {
                                    const int64_t times = plan.args[RepeatInterleaveInt::repeats];
                                    if (times < 0)
                                      return plan.Refuse("repeats is {}.", times).Remedy("It must not be negative.");
                                    Dims wanted;
                                    wanted.Push(plan.args[RepeatInterleaveInt::self].Numel() * times);
                                    return WantShape(plan, RepeatInterleaveInt::out, wanted,
                                                     "that is not each element of self repeated");
                                  })
                                  .Does([](const Call& c) -> Status {
                                    const simd::DenseIn self(c.args[RepeatInterleaveInt::self], c.parallel);
                                    simd::RepeatEach(Flatten(*self), 0, c.args[RepeatInterleaveInt::repeats],
                                                     c.args[RepeatInterleaveInt::out], c.parallel);
                                    return {};
                                  });
NPU_OP(RepeatInterleaveIntWithDim) =
    Op<RepeatInterleaveIntWithDim>()
        .Rules(AnyShape(RepeatInterleaveIntWithDim::out),
               SameDtype(RepeatInterleaveIntWithDim::self, RepeatInterleaveIntWithDim::out),
               DimInRange(RepeatInterleaveIntWithDim::dim, RepeatInterleaveIntWithDim::self))
        .Uses(RepeatInterleaveIntWithDim::repeats, RepeatInterleaveIntWithDim::outputSize)
        .Samples(RepeatInterleaveIntWithDim::repeats, "[1, 3]")
        .Tolerance("exact")
        .Like("torch.repeat_interleave(self, repeats, dim)")
        .Prepares([](Planning& plan) -> Status {
          const Tensor& self = plan.args[RepeatInterleaveIntWithDim::self];
          const int64_t times = plan.args[RepeatInterleaveIntWithDim::repeats];
          if (times < 0) return plan.Refuse("repeats is {}.", times).Remedy("It must not be negative.");
          Dims wanted = DimsOf(self);
          if (self.rank == 0) wanted.Push(1);
          wanted.size[static_cast<size_t>(WrapDim(plan.args[RepeatInterleaveIntWithDim::dim], self.rank))] *= times;
          return WantShape(plan, RepeatInterleaveIntWithDim::out, wanted, "that is not each slice of self repeated");
        })
        .Does([](const Call& c) -> Status {
          const Tensor& self = c.args[RepeatInterleaveIntWithDim::self];
          simd::RepeatEach(self, WrapDim(c.args[RepeatInterleaveIntWithDim::dim], self.rank),
                           c.args[RepeatInterleaveIntWithDim::repeats], c.args[RepeatInterleaveIntWithDim::out],
                           c.parallel);
          return {};
        });
NPU_OP(RepeatInterleave) = Op<RepeatInterleave>()
                               .Rules(DtypeIn(RepeatInterleave::repeats, kIndexTypes), AnyShape(RepeatInterleave::out),
                                      SameDtype(RepeatInterleave::self, RepeatInterleave::out),
                                      RankIs(RepeatInterleave::out, 1))
                               .Uses(RepeatInterleave::outputSize)
                               .Tolerance("exact")
                               .Like("torch.repeat_interleave(self, repeats)")
                               .Does([](const Call& c) -> Status {
                                 const simd::DenseIn self(c.args[RepeatInterleave::self], c.parallel);
                                 NPU_ASSIGN(const auto repeats,
                                            ReadRepeats(c, c.args[RepeatInterleave::repeats], self->Numel()));
                                 return RepeatSlices(c, Flatten(*self), 0, repeats, c.args[RepeatInterleave::out]);
                               });
NPU_OP(RepeatInterleaveWithDim) =
    Op<RepeatInterleaveWithDim>()
        .Rules(DtypeIn(RepeatInterleaveWithDim::repeats, kIndexTypes), AnyShape(RepeatInterleaveWithDim::out),
               SameDtype(RepeatInterleaveWithDim::self, RepeatInterleaveWithDim::out),
               DimInRange(RepeatInterleaveWithDim::dim, RepeatInterleaveWithDim::self))
        .Uses(RepeatInterleaveWithDim::outputSize)
        .Tolerance("exact")
        .Like("torch.repeat_interleave(self, repeats, dim)")
        .Prepares([](Planning& plan) -> Status {
          const Tensor& self = plan.args[RepeatInterleaveWithDim::self];
          Dims wanted = DimsOf(self);
          if (self.rank == 0) wanted.Push(1);
          const auto dim = static_cast<size_t>(WrapDim(plan.args[RepeatInterleaveWithDim::dim], self.rank));
          const Tensor& out = plan.args[RepeatInterleaveWithDim::out];
          if (out.rank == wanted.rank) wanted.size[dim] = out.shape[dim];
          return WantShape(plan, RepeatInterleaveWithDim::out, wanted, "only the size of dim may differ from self");
        })
        .Does([](const Call& c) -> Status {
          const Tensor& self = c.args[RepeatInterleaveWithDim::self];
          const int dim = WrapDim(c.args[RepeatInterleaveWithDim::dim], self.rank);
          NPU_ASSIGN(const auto repeats, ReadRepeats(c, c.args[RepeatInterleaveWithDim::repeats],
                                                     self.rank == 0 ? 1 : self.shape[static_cast<size_t>(dim)]));
          return RepeatSlices(c, self, dim, repeats, c.args[RepeatInterleaveWithDim::out]);
        });
NPU_OP(RepeatInterleaveTensor) = Op<RepeatInterleaveTensor>()
                                     .Rules(DtypeIn(RepeatInterleaveTensor::repeats, kIndexTypes),
                                            RankIs(RepeatInterleaveTensor::repeats, 1),
                                            AnyShape(RepeatInterleaveTensor::out),
                                            DtypeIn(RepeatInterleaveTensor::out, kIndexTypes),
                                            RankIs(RepeatInterleaveTensor::out, 1))
                                     .Uses(RepeatInterleaveTensor::outputSize)
                                     .Tolerance("exact")
                                     .Like("torch.repeat_interleave(repeats)")
                                     .Does([](const Call& c) -> Status {
                                       const Tensor& t = c.args[RepeatInterleaveTensor::repeats];
                                       std::vector<int64_t> places(static_cast<size_t>(t.Numel()));
                                       std::iota(places.begin(), places.end(), int64_t{0});
                                       NPU_ASSIGN(const auto repeats, ReadRepeats(c, t, t.Numel()));
                                       std::vector<int64_t> result;
                                       for (size_t i = 0; i < repeats.size(); ++i)
                                         result.insert(result.end(), static_cast<size_t>(repeats[i]), places[i]);
                                       const Tensor& out = c.args[RepeatInterleaveTensor::out];
                                       if (out.Numel() != static_cast<int64_t>(result.size())) {
                                         return Error(Code::kTaskException,
                                                      "{}: repeats add up to {}, but out has {} elements.", c.op.name,
                                                      result.size(), out.Numel());
                                       }
                                       simd::StoreDense(result.data(), out);
                                       return {};
                                     });
NPU_OP(RepeatInterleaveGrad) =
    Op<RepeatInterleaveGrad>()
        .Rules(DtypeIn(RepeatInterleaveGrad::yGrad, kFloats), DtypeIn(RepeatInterleaveGrad::repeats, kIndexTypes),
               AnyShape(RepeatInterleaveGrad::out), SameDtype(RepeatInterleaveGrad::yGrad, RepeatInterleaveGrad::out),
               DimInRange(RepeatInterleaveGrad::axis, RepeatInterleaveGrad::yGrad))
        .Tolerance("accumulated")
        .Like(
            "torch.stack([s.sum(axis) for s in torch.split(yGrad, (repeats.expand(out.shape[axis]) if repeats.dim() == "
            "0 else repeats).tolist(), axis)], axis)")
        .Does([](const Call& c) -> Status {
          const Tensor &grad = c.args[RepeatInterleaveGrad::yGrad], &out = c.args[RepeatInterleaveGrad::out];
          const int dim = WrapDim(c.args[RepeatInterleaveGrad::axis], grad.rank);
          const auto at = static_cast<size_t>(dim);
          NPU_ASSIGN(const auto repeats, ReadRepeats(c, c.args[RepeatInterleaveGrad::repeats], out.shape[at]));
          std::vector<int64_t> target;
          for (size_t i = 0; i < repeats.size(); ++i)
            target.insert(target.end(), static_cast<size_t>(repeats[i]), static_cast<int64_t>(i));
          const auto n = static_cast<int64_t>(target.size());
          if (n != grad.shape[at]) {
            return Error(Code::kTaskException, "{}: repeats add up to {}, but yGrad has size {} there.", c.op.name, n,
                         grad.shape[at]);
          }
          const uint64_t zero[2] = {};
          simd::Fill(zero, out, c.parallel);
          simd::IndexAdd(out, dim, MakeContiguous(target.data(), DType::i64, std::array<int64_t, 1>{n}), grad, 1,
                         c.parallel);
          return {};
        });

}  // namespace npu::ops
