#include "runtime/workers/card_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace npu::rt {
namespace {

void Busy(std::chrono::microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

TEST(CardParallel, RunsEveryBlockOnceWhateverTheWidth) {
  std::mt19937 random(std::random_device{}());
  CardParallel card(4);
  CardView shorter(card, /*thousandths=*/1000, /*measured=*/true);
  for (int round = 0; round < 300; ++round) {
    card.Resize(1 + static_cast<int>(random() % 5));
    Parallel& parallel = round % 3 == 0 ? static_cast<Parallel&>(shorter) : card;
    const int64_t n = 1 + static_cast<int64_t>(random() % 400), grain = 1 + static_cast<int64_t>(random() % 40);
    std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
    parallel.For(n, grain, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(begin % grain, 0);
      EXPECT_EQ(end, std::min(n, begin + grain));
      for (int64_t i = begin; i < end; ++i) seen[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed);
    });
    for (const auto& count : seen) ASSERT_EQ(count.load(), 1);
  }
}

TEST(CardParallel, HelpersTakePart) {
  CardParallel parallel(3);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  // Helpers may be slow to get a core; they are given many chances.
  for (int round = 0; round < 1000 && threads.size() < 2; ++round) {
    parallel.For(8, 1, [&](int64_t, int64_t) {
      Busy(std::chrono::microseconds(500));
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
  }
  EXPECT_GE(threads.size(), 2u);
  EXPECT_LE(threads.size(), 3u);
}

// More callers at a time than there are offers, from threads that come and go, with ranges inside ranges.
TEST(CardParallel, ManyCallersAndNestedRanges) {
  CardParallel parallel(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  constexpr int kCallers = 12, kRounds = 100;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&] {
      for (int r = 0; r < kRounds; ++r) {
        parallel.For(20, 3, [&](int64_t begin, int64_t end) {
          parallel.For(end - begin, 1, [&](int64_t from, int64_t to) { sum.fetch_add(to - from, std::memory_order_relaxed); });
        });
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(sum.load(), int64_t{kCallers} * kRounds * 20);
}

// What a block wrote is seen by the caller after For.
TEST(CardParallel, ResultsAreVisibleToTheCaller) {
  CardParallel parallel(4);
  std::vector<int64_t> out(1000);
  for (int64_t round = 0; round < 500; ++round) {
    parallel.For(1000, 50, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[static_cast<size_t>(i)] = i + round;
    });
    ASSERT_EQ(std::accumulate(out.begin(), out.end(), int64_t{0}), 999 * 1000 / 2 + 1000 * round);
  }
}

// The first block is long, so the rest is shared although the estimate said that it is short: two threads meet.
TEST(CardParallel, ShortWorkIsSharedWhenItsFirstBlockIsLong) {
  CardParallel card(2);
  CardView shorter(card, /*thousandths=*/1000, /*measured=*/true);
  EXPECT_EQ(shorter.Workers(), 2);
  std::mutex mutex;
  std::condition_variable came;
  std::set<std::thread::id> ids;
  shorter.For(4, 1, [&](int64_t begin, int64_t) {
    if (begin == 0) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::unique_lock lock(mutex);
    ids.insert(std::this_thread::get_id());
    came.notify_all();
    came.wait_for(lock, std::chrono::seconds(30), [&] { return ids.size() == 2; });
  });
  EXPECT_EQ(ids.size(), 2u);
}

TEST(CardParallel, EndsWhileHelpersSleepOrSpin) {
  for (int i = 0; i < 50; ++i) {
    CardParallel parallel(3);
    std::atomic<int> count{0};
    parallel.For(4, 1, [&](int64_t, int64_t) { count.fetch_add(1); });
    EXPECT_EQ(count.load(), 4);
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace
}  // namespace npu::rt
