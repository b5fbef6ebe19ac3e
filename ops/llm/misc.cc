// Small fused operators of language models: a gated gelu, sampling limits, caches that are written by slot.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

}  // namespace

using abi::GeluMul, abi::ApplyTopKTopP, abi::InterleaveRope, abi::ScatterPaKvCache, abi::InplaceScatterUpdate;

// gelu(first half) · second half along the last dimension.
NPU_OP(GeluMul) = Op<GeluMul>()
                      .Optional(GeluMul::approximateOptional)
                      .Rules(FloatTensors(GeluMul::input, GeluMul::out), SameDtype(GeluMul::input, GeluMul::out),
                             AnyShape(GeluMul::out))
                      .Uses(GeluMul::approximateOptional)
                      .Tolerance("accumulated")
                      .Like("gelu_mul(input, approximateOptional)")
                      .Prepares([](Planning& p) -> Status {
                        const Tensor& x = p.args[GeluMul::input];
                        const bool named = !p.args.Null(GeluMul::approximateOptional);
                        if (named && p.args[GeluMul::approximateOptional] != "none" &&
                            p.args[GeluMul::approximateOptional] != "tanh")
                          return p.Refuse("approximateOptional is '{}'.", p.args[GeluMul::approximateOptional])
                              .Remedy("Pass none or tanh.");
                        if (x.rank < 1 || SizeAt(x, 0) % 2 != 0)
                          return p.Refuse("input has shape {}.", ShapeText(x.Shape())).Remedy("Its last size is even.");
                        Dims want = DimsOf(x);
                        want.size[U(x.rank - 1)] /= 2;
                        return WantShape(p, GeluMul::out, want, "it is half of the input");
                      })
                      .Does([](const Call& c) -> Status {
                        const bool tanh = !c.args.Null(GeluMul::approximateOptional) &&
                                          c.args[GeluMul::approximateOptional] == "tanh";
                        return WithFloat(c.args[GeluMul::input].dtype, [&]<class T>() -> Status {
                          const Values<T> x(c.args[GeluMul::input], c.parallel);
                          Results<T> out(c.args[GeluMul::out], c.parallel);
                          const int64_t n = SizeAt(c.args[GeluMul::out], 0);
                          c.parallel.For(n == 0 ? 0 : out.size() / n, Grain(n * 8), [&](int64_t begin, int64_t end) {
                            for (int64_t r = begin; r < end; ++r)
                              for (int64_t i = 0; i < n; ++i) {
                                const T a = x[2 * r * n + i];
                                const T gelu =
                                    tanh ? T(0.5) * a *
                                               (1 + std::tanh(T(0.7978845608028654) * (a + T(0.044715) * a * a * a)))
                                         : T(0.5) * a * (1 + std::erf(a * T(0.70710678118654752440)));
                                out[r * n + i] = gelu * x[(2 * r + 1) * n + i];
                              }
                          });
                          return {};
                        });
                      });

