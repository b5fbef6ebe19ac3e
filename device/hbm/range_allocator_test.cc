#include "device/hbm/range_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace npu::hbm {
namespace {

TEST(RangeAllocator, TakesTheSmallestPartThatFits) {
  RangeAllocator ranges(1000 << 10);
  const Range a = *ranges.TakeFresh(100 << 10, 512), b = *ranges.TakeFresh(10 << 10, 512),
              c = *ranges.TakeFresh(50 << 10, 512);
  ASSERT_TRUE(ranges.TakeFresh(10 << 10, 512));
  ranges.Give(a, false);
  ranges.Give(c, false);
  EXPECT_EQ(ranges.TakeFresh(40 << 10, 512)->offset, c.offset);
  EXPECT_EQ(ranges.TakeFresh(100 << 10, 512)->offset, a.offset);
  EXPECT_NE(b.offset, a.offset);
}

TEST(RangeAllocator, KeepsResidentPartsApartAndJoinsNeighbours) {
  RangeAllocator ranges(64 << 10);
  const Range a = *ranges.TakeFresh(16 << 10, 512), b = *ranges.TakeFresh(16 << 10, 512),
              c = *ranges.TakeFresh(16 << 10, 512);
  ranges.Give(a, true);
  ranges.Give(c, true);
  EXPECT_FALSE(ranges.TakeResident(32 << 10, 512));
  ranges.Give(b, true);
  EXPECT_EQ(ranges.resident_bytes(), 48u << 10);
  EXPECT_EQ(*ranges.TakeResident(48 << 10, 512), (Range{0, 48 << 10}));
  EXPECT_FALSE(ranges.TakeResident(1, 512));
  ranges.Give({0, 48 << 10}, true);
  EXPECT_EQ(ranges.TakeAllResident().size(), 1u);
  ranges.Give({0, 48 << 10}, false);
  EXPECT_EQ(ranges.largest_fresh(), 64u << 10);
}

TEST(RangeAllocator, AlignsAndKeepsWhatIsInFront) {
  RangeAllocator ranges(8 << 20);
  ASSERT_EQ(ranges.TakeFresh(512, 512)->offset, 0u);
  EXPECT_EQ(ranges.TakeFresh(2 << 20, 2 << 20)->offset, 2u << 20);
  EXPECT_EQ(ranges.TakeFresh(1 << 20, 512)->offset, 512u) << "the smaller part in front is used first";
  EXPECT_FALSE(ranges.TakeFresh(6 << 20, 2 << 20));
}

// Random takes and gives against a model that marks units.
TEST(RangeAllocator, AgreesWithAModel) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  constexpr uint64_t kUnits = 512, kUnit = 512;
  RangeAllocator ranges(kUnits * kUnit);
  std::vector<char> model(kUnits, 'f');  // f fresh, r resident, u used
  std::vector<Range> used;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 2 == 0) {
      const uint64_t units = 1 + random() % 40, align = kUnit << random() % 4;
      const bool resident = random() % 2 == 0;
      auto range = resident ? ranges.TakeResident(units * kUnit, align) : ranges.TakeFresh(units * kUnit, align);
      if (!range) {
        const char want = resident ? 'r' : 'f';
        for (uint64_t at = 0; at + units <= kUnits; at += align / kUnit) {
          bool fits = true;
          for (uint64_t i = at; i < at + units; ++i) fits = fits && model[i] == want;
          ASSERT_FALSE(fits) << "refused though there was room";
        }
        continue;
      }
      ASSERT_EQ(range->offset % align, 0u);
      for (uint64_t i = range->offset / kUnit; i < range->end() / kUnit; ++i) {
        ASSERT_EQ(model[i], resident ? 'r' : 'f');
        model[i] = 'u';
      }
      used.push_back(*range);
    } else if (!used.empty()) {
      const size_t at = random() % used.size();
      const bool resident = random() % 2 == 0;
      for (uint64_t i = used[at].offset / kUnit; i < used[at].end() / kUnit; ++i) model[i] = resident ? 'r' : 'f';
      ranges.Give(used[at], resident);
      used[at] = used.back();
      used.pop_back();
    }
    const auto count = [&](char c) { return static_cast<uint64_t>(std::count(model.begin(), model.end(), c)) * kUnit; };
    ASSERT_EQ(ranges.resident_bytes(), count('r'));
    ASSERT_EQ(ranges.free_bytes(), count('r') + count('f'));
  }
}

}  // namespace
}  // namespace npu::hbm
