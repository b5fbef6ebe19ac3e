// Slices told apart, chunks side by side, rows written by coordinates, and numbers rounded to a grid: plain loops.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"
#include "ops/core/object.h"
#include "ops/index/rules.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

// The tensor with dimension d in front.
Tensor Fronted(const Tensor& t, int d) {
  Tensor s = t;
  for (int k = d; k > 0; --k)
    std::swap(s.shape[U(k)], s.shape[U(k - 1)]), std::swap(s.strides[U(k)], s.strides[U(k - 1)]);
  return s;
}

}  // namespace

// Slices along dimension d: all equal ones as one (in order), or only those that follow one another.
Status UniqueSlices(const Call& c, const Tensor& self, int d, bool globally, const SlicesOut& out) {
  return WithNumber(self.dtype, [&]<class T>() -> Status {
    const Values<T> x(Fronted(self, d), c.parallel);
    const int64_t n = self.rank == 0 ? 1 : self.shape[U(d)], width = n == 0 ? 0 : x.size() / n;
    std::vector<int64_t> order(U(n)), firsts, counts, group(U(n));
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto row = [&](int64_t i) { return x.data() + i * width; };
    if (globally) {
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return std::lexicographical_compare(row(a), row(a) + width, row(b), row(b) + width);
      });
    }
    for (int64_t i : order) {
      if (firsts.empty() || !std::equal(row(i), row(i) + width, row(firsts.back()))) firsts.push_back(i), counts.push_back(0);
      ++counts.back();
      group[U(i)] = static_cast<int64_t>(firsts.size()) - 1;
    }
    Dims shape = DimsOf(self);
    if (self.rank > 0) shape.size[U(d)] = static_cast<int64_t>(firsts.size());
    std::vector<T> kept;
    for (int64_t i : firsts) kept.insert(kept.end(), row(i), row(i) + width);
    const Tensor to = Fronted(MakeContiguous(out.values.data, out.values.dtype, shape.Span()), d);
    simd::Copy(MakeContiguous(kept.data(), TypeOf<T>(), to.Shape()), to, c.parallel);
    if (out.counts != nullptr) std::copy(counts.begin(), counts.end(), out.counts->As<int64_t>());
    if (out.inverse != nullptr)
      simd::Copy(MakeContiguous(group.data(), DType::i64, std::array<int64_t, 1>{n}), MakeContiguous(out.inverse->data, DType::i64, std::array<int64_t, 1>{n}),
                 c.parallel);
    c.live[0]->SetTrueShape(shape.Span());
    if (out.counts != nullptr) c.live[1]->SetTrueShape(std::array<int64_t, 1>{static_cast<int64_t>(counts.size())});
    return {};
  });
}

using abi::UniqueDim, abi::ChunkCat, abi::ScatterNdUpdate, abi::Quantize;
// Slices along a dim, sorted as torch sorts them: by their elements in order.
NPU_OP(UniqueDim) = Op<UniqueDim>()
                        .Rules(DtypeIn(UniqueDim::self, kReals),
                               AnyShapes(UniqueDim::valueOut, UniqueDim::inverseOut, UniqueDim::countsOut),
                               SameDtype(UniqueDim::self, UniqueDim::valueOut),
                               DtypeIn(UniqueDim::inverseOut, TypeSet{DType::i64}),
                               DtypeIn(UniqueDim::countsOut, TypeSet{DType::i64}),
                               DimInRange(UniqueDim::dim, UniqueDim::self))
                        .Uses(UniqueDim::sorted, UniqueDim::returnInverse)
                        .DataDependent(UniqueDim::valueOut, UniqueDim::countsOut)
                        .Tolerance("exact")
                        .Like("torch.unique(self, sorted, returnInverse, True, dim)")
                        .Prepares([](Planning& p) -> Status {
                          const Tensor& self = p.args[UniqueDim::self];
                          if (self.rank == 0) return p.Refuse("self has no dimension.").Remedy("Pass at least one.");
                          const int64_t n = self.shape[U(WrapDim(p.args[UniqueDim::dim], self.rank))];
                          if (p.args[UniqueDim::valueOut].Numel() < self.Numel() ||
                              !p.args[UniqueDim::valueOut].Contiguous() || p.args[UniqueDim::countsOut].Numel() < n) {
                            return p
                                .Refuse("valueOut has {} and countsOut {} elements.",
                                        p.args[UniqueDim::valueOut].Numel(), p.args[UniqueDim::countsOut].Numel())
                                .Remedy("Give room for all {} slices, without gaps.", n);
                          }
                          if (!p.args[UniqueDim::returnInverse]) return {};
                          return WantShape(p, UniqueDim::inverseOut, {1, {n}}, "there is one for each slice");
                        })
                        .Does([](const Call& c) -> Status {
                          using A = UniqueDim;
                          const SlicesOut out{c.args[A::valueOut], c.args[A::returnInverse] ? &c.args[A::inverseOut] : nullptr,
                                              &c.args[A::countsOut]};
                          return UniqueSlices(c, c.args[A::self], WrapDim(c.args[A::dim], c.args[A::self].rank), true, out);
                        });

