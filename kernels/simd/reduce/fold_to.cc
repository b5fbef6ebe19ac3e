// The reduction engine. Two modes: the innermost run of memory is reduced ("rows"), or it is kept ("columns").
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/simd/reduce/reduce.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/scratch.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {
namespace {

constexpr int64_t kPiece = 65536;      // elements of one output that one block adds up
constexpr int64_t kColumns = 1024;     // columns of one block
constexpr int64_t kFlushRows = 32;     // rows added in the compute type before they go to the accumulator

template <class A>
A Identity(Fold fold) {
  using L = std::numeric_limits<A>;
  switch (fold) {
    case kProd: return 1;
    case kMax: case kMaxAbs: return std::is_integral_v<A> ? L::lowest() : -L::infinity();
    case kMin: case kMinAbs: return std::is_integral_v<A> ? L::max() : L::infinity();
    default: return 0;
  }
}

template <class A>
A Combine(Fold fold, A a, A b) {
  switch (fold) {
    case kProd:
      if constexpr (std::is_integral_v<A>) return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      else return a * b;
    case kMax: case kMaxAbs: return b > a || b != b ? b : a;
    case kMin: case kMinAbs: return b < a || b != b ? b : a;
    default:
      if constexpr (std::is_integral_v<A>) return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      else return a + b;
  }
}

template <class C, class A>
class Engine {
 public:
  Engine(const Tensor& x, uint32_t dims, Fold fold, const A* centers, A* acc)
      : x_(x), fold_(fold), centers_(centers), acc_(acc), table_(Folds<C>()) {
    int64_t out_stride = 1;
    std::array<int64_t, kKernelRank> out_strides{};
    for (int d = x.rank - 1; d >= 0; --d) {
      if ((dims >> d & 1u) == 0) {
        out_strides[static_cast<size_t>(d)] = out_stride;
        out_stride *= x.shape[static_cast<size_t>(d)];
      }
    }
    for (int d = 0; d < x.rank; ++d) {
      const auto i = static_cast<size_t>(d);
      if (dims >> d & 1u) reduced_.Add(x.shape[i], {x.strides[i]});
      else kept_.Add(x.shape[i], {x.strides[i], out_strides[i]});
    }
    reduced_.Sort(0);
    kept_.Sort(0);
    reduced_.Merge();
    kept_.Merge();
    outputs_ = kept_.Count();
    length_ = reduced_.Count();
  }

  void Run(Parallel& parallel) {
    if (outputs_ == 0) return;
    if (length_ == 0) return std::fill(acc_, acc_ + outputs_, Identity<A>(fold_));
    const int64_t reduced_step = reduced_.rank > 0 ? reduced_.stride[static_cast<size_t>(reduced_.rank - 1)][0] : 0;
    const int64_t kept_step = kept_.rank > 0 ? kept_.stride[static_cast<size_t>(kept_.rank - 1)][0] : 0;
    if (kept_.rank == 0 || (reduced_.rank > 0 && reduced_step <= kept_step)) RunRows(parallel);
    else RunColumns(parallel);
  }

 private:
  const void* Element(int64_t offset) const { return At(x_.data, x_.dtype, offset); }

  void RunRows(Parallel& parallel) {
    Walk<1> outer = reduced_;
    const auto inner = outer.TakeInner();
    const int64_t pieces = (length_ + kPiece - 1) / kPiece;
    Scratch<A> partial(pieces > 1 ? outputs_ * pieces : 1);
    A* partials = partial.data();
    parallel.For(outputs_ * pieces, RowsPerBlock(std::min(length_, kPiece)), [&](int64_t begin, int64_t end) {
      Walk<2> kept = kept_;
      int64_t k = begin / pieces;
      int64_t piece = begin % pieces;
      kept.Seek(k);
      for (int64_t t = begin; t < end; ++t) {
        const A center = centers_ != nullptr ? centers_[kept.offset[1]] : A{0};
        const A v = Piece(outer, inner.size, inner.stride[0], kept.offset[0], piece * kPiece,
                          std::min(length_, (piece + 1) * kPiece), static_cast<C>(center));
        if (pieces == 1) acc_[kept.offset[1]] = v;
        else partials[t] = v;
        if (++piece == pieces) {
          piece = 0;
          kept.Next();
        }
      }
    });
    if (pieces == 1) return;
    Walk<2> kept = kept_;
    kept.Seek(0);
    for (int64_t k = 0; k < outputs_; ++k, kept.Next()) {
      A v = Identity<A>(fold_);
      for (int64_t i = 0; i < pieces; ++i) v = Combine(fold_, v, partials[k * pieces + i]);
      acc_[kept.offset[1]] = v;
    }
  }

  // Elements [begin, end) of the reduced index space of the output whose memory starts at `base`.
  A Piece(const Walk<1>& space, int64_t n, int64_t step, int64_t base, int64_t begin, int64_t end, C center) const {
    alignas(64) C buffer[kChunk];
    A acc = Identity<A>(fold_);
    Walk<1> outer = space;
    outer.Seek(begin / n);
    int64_t in_row = begin % n;
    while (begin < end) {
      const int64_t len = std::min({n - in_row, kChunk, end - begin});
      const C* row = Read(Element(base + outer.offset[0] + in_row * step), x_.dtype, step, len, buffer);
      acc = Combine(fold_, acc, static_cast<A>(table_.fold[fold_](row, len, center)));
      begin += len;
      in_row += len;
      if (in_row == n) {
        in_row = 0;
        outer.Next();
      }
    }
    return acc;
  }

  void RunColumns(Parallel& parallel) {
    Walk<2> outer = kept_;
    const auto inner = outer.TakeInner();
    const int64_t width = std::min(inner.size, kColumns);
    const int64_t blocks = (inner.size + width - 1) / width;
    const int64_t piece_rows = std::max<int64_t>(kFlushRows, kPiece / width);
    const int64_t pieces = (length_ + piece_rows - 1) / piece_rows;
    Scratch<A> partial(pieces > 1 ? outputs_ * pieces : 1);
    A* partials = partial.data();
    const int64_t tasks = outer.Count() * blocks * pieces;
    parallel.For(tasks, RowsPerBlock(width * std::min(length_, piece_rows)), [&](int64_t begin, int64_t end) {
      alignas(64) A acc[kColumns];
      for (int64_t t = begin; t < end; ++t) {
        const int64_t piece = t % pieces;
        const int64_t block = t / pieces % blocks;
        Walk<2> kept = outer;
        kept.Seek(t / pieces / blocks);
        const int64_t first = block * width;
        const int64_t n = std::min(width, inner.size - first);
        const int64_t out = kept.offset[1] + first * inner.stride[1];
        Block(kept.offset[0] + first * inner.stride[0], inner.stride[0], n, out, inner.stride[1], piece * piece_rows,
              std::min(length_, (piece + 1) * piece_rows), acc);
        A* to = pieces == 1 ? acc_ : partials + piece * outputs_;
        for (int64_t i = 0; i < n; ++i) to[out + i * inner.stride[1]] = acc[i];
      }
    });
    if (pieces == 1) return;
    parallel.For(outputs_, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        A v = Identity<A>(fold_);
        for (int64_t i = 0; i < pieces; ++i) v = Combine(fold_, v, partials[i * outputs_ + k]);
        acc_[k] = v;
      }
    });
  }

  void Block(int64_t base, int64_t step, int64_t n, int64_t out, int64_t out_step, int64_t begin, int64_t end, A* acc) const {
    alignas(64) C buffer[kColumns];
    alignas(64) C center[kColumns];
    alignas(64) C sums[kColumns];
    const C* c = nullptr;
    if (centers_ != nullptr) {
      for (int64_t i = 0; i < n; ++i) center[i] = static_cast<C>(centers_[out + i * out_step]);
      c = center;
    } else {
      std::fill(center, center + n, C{0});
      c = fold_ == kSumCentered || fold_ == kSumExp ? center : nullptr;
    }
    std::fill(acc, acc + n, Identity<A>(fold_));
    Walk<1> rows = reduced_;
    rows.Seek(begin);
    while (begin < end) {
      std::fill(sums, sums + n, Identity<C>(fold_));
      const int64_t stop = std::min(end, begin + kFlushRows);
      for (; begin < stop; ++begin, rows.Next()) {
        table_.fold_into[fold_](sums, Read(Element(base + rows.offset[0]), x_.dtype, step, n, buffer), c, n);
      }
      for (int64_t i = 0; i < n; ++i) acc[i] = Combine(fold_, acc[i], static_cast<A>(sums[i]));
    }
  }

  const Tensor& x_;
  const Fold fold_;
  const A* const centers_;
  A* const acc_;
  const FoldTable<C>& table_;
  Walk<1> reduced_;
  Walk<2> kept_;  // memory of x, position in acc
  int64_t outputs_ = 0;
  int64_t length_ = 0;
};

}  // namespace

template <class C>
void FoldTo(const Tensor& x, uint32_t dims, Fold fold, const typename AccumulatorOf<C>::Type* centers,
            typename AccumulatorOf<C>::Type* acc, Parallel& parallel) {
  Engine<C, typename AccumulatorOf<C>::Type>(x, dims, fold, centers, acc).Run(parallel);
}
template void FoldTo<float>(const Tensor&, uint32_t, Fold, const double*, double*, Parallel&);
template void FoldTo<double>(const Tensor&, uint32_t, Fold, const double*, double*, Parallel&);
template void FoldTo<int64_t>(const Tensor&, uint32_t, Fold, const int64_t*, int64_t*, Parallel&);

int64_t KeptCount(const Tensor& x, uint32_t dims) {
  int64_t n = 1;
  for (int d = 0; d < x.rank; ++d) n *= dims >> d & 1u ? 1 : x.shape[static_cast<size_t>(d)];
  return n;
}
int64_t ReducedCount(const Tensor& x, uint32_t dims) {
  int64_t n = 1;
  for (int d = 0; d < x.rank; ++d) n *= dims >> d & 1u ? x.shape[static_cast<size_t>(d)] : 1;
  return n;
}

}  // namespace npu::simd
