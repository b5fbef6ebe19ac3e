// Rare reads and writes by index, and what is found by looking at elements: plain loops over dense copies.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "gen/abi/ops.h"
#include "kernels/simd/index/index.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"
#include "ops/elementwise/family.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

// The tensor without its dimension d; 0-d tensors keep one element.
int64_t DimSize(const Tensor& t, int d) { return t.rank == 0 ? 1 : t.shape[U(d)]; }

Status BadPlace(const Call& c, Token index, int64_t position, int64_t value, int64_t size) {
  return Error(Code::kTaskException, "{}: {}[{}] is {}, but there are {} places.", c.op.name,
               c.op.params[index.index].name, position, value, size)
      .Remedy("Indices run from 0 to {}.", size - 1);
}

// A slice t[.., i, ..] of dimension d.
Tensor SliceAt(const Tensor& t, int d, int64_t i) {
  Tensor s = t;
  if (t.rank == 0) return s;
  s.data = simd::At(t.data, t.dtype, i * t.strides[U(d)]);
  for (int k = d; k + 1 < t.rank; ++k) s.shape[U(k)] = t.shape[U(k + 1)], s.strides[U(k)] = t.strides[U(k + 1)];
  s.rank = static_cast<int8_t>(t.rank - 1);
  return s;
}

// The number as a value of type t.
void WriteNumber(const Scalar& number, DType t, void* value) {
  if (t == DType::c64) {
    const float parts[2] = {static_cast<float>(number.re), static_cast<float>(number.im)};
    std::memcpy(value, parts, sizeof parts);
  } else if (t == DType::c128) {
    const double parts[2] = {number.re, number.im};
    std::memcpy(value, parts, sizeof parts);
  } else if (IsFloat(t)) {
    simd::Write(&number.re, 1, value, t, 1);
  } else {
    simd::Write(&number.i, 1, value, t, 1);
  }
}

Status CopySlices(const Call& c, const Tensor& self, int64_t dim, const Tensor& index, Token index_name,
                  const Tensor& source) {
  const int d = WrapDim(dim, self.rank);
  const Values<int64_t> at(index, c.parallel);
  const int64_t size = DimSize(self, d);
  for (int64_t i = 0; i < at.size(); ++i) {
    if (at[i] < 0 || at[i] >= size) return BadPlace(c, index_name, i, at[i], size);
  }
  for (int64_t i = 0; i < at.size(); ++i) simd::Copy(SliceAt(source, d, i), SliceAt(self, d, at[i]), c.parallel);
  return {};
}

Status WantSlices(const Planning& p, const Tensor& self, int64_t dim, const Tensor& index, TensorToken index_name,
                  TensorToken source) {
  const int d = WrapDim(dim, self.rank);
  if (index.rank > 1)
    return p.Refuse("{} has {} dimensions.", p.ParamName(index_name), index.rank).Remedy("It is a vector.");
  Dims want = DimsOf(self);
  if (self.rank > 0) want.size[U(d)] = index.Numel();
  if (self.rank == 0 && index.Numel() != 1)
    return p.Refuse("{} has {} elements for one number.", p.ParamName(index_name), index.Numel()).Remedy("Give one.");
  return WantShape(p, source, want, "there is one slice for each index");
}

}  // namespace

using abi::IndexCopy, abi::InplaceIndexCopy;
NPU_OP(InplaceIndexCopy) = Op<InplaceIndexCopy>()
                               .Rules(DimInRange(InplaceIndexCopy::dim, InplaceIndexCopy::selfRef),
                                      DtypeIn(InplaceIndexCopy::index, kIndexTypes),
                                      SameDtype(InplaceIndexCopy::selfRef, InplaceIndexCopy::source))
                               .Tolerance("exact")
                               .Like("selfRef.index_copy_(dim, index, source)")
                               .Prepares([](Planning& p) {
                                 using A = InplaceIndexCopy;
                                 return WantSlices(p, p.args[A::selfRef], p.args[A::dim], p.args[A::index], A::index,
                                                   A::source);
                               })
                               .Does([](const Call& c) {
                                 using A = InplaceIndexCopy;
                                 return CopySlices(c, c.args[A::selfRef], c.args[A::dim], c.args[A::index], A::index,
                                                   c.args[A::source]);
                               });