// Each tensor's dim cut into numChunks pieces (the last filled up with zeros), pieces of one number side by side.
NPU_OP(ChunkCat) = Op<ChunkCat>()
                       .Rules(AnyShape(ChunkCat::out), DtypeIn(ChunkCat::out, kFloats))
                       .Uses(ChunkCat::tensors, ChunkCat::dim, ChunkCat::numChunks)
                       .Tolerance("exact")
                       .Like("torch._chunk_cat(tensors, dim, numChunks)")
                       .Prepares([](Planning& p) -> Status {
                         const auto list = p.args[ChunkCat::tensors];
                         const int64_t chunks = p.args[ChunkCat::numChunks];
                         if (list.empty() || chunks < 1)
                           return p.Refuse("there are {} tensors and numChunks is {}.", list.size(), chunks)
                               .Remedy("Pass at least one of each.");
                         const int d = WrapDim(p.args[ChunkCat::dim], list[0].rank);
                         Dims want;
                         int64_t width = 0;
                         for (const Tensor& t : list) {
                           if (t.dtype == DType::none || t.rank == 0 || d < 0 || t.rank <= d || !IsFloat(t.dtype) ||
                               !npu::SameShape(t.Shape().first(U(d)), list[0].Shape().first(U(d)))) {
                             return p.Refuse("a tensor has shape {} and type {}.", ShapeText(t.Shape()), Name(t.dtype))
                                 .Remedy("Tensors are floats and agree before dim {}.", d);
                           }
                           int64_t rest = 1;
                           for (int k = d + 1; k < t.rank; ++k) rest *= t.shape[U(k)];
                           width += (t.shape[U(d)] + chunks - 1) / chunks * rest;
                         }
                         for (int k = 0; k < d; ++k) want.Push(list[0].shape[U(k)]);
                         want.Push(chunks);
                         want.Push(width);
                         return WantShape(p, ChunkCat::out, want, "that is not the shape of the chunks");
                       })
                       .Does([](const Call& c) -> Status {
                         const auto list = c.args[ChunkCat::tensors];
                         const int64_t chunks = c.args[ChunkCat::numChunks];
                         const int d = WrapDim(c.args[ChunkCat::dim], list[0].rank);
                         return WithFloat(c.args[ChunkCat::out].dtype, [&]<class T>() -> Status {
                           Results<T> out(c.args[ChunkCat::out], c.parallel);
                           const int64_t width = SizeAt(c.args[ChunkCat::out], 0),
                                         outer = width == 0 ? 0 : out.size() / (width * chunks);
                           std::fill(out.data(), out.data() + out.size(), T{0});
                           int64_t column = 0;
                           for (const Tensor& t : list) {
                             const Values<T> x(t, c.parallel);
                             const int64_t slice = outer == 0 ? 0 : x.size() / outer;
                             int64_t rest = 1;
                             for (int k = d + 1; k < t.rank; ++k) rest *= t.shape[U(k)];
                             const int64_t piece = (t.shape[U(d)] + chunks - 1) / chunks * rest;
                             for (int64_t o = 0; o < outer; ++o)
                               for (int64_t i = 0; i < slice; ++i)
                                 out[(o * chunks + i / piece) * width + column + i % piece] = x[o * slice + i];
                             column += piece;
                           }
                           return {};
                         });
                       });

