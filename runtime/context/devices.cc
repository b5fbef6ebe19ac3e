#include "runtime/context/devices.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "runtime/workers/pool.h"

namespace npu::rt {
namespace {
constexpr int64_t kShareEveryMs = 200;

struct Seen {
  std::mutex mutex;
  std::atomic<const Visible*> visible{nullptr};  // set once, never freed
};
Seen& seen() {
  static auto* s = new Seen;
  return *s;
}
}  // namespace

Result<device::Machine*> TheMachine() { return device::Join(); }

Result<const Visible*> TheVisible() {
  Seen& s = seen();
  if (const Visible* v = s.visible.load(std::memory_order_acquire)) return v;
  NPU_ASSIGN(device::Machine * machine, TheMachine());
  const std::lock_guard lock(s.mutex);
  if (const Visible* v = s.visible.load(std::memory_order_relaxed)) return v;
  const auto* v = new Visible(ReadVisible(std::getenv("ASCEND_RT_VISIBLE_DEVICES"), machine->cards()));
  // torch answers "no NPU" without a word in this case, so the reason goes to stderr as well, once.
  // An empty value and Ray's word say on purpose that there shall be none.
  const bool on_purpose = v->value.empty() || v->value == "NoDevFiles";
  if (!v->problem.ok() && v->set && !on_purpose) std::fprintf(stderr, "AnyNPU: %s\n", v->problem.Message().c_str());
  s.visible.store(v, std::memory_order_release);
  return v;
}

Result<int> DeviceCount() {
  NPU_ASSIGN(const Visible* visible, TheVisible());
  NPU_TRY(visible->problem);
  return static_cast<int>(visible->physical.size());
}

Result<int> PhysicalOf(int logical, const char* function) {
  NPU_ASSIGN(const Visible* visible, TheVisible());
  if (logical >= 0 && static_cast<size_t>(logical) < visible->physical.size()) return visible->physical[logical];
  return visible->Explain(logical, function);
}

int LogicalOf(int physical) {
  const Visible* visible = seen().visible.load(std::memory_order_acquire);
  if (visible == nullptr) return -1;
  const auto found = std::find(visible->physical.begin(), visible->physical.end(), physical);
  return found == visible->physical.end() ? -1 : static_cast<int>(found - visible->physical.begin());
}

void ShareCores() {
  static std::atomic<int64_t> next_ms{0};
  const int64_t now =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  int64_t due = next_ms.load(std::memory_order_relaxed);
  if (now < due || !next_ms.compare_exchange_strong(due, now + kShareEveryMs, std::memory_order_relaxed)) return;
  const device::Machine* machine = device::Joined();
  if (machine == nullptr) return;
  int pairs = 0;
  for (const device::Slot& slot : machine->shared().slots) {
    if (slot.state.load(std::memory_order_acquire) != device::kSlotLive) continue;
    for (int card = 0; card < machine->cards(); ++card) {
      if (slot.cards[card].open.load(std::memory_order_relaxed) != 0) ++pairs;
    }
  }
  Pool::ShareBetween(std::max(1, pairs));
}

}  // namespace npu::rt