// selfRef is only read here: the result is outRef.
NPU_OP(IndexCopy) =
    Op<IndexCopy>()
        .Rules(DimInRange(IndexCopy::dim, IndexCopy::selfRef), DtypeIn(IndexCopy::index, kIndexTypes),
               SameDtype(IndexCopy::selfRef, IndexCopy::source), SameDtype(IndexCopy::selfRef, IndexCopy::outRef),
               SameShape(IndexCopy::selfRef, IndexCopy::outRef))
        .Tolerance("exact")
        .Like("(selfRef, torch.index_copy(selfRef, dim, index, source))")
        .Prepares([](Planning& p) {
          using A = IndexCopy;
          return WantSlices(p, p.args[A::selfRef], p.args[A::dim], p.args[A::index], A::index, A::source);
        })
        .Does([](const Call& c) {
          using A = IndexCopy;
          if (c.args[A::selfRef].data != c.args[A::outRef].data)
            simd::Copy(c.args[A::selfRef], c.args[A::outRef], c.parallel);
          return CopySlices(c, c.args[A::outRef], c.args[A::dim], c.args[A::index], A::index, c.args[A::source]);
        });

using abi::InplacePut, abi::InplaceFillDiagonal;
NPU_OP(InplacePut) = Op<InplacePut>()
                         .Rules(DtypeIn(InplacePut::selfRef, kAnyType), DtypeIn(InplacePut::index, kIndexTypes),
                                SameDtype(InplacePut::selfRef, InplacePut::source))
                         .Uses(InplacePut::accumulate)
                         .Tolerance("accumulated")
                         .Like("selfRef.put_(index, source, accumulate)")
                         .Prepares([](Planning& p) -> Status {
                           if (p.args[InplacePut::index].Numel() == p.args[InplacePut::source].Numel()) return {};
                           return p
                               .Refuse("index has {} elements and source has {}.", p.args[InplacePut::index].Numel(),
                                       p.args[InplacePut::source].Numel())
                               .Remedy("There is one value for each index.");
                         })
                         .Does([](const Call& c) -> Status {
                           const simd::DenseOut self(c.args[InplacePut::selfRef], c.parallel, true);
                           const simd::DenseIn index(c.args[InplacePut::index], c.parallel),
                               source(c.args[InplacePut::source], c.parallel);
                           auto flat = [](const Tensor& t) {
                             return MakeContiguous(t.data, t.dtype, std::array<int64_t, 1>{t.Numel()});
                           };
                           const Tensor at = flat(*index);
                           const Tensor* list[] = {&at};
                           return CheckIndex(c, InplacePut::index, InplacePut::selfRef,
                                             simd::IndexPut(flat(*self), list, flat(*source),
                                                            c.args[InplacePut::accumulate], c.parallel));
                         });
NPU_OP(InplaceFillDiagonal) =
    Op<InplaceFillDiagonal>()
        .Rules(DtypeIn(InplaceFillDiagonal::selfRef, kReals | kComplexes))
        .Uses(InplaceFillDiagonal::fillValue, InplaceFillDiagonal::wrap)
        .Samples(InplaceFillDiagonal::selfRef,
                 "[torch.randn(3, 3), torch.randn(9, 2), torch.randn(2, 5), torch.randn(3, 3, 3)]")
        .Tolerance("exact")
        .Like("selfRef.fill_diagonal_(fillValue, wrap)")
        .Prepares([](Planning& p) -> Status {
          const Tensor& t = p.args[InplaceFillDiagonal::selfRef];
          bool cube = t.rank >= 2;
          for (int d = 1; t.rank > 2 && d < t.rank; ++d) cube = cube && t.shape[U(d)] == t.shape[0];
          if (cube) return {};
          return p.Refuse("selfRef has shape {}.", ShapeText(t.Shape()))
              .Remedy("Pass a matrix, or more dimensions of one size.");
        })
        .Does([](const Call& c) -> Status {
          const Tensor& t = c.args[InplaceFillDiagonal::selfRef];
          int64_t step = 0;
          for (int64_t s : t.Strides()) step += s;
          Tensor diagonal = t;
          diagonal.rank = 1;
          diagonal.strides[0] = step;
          diagonal.shape[0] = *std::min_element(t.shape.begin(), t.shape.begin() + t.rank);
          const auto& number = c.args[InplaceFillDiagonal::fillValue];
          alignas(16) std::byte value[16];
          WriteNumber(number, t.dtype, value);
          simd::Fill(value, diagonal, c.parallel);
          if (!c.args[InplaceFillDiagonal::wrap] || t.rank != 2) return {};
          // A tall matrix: the diagonal goes on below a row that stays free.
          for (int64_t row = t.shape[1] + 1; row < t.shape[0]; row += t.shape[1] + 1) {
            Tensor next = diagonal;
            next.data = simd::At(t.data, t.dtype, row * t.strides[0]);
            next.shape[0] = std::min(t.shape[1], t.shape[0] - row);
            simd::Fill(value, next, c.parallel);
          }
          return {};
        });

