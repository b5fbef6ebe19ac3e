#include "device/strict/written.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace npu::strict {
namespace {

// Against one bool for each byte, with ranges drawn at run time.
TEST(Written, AgreesWithOneBoolForEachByte) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr uint64_t kBytes = 3 * 4096 + 777;
  Written written(kBytes);
  std::vector<bool> plain(kBytes);
  const auto range = [&] {
    uint64_t from = random() % (kBytes + 1), to = random() % (kBytes + 1);
    return from < to ? std::pair(from, to) : std::pair(to, from);
  };
  for (int round = 0; round < 400; ++round) {
    const auto [from, to] = range();
    const bool value = random() % 3 != 0;
    written.Set(from, to, value);
    std::fill(plain.begin() + static_cast<long>(from), plain.begin() + static_cast<long>(to), value);
    const auto [a, b] = range();
    const auto missing = std::find(plain.begin() + static_cast<long>(a), plain.begin() + static_cast<long>(b), false);
    const auto expected = missing == plain.begin() + static_cast<long>(b)
                              ? std::nullopt
                              : std::optional<uint64_t>(static_cast<uint64_t>(missing - plain.begin()));
    ASSERT_EQ(written.FirstMissing(a, b), expected);
    ASSERT_EQ(written.None(a, b), std::none_of(plain.begin() + static_cast<long>(a), plain.begin() + static_cast<long>(b), [](bool w) { return w; }));
    ASSERT_EQ(written.All(), std::all_of(plain.begin(), plain.end(), [](bool w) { return w; }));
  }
}

TEST(Written, CopiesStates) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr uint64_t kBytes = 2 * 4096 + 100;
  for (int round = 0; round < 50; ++round) {
    Written from(kBytes), to(kBytes);
    std::vector<bool> source(kBytes), target(kBytes);
    for (int k = 0; k < 6; ++k) {
      const uint64_t a = random() % kBytes, b = a + random() % (kBytes - a) + 1;
      from.Set(a, b, k % 2 == 0);
      std::fill(source.begin() + static_cast<long>(a), source.begin() + static_cast<long>(b), k % 2 == 0);
    }
    const uint64_t length = random() % kBytes + 1, at = random() % (kBytes - length + 1), onto = random() % (kBytes - length + 1);
    to.CopyFrom(from, at, onto, length);
    std::copy_n(source.begin() + static_cast<long>(at), length, target.begin() + static_cast<long>(onto));
    for (uint64_t i = 0; i < kBytes; ++i) ASSERT_EQ(!to.FirstMissing(i, i + 1), target[i]) << i;
  }
}

}  // namespace
}  // namespace npu::strict
