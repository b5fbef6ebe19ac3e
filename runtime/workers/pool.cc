#include "runtime/workers/pool.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/os/thread.h"
#include "device/machine/machine.h"
#include "runtime/context/devices.h"
#include "runtime/stream/task_stream.h"
#include "runtime/workers/cores.h"
#include "runtime/workers/process.h"

namespace npu::rt {
namespace {

constexpr int kSpinPauses = 300;
constexpr uint64_t kTellBusyNs = 1'000'000;
constexpr auto kExitPatience = std::chrono::milliseconds(150);

// Never destroyed: streams and wakers may outlive every static.
struct Pools {
  std::mutex mutex;
  std::vector<std::unique_ptr<Pool>> by_card;
  int in_use = 0;      // in this process
  int in_use_all = 0;  // in all processes, as last counted

  int WorkersEach() const { return std::max(1, UsableCores() / std::max({1, in_use, in_use_all})); }
  void Resize() {
    for (auto& pool : by_card) {
      if (pool) pool->parallel().Resize(WorkersEach());
    }
  }
};
Pools& pools() {
  static auto* all = new Pools;
  return *all;
}

}  // namespace

Pool& Pool::Of(int card) {
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  if (all.by_card.size() <= static_cast<size_t>(card)) all.by_card.resize(card + 1);
  auto& pool = all.by_card[card];
  if (!pool) {
    NoteUse();
    ++all.in_use;
    pool = std::make_unique<Pool>(card, all.WorkersEach());
    all.Resize();
  }
  return *pool;
}

void Pool::ShareBetween(int cards_in_use) {
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  if (std::exchange(all.in_use_all, cards_in_use) != cards_in_use) all.Resize();
}

void Pool::StopAll() {
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  for (auto& pool : all.by_card) {
    if (pool) pool->Stop();
  }
  const auto until = std::chrono::steady_clock::now() + kExitPatience;
  for (auto& pool : all.by_card) {
    while (pool && pool->busy_.load(std::memory_order_acquire) > 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
}

Pool::Pool(int card, int workers) : card_(card), meter_(device::Meter::Of(card)), parallel_(workers) {}

Pool::~Pool() {
  Stop();
  while (alive_.load(std::memory_order_acquire) > 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void Pool::Stop() {
  stop_.store(true, std::memory_order_seq_cst);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  epoch_.notify_all();
}

void Pool::Push(Ref<TaskStream> stream, int priority, Wake wake) {
  {
    const std::lock_guard lock(mutex_);
    queues_[std::clamp(priority, 0, kPriorities - 1)].push_back(std::move(stream));
    ready_.fetch_add(1, std::memory_order_seq_cst);
  }
  if (wake == Wake::kOne) Kick();
}

void Pool::Kick() {
  // Who is looking for work (spinning, or woken and not yet there) looks again before it sleeps, so a burst wakes once.
  // Pairs with Sleep(): a worker counts itself idle, then reads ready_; here ready_ was counted before idle_ is read.
  if (ready_.load(std::memory_order_seq_cst) == 0) return;
  if (spinning_.load(std::memory_order_seq_cst) > 0 || waking_.load(std::memory_order_seq_cst)) return;
  if (idle_.load(std::memory_order_seq_cst) > 0) {
    waking_.store(true, std::memory_order_seq_cst);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    epoch_.notify_one();
  } else if (started_.load(std::memory_order_relaxed) < parallel_.Workers()) {
    StartWorker();
  }
}

Status Pool::EnsureWorker() {
  if (started_.load(std::memory_order_relaxed) > 0 || StartWorker()) return {};
  return Error(Code::kResourceExhausted, "Card {}: the system refused to start a worker thread.", card_)
      .Remedy("Raise the limit of processes or threads (ulimit -u, pids.max of the cgroup).");
}

void Pool::NoteBusy(uint64_t ns) {
  if (busy_ns_.fetch_add(ns, std::memory_order_relaxed) + ns < kTellBusyNs) return;
  busy_ns_.store(0, std::memory_order_relaxed);
  ShareCores();
}

bool Pool::StartWorker() {
  const std::lock_guard lock(mutex_);
  const int index = started_.load(std::memory_order_relaxed);
  if (index >= parallel_.Workers() || stop_.load(std::memory_order_relaxed)) return index > 0;
  alive_.fetch_add(1, std::memory_order_relaxed);
  if (!os::Detach(fmt::format("npu{}-w{}", card_, index).c_str(), [this, index] { Work(index); }).ok()) {
    alive_.fetch_sub(1, std::memory_order_relaxed);
    return index > 0;
  }
  started_.store(index + 1, std::memory_order_release);
  return true;
}

Ref<TaskStream> Pool::Pop() {
  const std::lock_guard lock(mutex_);
  for (auto& queue : queues_) {
    if (queue.empty()) continue;
    Ref<TaskStream> stream = std::move(queue.front());
    queue.pop_front();
    ready_.fetch_sub(1, std::memory_order_seq_cst);
    return stream;
  }
  return {};
}

// Workers leave from the highest index down when the card's share of the cores has shrunk.
bool Pool::Surplus(int index) {
  if (index < parallel_.Workers()) return false;
  const std::lock_guard lock(mutex_);
  if (index + 1 != started_.load(std::memory_order_relaxed)) return false;
  started_.store(index, std::memory_order_relaxed);
  return true;
}

void Pool::Sleep() {
  const uint32_t epoch = epoch_.load(std::memory_order_seq_cst);
  idle_.fetch_add(1, std::memory_order_seq_cst);
  waking_.store(false, std::memory_order_seq_cst);
  if (ready_.load(std::memory_order_seq_cst) == 0 && !stop_.load(std::memory_order_seq_cst)) {
    epoch_.wait(epoch, std::memory_order_seq_cst);
  }
  idle_.fetch_sub(1, std::memory_order_seq_cst);
}

void Pool::Work(int index) {
  while (!stop_.load(std::memory_order_seq_cst)) {
    Ref<TaskStream> stream = Pop();
    if (!stream) {
      Sleep();
      continue;
    }
    waking_.store(false, std::memory_order_seq_cst);
    Kick();  // there may be more ready streams than this worker can serve
    busy_.fetch_add(1, std::memory_order_acq_rel);
    if (!stop_.load(std::memory_order_seq_cst)) stream->Serve();
    busy_.fetch_sub(1, std::memory_order_acq_rel);
    stream = {};
    if (Surplus(index)) {
      Kick();
      break;
    }
    spinning_.fetch_add(1, std::memory_order_seq_cst);
    for (int i = 0; i < kSpinPauses && ready_.load(std::memory_order_relaxed) == 0; ++i) Pause();
    spinning_.fetch_sub(1, std::memory_order_seq_cst);
  }
  alive_.fetch_sub(1, std::memory_order_release);
}

}  // namespace npu::rt