using abi::IsInScalarTensor, abi::IsInTensorScalar;
namespace {

// Calls take(i, whether element i of `x` is `wanted`) until it returns false. Integers are compared as integers.
template <class F>
void EachEqual(const Tensor& x, const Scalar& wanted, Parallel& parallel, F&& take) {
  const auto each = [&](const auto& values, auto number) {
    for (int64_t i = 0; i < values.size() && take(i, values[i] == number); ++i) {
    }
  };
  if (IsInt(x.dtype) && IsInt(wanted.dtype)) {
    each(Values<int64_t>(x, parallel), wanted.i);
  } else {
    each(Values<double>(x, parallel), wanted.re);
  }
}

}  // namespace
NPU_OP(IsInTensorScalar) = Op<IsInTensorScalar>()
                               .Rules(DtypeIn(IsInTensorScalar::element, kReals),
                                      SameShape(IsInTensorScalar::element, IsInTensorScalar::out),
                                      DtypeIn(IsInTensorScalar::out, kBool))
                               .Uses(IsInTensorScalar::testElement, IsInTensorScalar::assumeUnique,
                                     IsInTensorScalar::invert)
                               .Tolerance("exact")
                               .Like("torch.isin(element, testElement, assume_unique=assumeUnique, invert=invert)")
                               .Does([](const Call& c) -> Status {
                                 using A = IsInTensorScalar;
                                 Results<uint8_t> out(c.args[A::out], c.parallel);
                                 EachEqual(c.args[A::element], Kept(c.args[A::testElement], c.args[A::element].dtype), c.parallel, [&](int64_t i, bool equal) {
                                   out[i] = equal != c.args[A::invert];
                                   return true;
                                 });
                                 return {};
                               });
NPU_OP(IsInScalarTensor) = Op<IsInScalarTensor>()
                               .Rules(DtypeIn(IsInScalarTensor::testElements, kReals), AnyShape(IsInScalarTensor::out),
                                      DtypeIn(IsInScalarTensor::out, kBool))
                               .Uses(IsInScalarTensor::element, IsInScalarTensor::assumeUnique,
                                     IsInScalarTensor::invert)
                               .Tolerance("exact")
                               .Like("torch.isin(element, testElements, assume_unique=assumeUnique, invert=invert)")
                               .Prepares([](Planning& p) -> Status {
                                 if (p.args[IsInScalarTensor::out].Numel() == 1) return {};
                                 return p.Refuse("out has shape {}.", ShapeText(p.args[IsInScalarTensor::out].Shape()))
                                     .Remedy("The answer is one element.");
                               })
                               .Does([](const Call& c) -> Status {
                                 using A = IsInScalarTensor;
                                 Results<uint8_t> out(c.args[A::out], c.parallel);
                                 bool found = false;
                                 EachEqual(c.args[A::testElements], c.args[A::element], c.parallel, [&](int64_t, bool equal) {
                                   found = equal;
                                   return !found;
                                 });
                                 out[0] = found != c.args[A::invert];
                                 return {};
                               });

