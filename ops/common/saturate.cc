#include "ops/common/saturate.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "tensor/tile_loop.h"

namespace npu::ops {
namespace {

constexpr int64_t kGrain = 1 << 15;

// Floating numbers as the integers of their bits; `infinity` are the bits of plus infinity.
template <class Word, Word infinity>
bool Elements(std::byte* from, int64_t count, int64_t stride) {
  constexpr Word sign = static_cast<Word>(Word{1} << (sizeof(Word) * 8 - 1));
  Word any = 0;
  const auto bring = [&](Word* at) {
    const Word size = static_cast<Word>(*at & ~sign);
    if (size < infinity) return;
    *at = size == infinity ? static_cast<Word>((*at & sign) | (infinity - 1)) : Word{0};
    any = 1;
  };
  if (stride == sizeof(Word)) {
    auto* const words = reinterpret_cast<Word*>(from);
    Word most = 0;
    for (int64_t i = 0; i < count; ++i) most = std::max(most, static_cast<Word>(words[i] & ~sign));
    if (most < infinity) return false;
  }
  for (int64_t i = 0; i < count; ++i) bring(reinterpret_cast<Word*>(from + i * stride));
  return any != 0;
}

using Run = bool (*)(std::byte*, int64_t, int64_t);

Run Of(DType dtype) {
  switch (dtype) {
    case DType::f16: return Elements<uint16_t, 0x7c00>;
    case DType::bf16: return Elements<uint16_t, 0x7f80>;
    case DType::f32:
    case DType::c64: return Elements<uint32_t, 0x7f800000>;
    case DType::f64:
    case DType::c128: return Elements<uint64_t, 0x7ff0000000000000>;
    default: return nullptr;
  }
}

}  // namespace

bool Saturate(const Tensor& tensor, Parallel& parallel) {
  const Run run = Of(tensor.dtype);
  if (run == nullptr || tensor.data == nullptr || tensor.Numel() == 0) return false;
  const TileLoop loop({&tensor});
  const bool complex = IsComplex(tensor.dtype);
  const int64_t item = ItemSize(tensor.dtype), stride = loop.inner_stride(0);
  std::atomic<bool> any{false};
  // A complex number is two elements side by side.
  const auto line = [&](std::byte* from, int64_t count, int64_t step) {
    bool found = false;
    if (!complex) {
      found = run(from, count, step);
    } else if (step == item) {
      found = run(from, 2 * count, item / 2);
    } else {
      for (int64_t i = 0; i < count; ++i) found |= run(from + i * step, 2, item / 2);
    }
    if (found) any.store(true, std::memory_order_relaxed);
  };
  auto* const data = tensor.As<std::byte>();
  if (loop.outer() == 1) {
    parallel.For(loop.inner(), kGrain, [&](int64_t begin, int64_t end) { line(data + begin * stride, end - begin, stride); });
  } else {
    const int64_t rows = std::max<int64_t>(1, kGrain / loop.inner());
    parallel.For(loop.outer(), rows, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) line(data + loop.Offset(row, 0), loop.inner(), stride);
    });
  }
  return any.load(std::memory_order_relaxed);
}

}  // namespace npu::ops
