// Selection by condition: count the hits of fixed blocks, then every block knows where its output begins.
#include <cstring>
#include <vector>

#include "kernels/simd/index/index.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/scratch.h"
#include "kernels/simd/rows/walk.h"

namespace npu::simd {
namespace {

constexpr int64_t kBlock = 16384;

// The truth of every element in row-major order, as dense bytes, and the number of true ones before each block.
struct Truth {
  Scratch<uint8_t> flags;
  std::vector<int64_t> before;  // one entry more than there are blocks
  int64_t n;

  Truth(const Tensor& t, Parallel& parallel) : flags(t.Numel()), n(t.Numel()) {
    Walk<1> walk;
    for (int d = 0; d < t.rank; ++d) walk.Add(t.shape[static_cast<size_t>(d)], {t.strides[static_cast<size_t>(d)]});
    walk.Merge();
    const auto inner = walk.TakeInner();
    const int64_t rows = n == 0 ? 0 : walk.Count();
    uint8_t* out = flags.data();
    parallel.For(rows, RowsPerBlock(inner.size), [&](int64_t begin, int64_t end) {
      Walk<1> w = walk;
      w.Seek(begin);
      for (int64_t r = begin; r < end; ++r, w.Next()) {
        const void* from = At(t.data, t.dtype, w.offset[0]);
        uint8_t* to = out + r * inner.size;
        if (ItemSize(t.dtype) == 1 && inner.stride[0] == 1) {
          const uint8_t* b = static_cast<const uint8_t*>(from);
          for (int64_t i = 0; i < inner.size; ++i) to[i] = b[i] != 0;
        } else if (t.dtype == DType::c64 || t.dtype == DType::c128) {
          const DType part = t.dtype == DType::c64 ? DType::f32 : DType::f64;
          for (int64_t i = 0; i < inner.size; ++i) {
            const void* re = At(from, t.dtype, i * inner.stride[0]);
            to[i] = LoadDouble(re, part) != 0 || LoadDouble(At(re, part, 1), part) != 0;
          }
        } else if (IsFloat(t.dtype)) {
          double buffer[512];
          for (int64_t i = 0; i < inner.size; i += 512) {
            const int64_t len = inner.size - i < 512 ? inner.size - i : 512;
            Load(At(from, t.dtype, i * inner.stride[0]), t.dtype, inner.stride[0], len, buffer);
            for (int64_t k = 0; k < len; ++k) to[i + k] = buffer[k] != 0;
          }
        } else {
          int64_t buffer[512];
          for (int64_t i = 0; i < inner.size; i += 512) {
            const int64_t len = inner.size - i < 512 ? inner.size - i : 512;
            Load(At(from, t.dtype, i * inner.stride[0]), t.dtype, inner.stride[0], len, buffer);
            for (int64_t k = 0; k < len; ++k) to[i + k] = buffer[k] != 0;
          }
        }
      }
    });
    before.assign(static_cast<size_t>((n + kBlock - 1) / kBlock) + 1, 0);
    parallel.For(n, kBlock, [&](int64_t begin, int64_t end) {
      int64_t count = 0;
      for (int64_t i = begin; i < end; ++i) count += out[i];
      before[static_cast<size_t>(begin / kBlock) + 1] = count;
    });
    for (size_t b = 1; b < before.size(); ++b) before[b] += before[b - 1];
  }
  int64_t Count() const { return before.back(); }
};

Walk<1> Elements(const Tensor& t) {
  Walk<1> walk;
  for (int d = 0; d < t.rank; ++d) walk.Add(t.shape[static_cast<size_t>(d)], {t.strides[static_cast<size_t>(d)]});
  walk.Merge();
  return walk;
}

void CopyItem(void* to, const void* from, int item) {
  switch (item) {
    case 1: std::memcpy(to, from, 1); return;
    case 2: std::memcpy(to, from, 2); return;
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    default: std::memcpy(to, from, static_cast<size_t>(item)); return;
  }
}

}  // namespace

int64_t MaskedSelect(const Tensor& self, const Tensor& mask, void* out, Parallel& parallel) {
  Truth truth(mask, parallel);
  const Walk<1> elements = Elements(self);
  const int item = ItemSize(self.dtype);
  parallel.For(truth.n, kBlock, [&](int64_t begin, int64_t end) {
    int64_t to = truth.before[static_cast<size_t>(begin / kBlock)];
    Walk<1> w = elements;
    w.Seek(begin);
    for (int64_t i = begin; i < end; ++i, w.Next()) {
      if (truth.flags[i] == 0) continue;
      CopyItem(At(out, self.dtype, to++), At(self.data, self.dtype, w.offset[0]), item);
    }
  });
  return truth.Count();
}

bool MaskedScatter(const Tensor& self, const Tensor& mask, const Tensor& source, Parallel& parallel) {
  Truth truth(mask, parallel);
  if (truth.Count() > source.Numel()) return false;
  const Walk<1> elements = Elements(self), sources = Elements(source);
  const int item = ItemSize(self.dtype);
  parallel.For(truth.n, kBlock, [&](int64_t begin, int64_t end) {
    Walk<1> w = elements, s = sources;
    w.Seek(begin);
    if (source.Numel() > 0) s.Seek(truth.before[static_cast<size_t>(begin / kBlock)]);
    for (int64_t i = begin; i < end; ++i, w.Next()) {
      if (truth.flags[i] == 0) continue;
      CopyItem(At(self.data, self.dtype, w.offset[0]), At(source.data, source.dtype, s.offset[0]), item);
      s.Next();
    }
  });
  return true;
}

int64_t Nonzero(const Tensor& self, int64_t* out, bool transposed, Parallel& parallel) {
  Truth truth(self, parallel);
  const int64_t count = truth.Count();
  const int rank = self.rank;
  parallel.For(truth.n, kBlock, [&](int64_t begin, int64_t end) {
    int64_t to = truth.before[static_cast<size_t>(begin / kBlock)];
    int64_t coordinate[kMaxRank] = {};
    int64_t rest = begin;
    for (int d = rank - 1; d >= 0; --d) {
      coordinate[d] = rest % self.shape[static_cast<size_t>(d)];
      rest /= self.shape[static_cast<size_t>(d)];
    }
    for (int64_t i = begin; i < end; ++i) {
      if (truth.flags[i] != 0) {
        for (int d = 0; d < rank; ++d) out[transposed ? d * count + to : to * rank + d] = coordinate[d];
        ++to;
      }
      for (int d = rank - 1; d >= 0; --d) {
        if (++coordinate[d] < self.shape[static_cast<size_t>(d)]) break;
        coordinate[d] = 0;
      }
    }
  });
  return count;
}

}  // namespace npu::simd