// All but the k largest, and of those all but the fewest whose probabilities reach p, become minus infinity.
NPU_OP(ApplyTopKTopP) =
    Op<ApplyTopKTopP>()
        .Rules(FloatTensors(ApplyTopKTopP::logits, ApplyTopKTopP::p, ApplyTopKTopP::out),
               RankIs(ApplyTopKTopP::logits, 2), SameShape(ApplyTopKTopP::logits, ApplyTopKTopP::out),
               SameDtype(ApplyTopKTopP::logits, ApplyTopKTopP::out), DtypeIn(ApplyTopKTopP::k, kIndexTypes))
        .Tolerance("exact")
        .Like("top_k_top_p(logits, p, k)")
        .Prepares([](Planning& p) -> Status {
          using A = ApplyTopKTopP;
          const int64_t rows = p.args[A::logits].shape[0];
          for (const TensorToken t : {TensorToken(A::p), TensorToken(A::k)})
            if (const Tensor* given = p.args.Maybe(t); given != nullptr && given->Numel() != rows)
              return p.Refuse("{} has shape {} for {} rows.", p.ParamName(t), ShapeText(given->Shape()), rows)
                  .Remedy("There is one for each row.");
          return {};
        })
        .Does([](const Call& c) -> Status {
          using A = ApplyTopKTopP;
          const Values<float> x(c.args[A::logits], c.parallel);
          std::optional<Values<float>> limit;
          std::optional<Values<int64_t>> count;
          if (c.args[A::p] != nullptr) limit.emplace(*c.args[A::p], c.parallel);
          if (c.args[A::k] != nullptr) count.emplace(*c.args[A::k], c.parallel);
          Results<float> out(c.args[A::out], c.parallel);
          const int64_t n = c.args[A::logits].shape[1];
          c.parallel.For(c.args[A::logits].shape[0], Grain(n * 16), [&](int64_t begin, int64_t end) {
            std::vector<int64_t> order(U(n));
            std::vector<double> weight(U(n));
            for (int64_t r = begin; r < end; ++r) {
              const float* row = x.data() + r * n;
              std::iota(order.begin(), order.end(), int64_t{0});
              std::stable_sort(order.begin(), order.end(),
                               [row](int64_t a, int64_t b) { return row[a] < row[b]; });  // smallest first
              std::copy(row, row + n, out.data() + r * n);
              // Elements equal to the k-th largest stay.
              int64_t first = 0;
              if (count && n > 0) {
                const float least = row[order[U(n - std::clamp<int64_t>((*count)[r], 1, n))]];
                while (first < n && row[order[U(first)]] < least) out[r * n + order[U(first++)]] = -INFINITY;
              }
              if (!limit || n == 0) continue;
              double sum = 0;
              const float top = row[order.back()];
              for (int64_t i = first; i < n; ++i)
                sum += weight[U(i)] = std::exp(static_cast<double>(row[order[U(i)]]) - static_cast<double>(top));
              double reached = 0;
              for (int64_t i = first; i < n - 1; ++i) {  // the largest always stays
                reached += weight[U(i)] / sum;
                if (reached <= 1 - static_cast<double>((*limit)[r])) out[r * n + order[U(i)]] = -INFINITY;
              }
            }
          });
          return {};
        });

// Pairs of neighbours are brought to halves and turned: out = h · cos + turned(h) · sin for [batch, heads, tokens,
// width].
NPU_OP(InterleaveRope) = Op<InterleaveRope>()
                             .Rules(FloatTensors(InterleaveRope::x, InterleaveRope::cos, InterleaveRope::sin,
                                                 InterleaveRope::out),
                                    RankIs(InterleaveRope::x, 4), SameShape(InterleaveRope::x, InterleaveRope::out),
                                    ExpandsTo(InterleaveRope::cos, InterleaveRope::x),
                                    SameShape(InterleaveRope::cos, InterleaveRope::sin))
                             .Tolerance("accumulated")
                             .Like("interleave_rope(x, cos, sin)")
                             .Prepares([](Planning& p) -> Status {
                               if (SizeAt(p.args[InterleaveRope::x], 0) % 2 == 0) return {};
                               return p.Refuse("x has shape {}.", ShapeText(p.args[InterleaveRope::x].Shape()))
                                   .Remedy("Its last size is even.");
                             })
                             .Does([](const Call& c) -> Status {
                               using A = InterleaveRope;
                               const Tensor& shape = c.args[A::x];
                               const Values<float> x(shape, c.parallel),
                                   cos(Expanded(c.args[A::cos], shape.Shape()), c.parallel),
                                   sin(Expanded(c.args[A::sin], shape.Shape()), c.parallel);
                               Results<float> out(c.args[A::out], c.parallel);
                               const int64_t n = SizeAt(shape, 0), half = n / 2;
                               c.parallel.For(n == 0 ? 0 : x.size() / n, Grain(n * 2), [&](int64_t begin, int64_t end) {
                                 std::vector<float> row(U(n));
                                 for (int64_t r = begin; r < end; ++r) {
                                   for (int64_t i = 0; i < half; ++i)
                                     row[U(i)] = x[r * n + 2 * i], row[U(half + i)] = x[r * n + 2 * i + 1];
                                   for (int64_t i = 0; i < n; ++i) {
                                     const float turned = i < half ? -row[U(half + i)] : row[U(i - half)];
                                     out[r * n + i] = row[U(i)] * cos[r * n + i] + turned * sin[r * n + i];
                                   }
                                 }
                               });
                               return {};
                             });

