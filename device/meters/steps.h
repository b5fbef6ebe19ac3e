// Where the steps of one card's training begin and end, and what of a step is the rank's own work. Pure: whoever calls
// brings the times (ns of one clock), so that tests make them up.
//
// **The mark.** A training step has no call of its own. Programs that train on several cards give the same buffers to
// the same collectives once a step, so a step is what lies between two runs of one collective on one buffer: the first
// that is seen, and another one once that one comes no more. A training on one card has no collective; its steps end
// with the first product (matrix product, convolution, attention) after operators that only optimisers use.
//
// **Own work** is what keeps the rank from taking its next step once its peers have given what it needs: the larger of
// - the card's share: the step's time without the time in which the card had nothing but collectives, and
// - the host's share: the time between two calls of the mark, without what it was blocked in calls that wait for the
// card. The host's is needed because a rank that runs ahead of its peers hides its host's work in waiting for them:
// which of two equal ranks is ahead is chance, and a measure that compares ranks must not depend on it. For the same
// reason small work counts as the host's wherever it ran: an idle card (of a rank that is behind) has it done by the
// calling thread.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace npu::device::meters {

// A card's clocks of work at one moment.
struct HostStamp {
  uint64_t at_ns = 0;
  uint64_t blocked_ns = 0;  // so far
};
struct CardStamp {
  uint64_t at_ns = 0;
  uint64_t busy_ns = 0;        // so far: with work of its own, which collectives are not
  uint64_t off_caller_ns = 0;  // so far: small work that an idle card would have left to the calling thread
};

class StepClock {
 public:
  struct Step {
    uint64_t wall_ns = 0, own_ns = 0;
  };

  // A collective that was called at `called` begins on the card. `key` tells apart what may be the mark; 0 is none.
  std::optional<Step> Begins(uint64_t key, const HostStamp& called, const CardStamp& now);
  // It is over.
  void Ends(const CardStamp& now);
  // A mark that is no collective: of a card that has none.
  std::optional<Step> Marks(uint64_t key, const CardStamp& now) { return Marks(key, {}, now); }

 private:
  std::optional<Step> Marks(uint64_t key, const HostStamp& called, const CardStamp& now);
  void Settle(const CardStamp& now);

  static constexpr int kSettled = 3;  // so often another collective comes before the mark is taken for gone
  static constexpr size_t kMostSeen = 4096;

  uint64_t mark_ = 0;
  HostStamp called_;
  CardStamp began_;
  int under_way_ = 0;  // collectives
  CardStamp settled_;  // up to here waiting is counted
  uint64_t waited_ns_ = 0;
  std::unordered_map<uint64_t, int> seen_;  // since the mark came last
};

}  // namespace npu::device::meters