using abi::Histc, abi::Bincount;
NPU_OP(Histc) = Op<Histc>()
                    .Rules(DtypeIn(Histc::self, kNumbers), DtypeIn(Histc::out, kNumbers), RankIs(Histc::out, 1))
                    .Uses(Histc::bins, Histc::min, Histc::max)
                    .Tolerance("exact")
                    .Like("torch.histc(self, bins, min, max)")
                    .Rules(AnyShape(Histc::out))
                    .Prepares([](Planning& p) -> Status {
                      Dims want;
                      want.Push(p.args[Histc::bins]);
                      if (p.args[Histc::bins] < 1)
                        return p.Refuse("bins is {}.", p.args[Histc::bins]).Remedy("It is at least 1.");
                      if (p.args[Histc::min].re > p.args[Histc::max].re) {
                        return p.Refuse("min is {} and max is {}.", p.args[Histc::min].re, p.args[Histc::max].re)
                            .Remedy("min must not be larger.");
                      }
                      return WantShape(p, Histc::out, want, "there is one count for each bin");
                    })
                    .Does([](const Call& c) -> Status {
                      const int64_t bins = c.args[Histc::bins];
                      // In float where the elements are: an element on an edge falls on the side that torch puts it.
                      return WithFloat(
                          IsFloat(c.args[Histc::self].dtype) ? c.args[Histc::self].dtype : DType::f32,
                          [&]<class T>() -> Status {
                            const Values<T> x(c.args[Histc::self], c.parallel);
                            T low = static_cast<T>(c.args[Histc::min].re), high = static_cast<T>(c.args[Histc::max].re);
                            if (low == high && x.size() > 0) {
                              low = *std::min_element(x.data(), x.data() + x.size());
                              high = *std::max_element(x.data(), x.data() + x.size());
                            }
                            if (low == high) low -= 1, high += 1;
                            if (!std::isfinite(low) || !std::isfinite(high)) {
                              return Error(Code::kTaskException, "{}: the range is from {} to {}.", c.op.name, low,
                                           high)
                                  .Remedy("Give finite limits.");
                            }
                            std::vector<double> count(U(bins));
                            for (int64_t i = 0; i < x.size(); ++i) {
                              if (!(x[i] >= low && x[i] <= high)) continue;
                              const auto at = static_cast<int64_t>((x[i] - low) / (high - low) * static_cast<T>(bins));
                              ++count[U(std::min(at, bins - 1))];
                            }
                            simd::Copy(MakeContiguous(count.data(), DType::f64, std::array<int64_t, 1>{bins}),
                                       c.args[Histc::out], c.parallel);
                            return {};
                          });
                    });
NPU_OP(Bincount) = Op<Bincount>()
                       .Rules(DtypeIn(Bincount::self, kInts), AnyShape(Bincount::out), AnyDtype(Bincount::out),
                              SameShape(Bincount::self, Bincount::weights))
                       .Required(Bincount::out)
                       .Uses(Bincount::minlength)
                       .Tolerance("accumulated")
                       .Like("torch.bincount(self, weights, minlength)")
                       .Prepares([](Planning& p) -> Status {
                         if (p.args[Bincount::self].rank > 1 || p.args[Bincount::out]->rank != 1 ||
                             p.args[Bincount::minlength] < 0 || IsComplex(p.args[Bincount::out]->dtype)) {
                           return p
                               .Refuse("self has {} dimensions, out {}, minlength is {}.", p.args[Bincount::self].rank,
                                       p.args[Bincount::out]->rank, p.args[Bincount::minlength])
                               .Remedy("Pass vectors and a minlength of at least 0.");
                         }
                         return {};
                       })
                       .Does([](const Call& c) -> Status {
                         const Values<int64_t> x(c.args[Bincount::self], c.parallel);
                         Results<double> out(*c.args[Bincount::out], c.parallel);
                         std::optional<Values<double>> weights;
                         if (c.args[Bincount::weights] != nullptr)
                           weights.emplace(*c.args[Bincount::weights], c.parallel);
                         std::fill(out.data(), out.data() + out.size(), 0.0);
                         for (int64_t i = 0; i < x.size(); ++i) {
                           if (x[i] < 0 || x[i] >= out.size()) return BadPlace(c, Bincount::self, i, x[i], out.size());
                           out[x[i]] += weights ? (*weights)[i] : 1.0;
                         }
                         return {};
                       });

