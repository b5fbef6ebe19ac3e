#include "runtime/workers/card_parallel.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/os/futex.h"
#include "base/os/thread.h"
#include "runtime/workers/pool.h"
#include "runtime/workers/process.h"

namespace npu::rt {
namespace {

using Clock = std::chrono::steady_clock;

// With fewer blocks, one block is too large a part of the whole to be spent on measuring.
constexpr int64_t kBlocksToMeasure = 16;
// A helper looks for the next range so long before it sleeps: kernels follow each other closely.
constexpr auto kAwake = std::chrono::microseconds(40);
constexpr int kPausesPerLook = 8;
// So often the caller looks for its last helper before it sleeps.
constexpr int kWaitPauses = 500;

// Among the cores that the process had when it first asked, the number of the one that the caller runs on.
int CurrentCore() {
  static const std::array<uint16_t, CPU_SETSIZE> rank = [] {
    std::array<uint16_t, CPU_SETSIZE> out{};
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    uint16_t count = 0;
    for (size_t core = 0; core < out.size(); ++core) {
      out[core] = count;
      if (CPU_ISSET(core, &allowed)) ++count;
    }
    return out;
  }();
  const int core = sched_getcpu();
  return core >= 0 && core < CPU_SETSIZE ? rank[static_cast<size_t>(core)] : 0;
}

// A run of blocks, begin in the upper half and end in the lower: whose core it is takes them from the front, others
// from the back.
class alignas(64) Segment {
 public:
  void Set(int64_t begin, int64_t end) { word_.store(Word(begin, end), std::memory_order_relaxed); }
  int64_t TakeFront() {
    return Take([](uint64_t word) { return word + (uint64_t{1} << 32); }, [](uint64_t word) { return word >> 32; });
  }
  int64_t TakeBack() {
    return Take([](uint64_t word) { return word - 1; }, [](uint64_t word) { return (word & UINT32_MAX) - 1; });
  }

 private:
  static uint64_t Word(int64_t begin, int64_t end) {
    return static_cast<uint64_t>(begin) << 32 | static_cast<uint64_t>(end);
  }
  // -1 when none is left.
  template <class Rest, class Block>
  int64_t Take(Rest rest, Block block) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    while (word >> 32 < (word & UINT32_MAX)) {
      if (word_.compare_exchange_weak(word, rest(word), std::memory_order_relaxed))
        return static_cast<int64_t>(block(word));
    }
    return -1;
  }
  std::atomic<uint64_t> word_{0};
};

constexpr int kMostSegments = 16;
constexpr int64_t kMostBlocks = INT32_MAX;  // what a segment can count

// A range on offer. Owned by one caller at a time; helpers are inside only while it is open, or see that it is not.
struct alignas(64) Offer {
  std::atomic<bool> taken{false};
  std::atomic<bool> open{false};
  void (*block)(void* body, int64_t begin, int64_t end) = nullptr;
  void* body = nullptr;
  int64_t n = 0, grain = 0;
  uint32_t most = 0;  // helpers at a time
  int segments = 1;
  std::array<Segment, kMostSegments> segment;
  alignas(64) std::atomic<uint32_t> inside{0};  // helpers; a futex word
  std::atomic<bool> awaited{false};

  // Blocks first to `blocks` as one segment for each core that may come.
  void Cut(int64_t first, int64_t blocks, int workers) {
    segments = std::min(workers, kMostSegments);
    const int64_t rest = blocks - first;
    for (int64_t s = 0; s < segments; ++s) {
      segment[static_cast<size_t>(s)].Set(first + rest * s / segments, first + rest * (s + 1) / segments);
    }
  }
  // Runs one block; false when none is left. The same core gets the same part of ranges that are cut alike, so that
  // what one kernel stored is still in the cache of the core that reads it in the next.
  bool RunOne() {
    const int home = CurrentCore() % segments;
    int64_t k = segment[static_cast<size_t>(home)].TakeFront();
    for (int s = 1; k < 0 && s < segments; ++s) k = segment[static_cast<size_t>((home + s) % segments)].TakeBack();
    if (k < 0) return false;
    block(body, k * grain, std::min(n, (k + 1) * grain));
    return true;
  }
  // The helper counts itself in, then looks whether the offer is open; the owner closes it, then looks who is inside.
  // Both in one total order, so one of them sees the other.
  void Help() {
    const uint32_t before = inside.fetch_add(1, std::memory_order_seq_cst);
    if (open.load(std::memory_order_seq_cst) && before < most) {
      while (RunOne()) {
      }
    }
    if (inside.fetch_sub(1, std::memory_order_seq_cst) == 1 && awaited.load(std::memory_order_seq_cst))
      os::FutexWake(inside);
  }
  void CloseAndWait() {
    open.store(false, std::memory_order_seq_cst);
    for (int i = 0; i < kWaitPauses && inside.load(std::memory_order_acquire) != 0; ++i) Pause();
    if (inside.load(std::memory_order_seq_cst) == 0) return;
    awaited.store(true, std::memory_order_seq_cst);
    for (uint32_t seen; (seen = inside.load(std::memory_order_seq_cst)) != 0;)
      os::FutexWait(inside, seen, Deadline::Never());
    awaited.store(false, std::memory_order_seq_cst);
  }
};

}  // namespace