namespace {

// Rows of tokens [tokens, heads, columns] to their places in a cache of blocks [blocks, size, heads, columns].
Status WriteSlots(const Call& c, const Tensor& rows, const Values<int64_t>& slot, const Tensor& cache) {
  const int64_t size = cache.shape[1], places = cache.shape[0] * size;
  for (int64_t t = 0; t < slot.size(); ++t) {
    if (slot[t] < 0) continue;  // tokens that are padding
    if (slot[t] >= places)
      return Error(Code::kTaskException, "{}: slotMapping[{}] is {}, but the cache has {} places.", c.op.name, t,
                   slot[t], places)
          .Remedy("Places are blocks times their size.");
    Tensor from = rows, to = cache;
    from.data = simd::At(rows.data, rows.dtype, t * rows.strides[0]);
    to.data = simd::At(cache.data, cache.dtype, slot[t] / size * cache.strides[0] + slot[t] % size * cache.strides[1]);
    from.rank = to.rank = 2;
    for (size_t d = 0; d < 2; ++d) {
      from.shape[d] = to.shape[d] = rows.shape[d + 1];
      from.strides[d] = rows.strides[d + 1], to.strides[d] = cache.strides[d + 2];
    }
    simd::Copy(from, to, c.parallel);
  }
  return {};
}

Status WantCache(const Planning& p, TensorToken rows_token, TensorToken cache_token, const Tensor& slots) {
  const Tensor &rows = *p.args.Maybe(rows_token), &cache = *p.args.Maybe(cache_token);
  if (rows.rank == 3 && cache.rank == 4 && slots.rank == 1 && slots.shape[0] == rows.shape[0] &&
      cache.shape[2] == rows.shape[1] && cache.shape[3] == rows.shape[2] && rows.dtype == cache.dtype)
    return {};
  return p
      .Refuse("{} is {} of shape {}, {} {} of shape {} and slotMapping has shape {}.", p.ParamName(rows_token),
              Name(rows.dtype), ShapeText(rows.Shape()), p.ParamName(cache_token), Name(cache.dtype),
              ShapeText(cache.Shape()), ShapeText(slots.Shape()))
      .Remedy(
          "Rows are [tokens, heads, columns], the cache [blocks, size, heads, columns], and there is one place for "
          "each token.");
}

}  // namespace

NPU_OP(ScatterPaKvCache) =
    Op<ScatterPaKvCache>()
        .Optional(ScatterPaKvCache::cacheModeOptional, ScatterPaKvCache::scatterModeOptional,
                  ScatterPaKvCache::stridesOptional, ScatterPaKvCache::offsetsOptional)
        .Rules(DtypeIn(ScatterPaKvCache::slotMapping, kIndexTypes))
        .Uses(ScatterPaKvCache::key, ScatterPaKvCache::keyCacheRef, ScatterPaKvCache::value,
              ScatterPaKvCache::valueCacheRef, ScatterPaKvCache::compressLensOptional,
              ScatterPaKvCache::compressSeqOffsetOptional, ScatterPaKvCache::seqLensOptional,
              ScatterPaKvCache::cacheModeOptional, ScatterPaKvCache::scatterModeOptional,
              ScatterPaKvCache::stridesOptional, ScatterPaKvCache::offsetsOptional)
        .Tolerance("exact")
        .Like("scatter_pa_kv_cache(key, value, slotMapping)")
        .Prepares([](Planning& p) -> Status {
          using A = ScatterPaKvCache;
          for (const TensorToken t : {TensorToken(A::compressLensOptional), TensorToken(A::compressSeqOffsetOptional),
                                      TensorToken(A::seqLensOptional)})
            if (const Tensor* given = p.args.Maybe(t); given != nullptr && given->Numel() > 0)
              return NotYet(p.op.name, fmt::format("{} (compressed caches) is not applied", p.ParamName(t)));
          const auto other = [&](TextIn t, std::initializer_list<std::string_view> known) {
            return !p.args.Null(t) && !p.args[t].empty() &&
                   std::find(known.begin(), known.end(), p.args[t]) == known.end();
          };
          if (other(A::cacheModeOptional, {"Norm", "None"}))
            return NotYet(p.op.name, fmt::format("caches of mode {} are not written; plain ones are",
                                                 p.args[A::cacheModeOptional]));
          if (other(A::scatterModeOptional, {"None"}))
            return NotYet(p.op.name, fmt::format("scatter mode {} is not computed", p.args[A::scatterModeOptional]));
          NPU_TRY(WantCache(p, A::key, A::keyCacheRef, p.args[A::slotMapping]));
          return WantCache(p, A::value, A::valueCacheRef, p.args[A::slotMapping]);
        })
        .Does([](const Call& c) -> Status {
          using A = ScatterPaKvCache;
          const Values<int64_t> slot(c.args[A::slotMapping], c.parallel);
          NPU_TRY(WriteSlots(c, c.args[A::key], slot, c.args[A::keyCacheRef]));
          return WriteSlots(c, c.args[A::value], slot, c.args[A::valueCacheRef]);
        });

