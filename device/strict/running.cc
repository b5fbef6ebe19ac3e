// What runs at the moment, readable from a signal handler.
#include <fmt/format.h>

#include <array>

#include "device/strict/checker.h"

namespace npu::strict {
namespace {

struct Slot {
  std::atomic<const char*> call{nullptr};
  std::atomic<int> length{0}, card{0}, stream{0};
};
std::array<Slot, 64> slots;

}  // namespace

Running::Running(std::string_view call, int card, int stream) : slot_(-1) {
  for (size_t i = 0; i < slots.size(); ++i) {
    const char* none = nullptr;
    // Release: whoever finds the call reads the rest of an earlier owner at worst, which a report can bear.
    if (!slots[i].call.compare_exchange_strong(none, call.data(), std::memory_order_acq_rel)) continue;
    slots[i].length.store(static_cast<int>(call.size()), std::memory_order_relaxed);
    slots[i].card.store(card, std::memory_order_relaxed);
    slots[i].stream.store(stream, std::memory_order_relaxed);
    slot_ = static_cast<int>(i);
    return;
  }
}

Running::~Running() {
  if (slot_ >= 0) slots[static_cast<size_t>(slot_)].call.store(nullptr, std::memory_order_release);
}

std::string RunningNow() {
  std::string text;
  for (const Slot& slot : slots) {
    const char* call = slot.call.load(std::memory_order_acquire);
    if (call == nullptr) continue;
    const std::string_view name(call, static_cast<size_t>(slot.length.load(std::memory_order_relaxed)));
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, Place(slot.card.load(), slot.stream.load()));
  }
  return text;
}

}  // namespace npu::strict
