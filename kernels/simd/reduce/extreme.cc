// Largest and smallest elements with their positions.
#include <algorithm>
#include <type_traits>

#include "kernels/simd/reduce/reduce.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/scratch.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {
namespace {

constexpr int64_t kPiece = 65536;
constexpr int64_t kColumns = 512;

template <class C>
bool Better(bool largest, C a, C than) {
  if (than != than) return false;
  return (largest ? a > than : a < than) || a != a;
}

template <class C>
struct Best {
  C value;
  int64_t index;
};

template <class C>
class Search {
 public:
  Search(const Tensor& x, int dim, bool largest, const Tensor* values, const Tensor* indices)
      : x_(x), largest_(largest), values_(values), indices_(indices) {
    const auto at = static_cast<size_t>(dim);
    length_ = x.rank == 0 ? 1 : x.shape[at];
    step_ = x.rank == 0 ? 1 : x.strides[at];
    for (int d = 0; d < x.rank; ++d) {
      if (d == dim) continue;
      const auto i = static_cast<size_t>(d);
      kept_.Add(x.shape[i], {x.strides[i], OutStride(values, dim, d), OutStride(indices, dim, d)});
    }
    kept_.Merge();
  }

  void Run(Parallel& parallel) {
    const int64_t inner_step = kept_.rank > 0 ? kept_.stride[static_cast<size_t>(kept_.rank - 1)][0] : 0;
    if (kept_.rank > 0 && inner_step < step_ && length_ > 0) RunColumns(parallel);
    else RunRows(parallel);
  }

 private:
  int64_t OutStride(const Tensor* out, int dim, int d) const {
    if (out == nullptr) return 0;
    const bool keeps = out->rank == x_.rank;
    return out->strides[static_cast<size_t>(keeps || d < dim ? d : d - 1)];
  }

  void Put(C value, int64_t index, int64_t value_at, int64_t index_at) const {
    if (values_ != nullptr) Write(&value, 1, At(values_->data, values_->dtype, value_at), values_->dtype, 1);
    if (indices_ != nullptr) Write(&index, 1, At(indices_->data, indices_->dtype, index_at), indices_->dtype, 1);
  }

  Best<C> Scan(int64_t base, int64_t begin, int64_t end) const {
    alignas(64) C buffer[kChunk];
    Best<C> best{};
    for (int64_t at = begin; at < end; at += kChunk) {
      const int64_t n = std::min(kChunk, end - at);
      const C* row = Read(At(x_.data, x_.dtype, base + at * step_), x_.dtype, step_, n, buffer);
      const C top = Folds<C>().fold[largest_ ? kMax : kMin](row, n, 0);
      if (at == begin || Better(largest_, top, best.value)) best = {top, at + Folds<C>().find(row, top, n)};
    }
    return best;
  }

  void RunRows(Parallel& parallel) const {
    const int64_t outputs = kept_.Count();
    const int64_t pieces = std::max<int64_t>(1, (length_ + kPiece - 1) / kPiece);
    Scratch<Best<C>> partial(pieces > 1 ? outputs * pieces : 1);
    Best<C>* partials = partial.data();
    parallel.For(outputs * pieces, RowsPerBlock(std::min(length_, kPiece)), [&](int64_t begin, int64_t end) {
      Walk<3> kept = kept_;
      for (int64_t t = begin; t < end; ++t) {
        kept.Seek(t / pieces);
        const int64_t piece = t % pieces;
        const Best<C> best = Scan(kept.offset[0], piece * kPiece, std::min(length_, (piece + 1) * kPiece));
        if (pieces == 1) Put(best.value, best.index, kept.offset[1], kept.offset[2]);
        else partials[t] = best;
      }
    });
    if (pieces == 1) return;
    Walk<3> kept = kept_;
    kept.Seek(0);
    for (int64_t k = 0; k < outputs; ++k, kept.Next()) {
      Best<C> best = partials[k * pieces];
      for (int64_t i = 1; i < pieces; ++i) {
        if (Better(largest_, partials[k * pieces + i].value, best.value)) best = partials[k * pieces + i];
      }
      Put(best.value, best.index, kept.offset[1], kept.offset[2]);
    }
  }

  void RunColumns(Parallel& parallel) const {
    Walk<3> outer = kept_;
    const auto inner = outer.TakeInner();
    const int64_t width = std::min(inner.size, kColumns);
    const int64_t blocks = (inner.size + width - 1) / width;
    parallel.For(outer.Count() * blocks, RowsPerBlock(width * length_), [&](int64_t begin, int64_t end) {
      alignas(64) C buffer[kColumns];
      alignas(64) C best[kColumns];
      alignas(64) int64_t where[kColumns];
      for (int64_t t = begin; t < end; ++t) {
        Walk<3> kept = outer;
        kept.Seek(t / blocks);
        const int64_t first = t % blocks * width;
        const int64_t n = std::min(width, inner.size - first);
        const int64_t base = kept.offset[0] + first * inner.stride[0];
        for (int64_t r = 0; r < length_; ++r) {
          const C* row = Read(At(x_.data, x_.dtype, base + r * step_), x_.dtype, inner.stride[0], n, buffer);
          if (r == 0) {
            std::copy(row, row + n, best);
            std::fill(where, where + n, 0);
            continue;
          }
          for (int64_t i = 0; i < n; ++i) {
            if (Better(largest_, row[i], best[i])) {
              best[i] = row[i];
              where[i] = r;
            }
          }
        }
        const int64_t value_at = kept.offset[1] + first * inner.stride[1];
        const int64_t index_at = kept.offset[2] + first * inner.stride[2];
        if (values_ != nullptr) Write(best, n, At(values_->data, values_->dtype, value_at), values_->dtype, inner.stride[1]);
        if (indices_ != nullptr) {
          Write(where, n, At(indices_->data, indices_->dtype, index_at), indices_->dtype, inner.stride[2]);
        }
      }
    });
  }

  const Tensor& x_;
  const bool largest_;
  const Tensor* values_;
  const Tensor* indices_;
  int64_t length_ = 0;
  int64_t step_ = 0;
  Walk<3> kept_;  // x, values, indices
};

}  // namespace

void Extreme(const Tensor& x, int dim, bool largest, const Tensor* values, const Tensor* indices, Parallel& parallel) {
  if (x.dtype == DType::f64) Search<double>(x, dim, largest, values, indices).Run(parallel);
  else if (IsFloat(x.dtype)) Search<float>(x, dim, largest, values, indices).Run(parallel);
  else Search<int64_t>(x, dim, largest, values, indices).Run(parallel);
}

}  // namespace npu::simd