// Slices along the axis from a place of each batch on are replaced.
NPU_OP(InplaceScatterUpdate) =
    Op<InplaceScatterUpdate>()
        .Rules(DtypeIn(InplaceScatterUpdate::indices, kIndexTypes),
               SameDtype(InplaceScatterUpdate::data, InplaceScatterUpdate::updates),
               DimInRange(InplaceScatterUpdate::axis, InplaceScatterUpdate::data))
        .Tolerance("exact")
        .Like("scatter_update(data, indices, updates, axis)")
        .Prepares([](Planning& p) -> Status {
          using A = InplaceScatterUpdate;
          const Tensor &data = p.args[A::data], &updates = p.args[A::updates], &indices = p.args[A::indices];
          const int axis = WrapDim(p.args[A::axis], data.rank);
          bool fits = data.rank >= 2 && axis > 0 && updates.rank == data.rank && indices.rank == 1 &&
                      indices.shape[0] == updates.shape[0] && updates.shape[0] <= data.shape[0];
          for (int d = 1; fits && d < data.rank; ++d)
            fits = d == axis ? updates.shape[U(d)] <= data.shape[U(d)] : updates.shape[U(d)] == data.shape[U(d)];
          if (fits) return {};
          return p
              .Refuse("data has shape {}, updates {}, indices {} and axis is {}.", ShapeText(data.Shape()),
                      ShapeText(updates.Shape()), ShapeText(indices.Shape()), p.args[A::axis])
              .Remedy(
                  "Updates are like data but along the axis, which is not the first; there is one index for each of "
                  "their batches.");
        })
        .Does([](const Call& c) -> Status {
          using A = InplaceScatterUpdate;
          const Tensor &data = c.args[A::data], &updates = c.args[A::updates];
          const auto axis = U(WrapDim(c.args[A::axis], data.rank));
          const Values<int64_t> at(c.args[A::indices], c.parallel);
          for (int64_t b = 0; b < at.size(); ++b) {
            if (at[b] < 0 || at[b] > data.shape[axis] - updates.shape[axis])
              return Error(Code::kTaskException, "{}: indices[{}] is {}, but {} of {} places are written from there.",
                           c.op.name, b, at[b], updates.shape[axis], data.shape[axis])
                  .Remedy("Updates end within data.");
            Tensor from = updates, to = data;
            from.data = simd::At(updates.data, updates.dtype, b * updates.strides[0]);
            to.data = simd::At(data.data, data.dtype, b * data.strides[0] + at[b] * data.strides[axis]);
            from.shape[0] = to.shape[0] = 1;
            to.shape[axis] = updates.shape[axis];
            simd::Copy(from, to, c.parallel);
          }
          return {};
        });

}  // namespace npu::ops
