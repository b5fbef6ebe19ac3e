#include "runtime/workers/card_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace npu::rt {
namespace {

// Every block once, whatever its length and whoever runs it.
void ExpectEachOnce(Parallel& parallel, int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
  parallel.For(n, grain, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin % grain, 0);
    EXPECT_LE(end - begin, grain);
    for (int64_t i = begin; i < end; ++i) seen[static_cast<size_t>(i)].fetch_add(1);
  });
  for (auto& count : seen) EXPECT_EQ(count.load(), 1) << "n " << n << ", grain " << grain;
}

TEST(CardParallel, RunsEveryBlockOnce) {
  CardParallel card(2);
  ShortWork shorter(card);
  std::mt19937_64 random(std::random_device{}());
  for (int round = 0; round < 200; ++round) {
    const auto n = static_cast<int64_t>(random() % 300), grain = static_cast<int64_t>(random() % 40 + 1);
    ExpectEachOnce(card, n, grain);
    ExpectEachOnce(shorter, n, grain);
  }
}

// The first block is long, so the rest is shared although the estimate said that it is short: two threads meet.
TEST(CardParallel, ShortWorkIsSharedWhenItsFirstBlockIsLong) {
  CardParallel card(2);
  ShortWork shorter(card);
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

}  // namespace
}  // namespace npu::rt
