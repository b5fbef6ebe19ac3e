#include "device/strict/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "device/strict/pattern.h"

namespace npu::strict {
namespace {

Mark Use(Order& order, uint32_t line, bool writes) { return {line, order.Step(line), 0, 0, writes, "call", "param"}; }

TEST(Order, AnEventOrdersAndItsAbsenceDoesNot) {
  Order order;
  const uint32_t s = order.NewLine(), t = order.NewLine();
  EXPECT_FALSE(order.Touch(100, 200, Use(order, s, true)));
  const Stamp event = order.Now(s);
  EXPECT_FALSE(order.Touch(300, 400, Use(order, s, true)));  // behind the record
  order.Join(t, *event);
  EXPECT_FALSE(order.Touch(100, 200, Use(order, t, false)));
  EXPECT_TRUE(order.Touch(399, 500, Use(order, t, false)));
  EXPECT_TRUE(order.Pending(100, 101));
  order.See(s);
  EXPECT_TRUE(order.Pending(100, 101)) << "the reader on the other line";
  order.See(t);
  EXPECT_FALSE(order.Pending(0, 1000));
}

TEST(Order, ReadersDoNotDisturbEachOtherButEachDisturbsAWriter) {
  Order order;
  const uint32_t s = order.NewLine(), t = order.NewLine(), u = order.NewLine();
  EXPECT_FALSE(order.Touch(0, 10, Use(order, s, false)));
  EXPECT_FALSE(order.Touch(5, 15, Use(order, t, false)));
  order.Join(u, *order.Now(t));
  EXPECT_FALSE(order.Touch(10, 20, Use(order, u, true)));
  const auto race = order.Touch(5, 6, Use(order, u, true));
  ASSERT_TRUE(race);
  EXPECT_EQ(race->line, s);
}

// The same judgements as from a clock for each byte and no intervals.
TEST(Order, AgreesWithOneMarkForEachByte) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  constexpr uint64_t kBytes = 64;
  constexpr uint32_t kLines = 4;
  Order order;
  for (uint32_t line = 1; line < kLines; ++line) order.NewLine();
  std::vector<Clock> clocks(kLines, Clock(kLines));
  struct Byte {
    std::pair<uint32_t, uint32_t> write{0, 0};
    std::vector<std::pair<uint32_t, uint32_t>> reads;
  };
  std::vector<Byte> bytes(kBytes);
  std::vector<std::pair<Stamp, Clock>> events;
  const auto join = [](Clock& to, const Clock& from) {
    for (size_t i = 0; i < to.size() && i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
  };
  int races = 0;
  for (int round = 0; round < 3000; ++round) {
    const uint32_t line = random() % kLines;
    if (random() % 4 == 0) {
      if (events.empty() || random() % 2 == 0) {
        events.emplace_back(order.Now(line), clocks[line]);
      } else {
        const auto& [stamp, clock] = events[random() % events.size()];
        order.Join(line, *stamp);
        join(clocks[line], clock);
      }
      continue;
    }
    uint64_t from = random() % kBytes, to = from + 1 + random() % (kBytes - from);
    const bool writes = random() % 2 == 0;
    if (line != 0) join(clocks[line], clocks[0]);
    const uint32_t time = ++clocks[line][line];
    bool expected = false;
    for (uint64_t i = from; i < to; ++i) {
      const auto unordered = [&](const auto& mark) { return mark.first != line && mark.second > clocks[line][mark.first]; };
      expected = expected || unordered(bytes[i].write);
      if (writes) {
        for (const auto& read : bytes[i].reads) expected = expected || unordered(read);
        bytes[i] = {{line, time}, {}};
      } else {
        bytes[i].reads.emplace_back(line, time);
      }
    }
    ASSERT_EQ(order.Touch(1000 + from, 1000 + to, Use(order, line, writes)).has_value(), expected) << "round " << round;
    races += expected;
  }
  EXPECT_GT(races, 0);
}

TEST(Pattern, NamesTheBytesOfAView) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    const size_t rank = random() % 4;
    std::vector<int64_t> shape(rank), strides(rank);
    for (size_t d = 0; d < rank; ++d) {
      shape[d] = static_cast<int64_t>(random() % 4);
      strides[d] = static_cast<int64_t>(random() % 9);
    }
    const uint64_t item = uint64_t{1} << (random() % 3);
    std::vector<char> memory(4096);
    std::vector<bool> expected(memory.size()), named(memory.size());
    const std::function<void(size_t, uint64_t)> walk = [&](size_t d, uint64_t at) {
      if (d == rank) {
        for (uint64_t i = 0; i < item; ++i) expected[at * item + i] = true;
        return;
      }
      for (int64_t i = 0; i < shape[d]; ++i) walk(d + 1, at + static_cast<uint64_t>(i * strides[d]));
    };
    walk(0, 0);
    const Pattern pattern({memory.data(), item, shape, strides});
    pattern.Each([&](uintptr_t at, uint64_t bytes) {
      const uint64_t first = at - reinterpret_cast<uintptr_t>(memory.data());
      for (uint64_t i = 0; i < bytes; ++i) named[first + i] = true;
      return true;
    });
    ASSERT_EQ(named, expected) << "round " << round;
    const auto last = std::find(named.rbegin(), named.rend(), true);
    ASSERT_EQ(pattern.hull(), static_cast<uint64_t>(named.rend() - last));
  }
}

TEST(Pattern, APermutedViewOfDenseMemoryIsOneRun) {
  const int64_t shape[] = {5, 7, 3}, strides[] = {3, 15, 1};
  char memory[420];
  EXPECT_EQ(Pattern({memory, 4, shape, strides}).runs(), 1u);
}

}  // namespace
}  // namespace npu::strict