using abi::Median, abi::MedianDim, abi::NanMedian, abi::NanMedianDim;
namespace {

// Position of the lower median of n elements `step` apart; NaN counts as the largest, or not at all.
template <class T>
int64_t MedianOf(const T* x, int64_t n, int64_t step, bool skip_nan, std::vector<int64_t>* order) {
  order->clear();
  for (int64_t i = 0; i < n; ++i) {
    const bool nan = x[i * step] != x[i * step];
    if (nan && !skip_nan) return i;
    if (!nan) order->push_back(i);
  }
  if (order->empty()) return 0;
  const auto middle = order->begin() + static_cast<int64_t>((order->size() - 1) / 2);
  std::nth_element(order->begin(), middle, order->end(), [&](int64_t a, int64_t b) {
    return x[a * step] != x[b * step] ? x[a * step] < x[b * step] : a < b;
  });
  return *middle;
}

Status RunMedian(const Call& c, const Tensor& self, int dim, bool skip_nan, const Tensor& values,
                 const Tensor* indices) {
  return WithNumber(self.dtype, [&]<class T>() -> Status {
    const Values<T> x(self, c.parallel);
    Results<T> out(values, c.parallel);
    std::optional<Results<int64_t>> at;
    if (indices != nullptr) at.emplace(*indices, c.parallel);
    // torch's: NaN as the processor makes an integer of it.
    const T nothing = self.dtype == DType::i32 ? static_cast<T>(std::numeric_limits<int32_t>::min()) : std::numeric_limits<T>::min();
    int64_t inner = 1, n = x.size();
    if (dim >= 0 && self.rank > 0) {
      n = self.shape[U(dim)];
      for (int d = dim + 1; d < self.rank; ++d) inner *= self.shape[U(d)];
    }
    c.parallel.For(out.size(), Grain(n), [&](int64_t begin, int64_t end) {
      std::vector<int64_t> order;
      for (int64_t r = begin; r < end; ++r) {
        const T* row = x.data() + r / inner * inner * n + r % inner;
        const int64_t place = MedianOf(row, n, inner, skip_nan, &order);
        if (n > 0)
          out[r] = row[place * inner];
        else if constexpr (std::is_floating_point_v<T>)
          out[r] = std::numeric_limits<T>::quiet_NaN();
        else
          out[r] = nothing;
        if (at) (*at)[r] = place;
      }
    });
    return {};
  });
}

template <class A>
consteval Builder MedianOfDim(std::string_view like) {
  return Op<A>()
      .Rules(DtypeIn(A::self, kNumbers), ReducedDim(A::self, A::dim, A::keepDim, A::valuesOut),
             ReducedDim(A::self, A::dim, A::keepDim, A::indicesOut), SameDtype(A::self, A::valuesOut),
             DtypeIn(A::indicesOut, TypeSet{DType::i64}), NotEmptyDim(A::self, A::dim))
      .Tolerance("exact")
      .Like(like);
}

}  // namespace
NPU_OP(Median) = Op<Median>()
                     .Rules(DtypeIn(Median::self, kNumbers), ReducedAll(Median::self, Median::valuesOut),
                            SameDtype(Median::self, Median::valuesOut))
                     .Tolerance("exact")
                     .Like("torch.median(self)")
                     .Does([](const Call& c) {
                       return RunMedian(c, c.args[Median::self], -1, false, c.args[Median::valuesOut], nullptr);
                     });
NPU_OP(NanMedian) = Op<NanMedian>()
                        .Rules(DtypeIn(NanMedian::self, kNumbers), ReducedAll(NanMedian::self, NanMedian::out),
                               SameDtype(NanMedian::self, NanMedian::out))
                        .Tolerance("exact")
                        .Like("torch.nanmedian(self)")
                        .Does([](const Call& c) {
                          return RunMedian(c, c.args[NanMedian::self], -1, true, c.args[NanMedian::out], nullptr);
                        });
// Which of several equal elements is named is nobody's promise; ours is the first.
NPU_OP(MedianDim) = MedianOfDim<MedianDim>("torch.median(self, dim, keepDim)").Does([](const Call& c) {
  const Tensor& x = c.args[MedianDim::self];
  return RunMedian(c, x, WrapDim(c.args[MedianDim::dim], x.rank), false, c.args[MedianDim::valuesOut],
                   &c.args[MedianDim::indicesOut]);
});
NPU_OP(NanMedianDim) = MedianOfDim<NanMedianDim>("torch.nanmedian(self, dim, keepDim)").Does([](const Call& c) {
  const Tensor& x = c.args[NanMedianDim::self];
  return RunMedian(c, x, WrapDim(c.args[NanMedianDim::dim], x.rank), true, c.args[NanMedianDim::valuesOut],
                   &c.args[NanMedianDim::indicesOut]);
});