class CardParallel::Team {
 public:
  explicit Team(int helpers) : wanted_(helpers) {}
  ~Team() {
    stop_.store(true, std::memory_order_seq_cst);
    news_.fetch_add(1, std::memory_order_seq_cst);
    os::FutexWake(news_);
    for (std::thread& t : threads_) t.join();
  }

  // Helpers above the number are not counted on any more; they find out when they look for work.
  void Resize(int helpers) { wanted_.store(helpers, std::memory_order_relaxed); }

  Offer* Take() {
    for (Offer& offer : offers_) {
      if (!offer.taken.load(std::memory_order_relaxed) && !offer.taken.exchange(true, std::memory_order_acquire))
        return &offer;
    }
    return nullptr;
  }
  void GiveBack(Offer* offer) { offer->taken.store(false, std::memory_order_release); }

  void Announce() { news_.fetch_add(1, std::memory_order_seq_cst); }

  void WakeUpTo(int64_t helpers) {
    const auto count = static_cast<int>(std::min<int64_t>(helpers, wanted_.load(std::memory_order_relaxed)));
    if (started_.load(std::memory_order_relaxed) < count) Start(count);
    // A helper counts itself asleep, then looks at the news; here news were made before asleep_ is read.
    // Surplus helpers may be woken in place of others, so with them around all are.
    if (asleep_.load(std::memory_order_seq_cst) == 0) return;
    os::FutexWake(
        news_, started_.load(std::memory_order_relaxed) > wanted_.load(std::memory_order_relaxed) ? INT32_MAX : count);
  }

 private:
  void Start(int count) {
    const std::lock_guard lock(mutex_);
    while (static_cast<int>(threads_.size()) < count) {
      const auto index = static_cast<int>(threads_.size());
      auto thread = os::Start(("npu-h" + std::to_string(index)).c_str(), [this, index] { Work(index); });
      if (!thread.ok()) break;  // those that exist, or the caller alone, do the work
      threads_.push_back(thread.take());
    }
    started_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
  }

  void Work(int index) {
    while (!stop_.load(std::memory_order_seq_cst)) {
      const uint32_t seen = news_.load(std::memory_order_seq_cst);
      if (index < wanted_.load(std::memory_order_relaxed)) {
        for (Offer& offer : offers_) {
          if (offer.open.load(std::memory_order_relaxed)) offer.Help();
        }
      }
      if (!SomethingNew(seen)) {
        asleep_.fetch_add(1, std::memory_order_seq_cst);
        os::FutexWait(news_, seen, Deadline::Never());
        asleep_.fetch_sub(1, std::memory_order_seq_cst);
      }
    }
  }
  bool SomethingNew(uint32_t seen) const {
    const auto until = Clock::now() + kAwake;
    do {
      for (int i = 0; i < kPausesPerLook; ++i) {
        if (news_.load(std::memory_order_acquire) != seen) return true;
        Pause();
      }
    } while (Clock::now() < until);
    return false;
  }

  std::array<Offer, 8> offers_;
  alignas(64) std::atomic<uint32_t> news_{0};  // the futex word of sleeping helpers
  std::atomic<int> asleep_{0};
  std::atomic<int> wanted_;
  std::atomic<int> started_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards threads_
  std::vector<std::thread> threads_;
};

CardParallel::CardParallel(int workers)
    : share_(std::max(1, workers)), workers_(share_), team_(std::make_unique<Team>(std::max(1, workers) - 1)) {}

CardParallel::~CardParallel() = default;

void CardParallel::Resize(int workers) {
  const std::lock_guard lock(mutex_);
  share_ = std::max(1, workers);
  const int now = CardView::PartOf(share_, limit_);
  workers_.store(now, std::memory_order_relaxed);
  team_->Resize(now - 1);
}

void CardParallel::Limit(int thousandths) {
  int share = 0;
  {
    const std::lock_guard lock(mutex_);
    limit_ = thousandths;
    share = share_;
  }
  Resize(share);
}

void CardParallel::Share(const Range& range, int workers, bool measured) {
  const int64_t n = range.n, grain = range.grain;
  const Block block = range.block;
  void* const body = range.body;
  const int64_t blocks = (n + grain - 1) / grain;
  // Runs a block and says whether as many as are left are worth a wake-up.
  const auto worth = [blocks](int64_t done, const auto& run) {
    const auto start = Clock::now();
    run();
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    return ns * (blocks - done) >= kWorthSplittingNs;
  };
  int64_t first = 0;
  bool shared = workers > 1 && blocks <= kMostBlocks && !Exiting();
  if (shared && measured) shared = worth(++first, [&] { block(body, 0, std::min(n, grain)); });
  Offer* offer = shared ? team_->Take() : nullptr;
  if (offer == nullptr) {
    for (int64_t k = first; k < blocks; ++k) block(body, k * grain, std::min(n, (k + 1) * grain));
    return;
  }
  offer->block = block;
  offer->body = body;
  offer->n = n;
  offer->grain = grain;
  offer->most = static_cast<uint32_t>(workers - 1);
  offer->Cut(first, blocks, workers);
  offer->open.store(true, std::memory_order_seq_cst);
  team_->Announce();
  const bool wake = measured || blocks < kBlocksToMeasure || worth(1, [&] { offer->RunOne(); });
  if (wake) team_->WakeUpTo(std::min<int64_t>(blocks - 1 - first, workers - 1));
  while (offer->RunOne()) {
  }
  offer->CloseAndWait();
  team_->GiveBack(offer);
}

}  // namespace npu::rt
