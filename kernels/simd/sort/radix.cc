#include "kernels/simd/sort/radix.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace npu::simd {

void RadixSortIndices(const int64_t* key, int64_t n, int64_t* order) {
  if (n < 2) return;
  const auto [low, high] = std::minmax_element(key, key + n);
  const uint64_t base = static_cast<uint64_t>(*low);
  const int bits = 64 - std::countl_zero(static_cast<uint64_t>(*high) - base);
  constexpr int kDigit = 11;
  std::vector<int64_t> other(static_cast<size_t>(n));
  int64_t* from = order;
  int64_t* to = other.data();
  for (int shift = 0; shift < bits; shift += kDigit) {
    std::array<int64_t, (1 << kDigit) + 1> count{};
    const auto digit = [&](int64_t i) {
      return static_cast<size_t>((static_cast<uint64_t>(key[i]) - base) >> shift & ((1u << kDigit) - 1));
    };
    for (int64_t i = 0; i < n; ++i) ++count[digit(from[i]) + 1];
    for (size_t d = 1; d < count.size(); ++d) count[d] += count[d - 1];
    for (int64_t i = 0; i < n; ++i) to[count[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }
  if (from != order) std::copy(from, from + n, order);
}

}  // namespace npu::simd