// varRef[indices[..., :]] = updates[...]
NPU_OP(ScatterNdUpdate) =
    Op<ScatterNdUpdate>()
        .Rules(DtypeIn(ScatterNdUpdate::varRef, kAnyType), SameDtype(ScatterNdUpdate::varRef, ScatterNdUpdate::updates),
               DtypeIn(ScatterNdUpdate::indices, kIndexTypes))
        .Tolerance("exact")
        .Like("varRef.index_put_(indices.unbind(-1), updates)")
        .Prepares([](Planning& p) -> Status {
          using A = ScatterNdUpdate;
          const Tensor &x = p.args[A::varRef], &index = p.args[A::indices];
          const int64_t depth = SizeAt(index, 0);
          if (index.rank < 1 || depth < 1 || depth > x.rank)
            return p.Refuse("indices has shape {} for {} dimensions.", ShapeText(index.Shape()), x.rank)
                .Remedy("Its last size counts coordinates.");
          Dims want{index.rank - 1, index.shape};
          for (int d = static_cast<int>(depth); d < x.rank && want.rank < kMaxRank; ++d) want.Push(x.shape[U(d)]);
          return WantShape(p, A::updates, want, "there is one slice for each row of indices");
        })
        .Does([](const Call& c) -> Status {
          using A = ScatterNdUpdate;
          const Tensor &x = c.args[A::varRef], &index = c.args[A::indices];
          const int64_t depth = SizeAt(index, 0);
          const Values<int64_t> at(index, c.parallel);
          const simd::DenseIn updates(c.args[A::updates], c.parallel);
          Tensor slice = x;
          slice.rank = static_cast<int8_t>(x.rank - depth);
          for (int d = 0; d < slice.rank; ++d)
            slice.shape[U(d)] = x.shape[U(d + depth)], slice.strides[U(d)] = x.strides[U(d + depth)];
          const int64_t size = slice.Numel();
          for (int64_t i = 0; i < at.size() / depth; ++i) {
            int64_t offset = 0;
            for (int64_t d = 0; d < depth; ++d) {
              const int64_t k = at[i * depth + d];
              if (k < 0 || k >= x.shape[U(d)])
                return IndexError(c, A::indices, A::varRef, {k, i * depth + d, static_cast<int>(d), x.shape[U(d)]});
              offset += k * x.strides[U(d)];
            }
            slice.data = simd::At(x.data, x.dtype, offset);
            simd::Copy(MakeContiguous(simd::At(updates->data, x.dtype, i * size), x.dtype, slice.Shape()), slice,
                       c.parallel);
          }
          return {};
        });

// out = round(x / scale) + zero point, held within out's type.
NPU_OP(Quantize) =
    Op<Quantize>()
        .Rules(DtypeIn(Quantize::x, kFloats), SameShape(Quantize::x, Quantize::out),
               DtypeIn(Quantize::out, TypeSet{DType::i8, DType::u8, DType::i32}), DtypeIn(Quantize::scales, kFloats),
               NotEmpty(Quantize::scales))
        .Uses(Quantize::zeroPoints, Quantize::dtype, Quantize::axis)
        .Tolerance("exact")
        .Like("torch.quantize_per_channel(x, scales, zeroPoints, axis, torch.qint8).int_repr()")
        .Prepares([](Planning& p) -> Status {
          const Tensor &x = p.args[Quantize::x], *zero = p.args[Quantize::zeroPoints];
          const int64_t n = p.args[Quantize::scales].Numel();
          const int axis = WrapDim(p.args[Quantize::axis], x.rank);
          if (zero != nullptr && zero->Numel() != n)
            return p.Refuse("there are {} scales and {} zero points.", n, zero->Numel()).Remedy("Give as many.");
          if (n == 1 || (axis >= 0 && x.rank > 0 && x.shape[U(axis)] == n)) return {};
          return p
              .Refuse("there are {} scales for axis {} of shape {}.", n, p.args[Quantize::axis], ShapeText(x.Shape()))
              .Remedy("Give one, or one for each of the axis.");
        })
        .Does([](const Call& c) -> Status {
          const Tensor &x = c.args[Quantize::x], *zero = c.args[Quantize::zeroPoints], &out = c.args[Quantize::out];
          const Values<float> in(x, c.parallel), scales(c.args[Quantize::scales], c.parallel);
          std::vector<double> zeros(U(scales.size()));
          if (zero != nullptr) {
            const Values<double> given(*zero, c.parallel);
            zeros.assign(given.data(), given.data() + given.size());
          }
          const double low = out.dtype == DType::i8 ? -128 : out.dtype == DType::u8 ? 0 : -2147483648.0;
          const double high = out.dtype == DType::i8 ? 127 : out.dtype == DType::u8 ? 255 : 2147483647.0;
          int64_t inner = 1;
          for (int d = std::max(0, WrapDim(c.args[Quantize::axis], x.rank)) + 1; d < x.rank; ++d)
            inner *= x.shape[U(d)];
          Results<int64_t> to(out, c.parallel);
          for (int64_t i = 0; i < in.size(); ++i) {
            const int64_t k = scales.size() == 1 ? 0 : i / inner % scales.size();
            to[i] = static_cast<int64_t>(
                std::clamp(static_cast<double>(std::nearbyint(in[i] * (1.0F / scales[k]))) + zeros[U(k)], low, high));
          }
          return {};
        });

}  // namespace npu::ops
