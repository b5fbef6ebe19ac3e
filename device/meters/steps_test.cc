#include "device/meters/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace npu::device::meters {
namespace {

constexpr uint64_t kMark = 7;
constexpr double kDeviation = 0.12;  // of the shipped alert

TEST(Steps, WaitingIsTheTimeOfCollectivesInWhichTheCardDoesNothingElse) {
  StepClock clock;
  EXPECT_FALSE(clock.Begins(kMark, {0, 0}, {100, 0, 0}));
  EXPECT_FALSE(clock.Begins(0, {0, 0}, {150, 20, 0}));  // beside it, on another stream
  clock.Ends({300, 40, 0});
  clock.Ends({400, 40, 0});
  // 300 of collectives, of which 40 of own work; then 100 of own work; called 10 after the first call.
  const auto step = clock.Begins(kMark, {10, 0}, {500, 140, 0});
  ASSERT_TRUE(step);
  EXPECT_EQ(step->wall_ns, 400u);
  EXPECT_EQ(step->own_ns, 140u);
}

TEST(Steps, HostTimeCountsWithoutWhatItWasBlocked) {
  StepClock clock;
  EXPECT_FALSE(clock.Begins(kMark, {1000, 50}, {1000, 0, 0}));
  clock.Ends({9000, 0, 0});
  auto step = clock.Begins(kMark, {4000, 1050}, {9000, 0, 0});
  ASSERT_TRUE(step);
  EXPECT_EQ(step->own_ns, 2000u);
  clock.Ends({9100, 0, 0});
  // Never more than there was; counters that go back (another thread's later look) are no huge number.
  step = clock.Begins(kMark, {90'000, 1000}, {10'000, 0, 0});
  ASSERT_TRUE(step);
  EXPECT_EQ(step->wall_ns, 1000u);
  EXPECT_EQ(step->own_ns, 1000u);
}

// Ranks of a training, by operator: each has its host issue operators to its card and then a collective that all wait
// for.
struct Rank {
  double host = 1, card = 1;  // factors of time
  double host_at = 0, card_free = 0, blocked = 0, busy = 0, off_caller = 0, began = 0;
  StepClock clock;
  double own = 0;
  int steps = 0;

  CardStamp Card(double at) const {
    return {static_cast<uint64_t>(at), static_cast<uint64_t>(busy), static_cast<uint64_t>(off_caller)};
  }
  double mean() const { return own / steps; }
};

struct Training {
  double host_ns = 0;          // from one operator to the next
  std::vector<double> ops_ns;  // of a step
  int sync_every = 0;          // steps; 0: the host never waits
  static constexpr double kSmallNs = 3000;
};

void Train(const Training& training, std::vector<Rank>& ranks, int steps, std::mt19937& random) {
  std::uniform_real_distribution<double> jitter(0.9, 1.1);
  for (int step = 1; step <= steps; ++step) {
    for (Rank& r : ranks) {
      for (const double op_ns : training.ops_ns) {
        r.host_at += training.host_ns * r.host * jitter(random);
        const double ns = op_ns * r.card * jitter(random);
        const bool small = op_ns < Training::kSmallNs;
        r.busy += ns;
        if (small && r.card_free <= r.host_at) {
          r.card_free = r.host_at += ns;
          continue;
        }
        r.card_free = std::max(r.card_free, r.host_at) + ns;
        if (small) r.off_caller += ns;
      }
      r.began = std::max(r.card_free, r.host_at);
      const auto done =
          r.clock.Begins(kMark, {static_cast<uint64_t>(r.host_at), static_cast<uint64_t>(r.blocked)}, r.Card(r.began));
      if (!done) continue;
      r.own += static_cast<double>(done->own_ns);
      ++r.steps;
    }
    double end = 0;
    for (const Rank& r : ranks) end = std::max(end, r.began);
    end += 2000;
    for (Rank& r : ranks) {
      r.clock.Ends(r.Card(end));
      r.card_free = end;
      if (training.sync_every == 0 || step % training.sync_every != 0 || r.host_at >= end) continue;
      r.blocked += end - r.host_at;
      r.host_at = end;
    }
  }
}

std::vector<size_t> Named(const std::vector<Rank>& ranks) {
  double mean = 0;
  for (const Rank& r : ranks) mean += r.mean() / static_cast<double>(ranks.size());
  std::vector<size_t> named;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].mean() / mean - 1 > kDeviation) named.push_back(i);
  }
  return named;
}

// Whatever holds the training up, whoever is ahead and however often hosts wait for their cards: no sound rank is
// named, and the one that holds the others up by its host or by its card is.
TEST(Steps, TheSlowRankIsNamedAndNoOther) {
  const auto seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937 random(seed);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  for (int round = 0; round < 400; ++round) {
    Training training;
    const int ops = static_cast<int>(between(10, 60));
    training.host_ns = 3e3 * std::pow(20, between(0, 1));
    const double large = between(0, 1);  // share of operators above what is run at once
    for (int i = 0; i < ops; ++i)
      training.ops_ns.push_back(between(0, 1) < large ? between(3e3, 2e5) : between(500, 2999));
    constexpr int kCadences[] = {0, 1, 7, 50};
    training.sync_every = kCadences[random() % 4];
    std::vector<Rank> ranks(2 + random() % 7);
    const size_t slow = random() % ranks.size();
    const double host_ns = training.host_ns * ops;
    for (Rank& r : ranks) r.host_at = between(0, 10) * host_ns;  // they do not start together
    const double card_ns = std::accumulate(training.ops_ns.begin(), training.ops_ns.end(), 0.0);
    const char* what = "nothing";
    switch (random() % 3) {
      case 1:
        what = "host";
        ranks[slow].host = 1 + between(2, 6) * std::max(1.0, card_ns / host_ns);
        break;
      case 2:
        what = "card";
        ranks[slow].card = 1 + between(2, 6) * std::max(1.0, host_ns / card_ns);
        break;
    }
    Train(training, ranks, 120, random);
    const std::vector<size_t> expected = what[0] == 'n' ? std::vector<size_t>() : std::vector<size_t>{slow};
    std::string means;
    for (const Rank& r : ranks) means += std::to_string(r.mean() / 1e3) + " ";
    ASSERT_EQ(Named(ranks), expected) << "seed " << seed << " round " << round << ": slow by " << what << ", rank "
                                      << slow << ", every " << training.sync_every << ", host " << host_ns / 1e3
                                      << " us, card " << card_ns / 1e3 << " us; means " << means;
  }
}

}  // namespace
}  // namespace npu::device::meters