using abi::UnfoldGrad;
NPU_OP(UnfoldGrad) =
    Op<UnfoldGrad>()
        .Rules(DtypeIn(UnfoldGrad::gradOut, kFloats), SameDtype(UnfoldGrad::gradOut, UnfoldGrad::gradIn),
               AnyShape(UnfoldGrad::gradIn))
        .Uses(UnfoldGrad::inputSizes, UnfoldGrad::dim, UnfoldGrad::size, UnfoldGrad::step)
        .Tolerance("accumulated")
        .Like("torch.ops.aten.unfold_backward(gradOut, inputSizes, dim, size, step)")
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          const auto sizes = a[UnfoldGrad::inputSizes];
          const int64_t size = a[UnfoldGrad::size], step = a[UnfoldGrad::step];
          if (sizes.size() >= kMaxRank)
            return p.Refuse("inputSizes has {} values.", sizes.size()).Remedy("Give at most {}.", kMaxRank - 1);
          Dims in;
          for (int64_t n : sizes) in.Push(n);
          const int d = WrapDim(a[UnfoldGrad::dim], in.rank);
          const int64_t n = in.rank == 0 ? 1 : d < 0 ? -1 : in.size[U(d)];
          if (d < 0 || step < 1 || size < 0 || size > n) {
            return p
                .Refuse("dim is {}, size {} and step {} for inputSizes {}.", a[UnfoldGrad::dim], size, step,
                        ShapeText(sizes))
                .Remedy("dim exists, windows fit into it, step is at least 1.");
          }
          Dims out = in;
          if (in.rank > 0) out.size[U(d)] = (n - size) / step + 1;
          out.Push(size);
          NPU_TRY(WantShape(p, UnfoldGrad::gradOut, out, "that is not the shape of the unfolded input"));
          return WantShape(p, UnfoldGrad::gradIn, in, "inputSizes says so");
        })
        .Does([](const Call& c) -> Status {
          const Args& a = c.args;
          const Tensor &dx = a[UnfoldGrad::gradIn], &dy = a[UnfoldGrad::gradOut];
          const int d = WrapDim(a[UnfoldGrad::dim], dx.rank);
          const int64_t size = a[UnfoldGrad::size], step = a[UnfoldGrad::step], n = DimSize(dx, d),
                        windows = dx.rank == 0 ? 1 : dy.shape[U(d)];
          int64_t inner = 1;
          for (int k = d + 1; k < dx.rank; ++k) inner *= dx.shape[U(k)];
          return WithFloat(dx.dtype, [&]<class T>() -> Status {
            const Values<T> from(dy, c.parallel);
            Results<T> to(dx, c.parallel);
            std::fill(to.data(), to.data() + to.size(), T{0});
            const int64_t outer = to.size() / std::max<int64_t>(1, n * inner);
            c.parallel.For(outer, Grain(n * inner), [&](int64_t begin, int64_t end) {
              for (int64_t o = begin; o < end; ++o)
                for (int64_t w = 0; w < windows; ++w)
                  for (int64_t i = 0; i < inner; ++i)
                    for (int64_t k = 0; k < size; ++k)
                      to[(o * n + w * step + k) * inner + i] += from[((o * windows + w) * inner + i) * size + k];
            });
            return {};
          });
        });

using abi::ChannelShuffle, abi::ChunkCat;
NPU_OP(ChannelShuffle) = Op<ChannelShuffle>()
                             .Rules(SameShape(ChannelShuffle::self, ChannelShuffle::out),
                                    SameDtype(ChannelShuffle::self, ChannelShuffle::out))
                             .Uses(ChannelShuffle::groups)
                             .Tolerance("exact")
                             .Like("torch.channel_shuffle(self, groups)")
                             .Prepares([](Planning& p) -> Status {
                               const Tensor& x = p.args[ChannelShuffle::self];
                               const int64_t groups = p.args[ChannelShuffle::groups];
                               if (x.rank >= 3 && x.rank < kMaxRank && groups >= 1 && x.shape[1] % groups == 0)
                                 return {};
                               return p.Refuse("self has shape {} and groups is {}.", ShapeText(x.Shape()), groups)
                                   .Remedy("Pass at least three dimensions; groups divides the channels.");
                             })
                             .Does([](const Call& c) -> Status {
                               const int64_t groups = c.args[ChannelShuffle::groups];
                               // self as [n, groups, channels / groups, …], out as [n, channels / groups, groups, …].
                               auto split = [&](const Tensor& t, int64_t first) {
                                 Tensor s = t;
                                 s.rank = static_cast<int8_t>(t.rank + 1);
                                 for (int d = t.rank; d > 2; --d)
                                   s.shape[U(d)] = t.shape[U(d - 1)], s.strides[U(d)] = t.strides[U(d - 1)];
                                 s.shape[1] = first, s.shape[2] = t.shape[1] / std::max<int64_t>(first, 1);
                                 s.strides[1] = t.strides[1] * s.shape[2], s.strides[2] = t.strides[1];
                                 return s;
                               };
                               Tensor from = split(c.args[ChannelShuffle::self], groups);
                               std::swap(from.shape[1], from.shape[2]);
                               std::swap(from.strides[1], from.strides[2]);
                               simd::Copy(
                                   from,
                                   split(c.args[ChannelShuffle::out], c.args[ChannelShuffle::self].shape[1] / groups),
                                   c.parallel);
                               return {};
                             });

}  // namespace npu::ops
