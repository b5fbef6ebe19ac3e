#include <algorithm>
#include <cstring>

#include "device/machine/machine.h"
#include "device/machine/repair.h"
#include "device/machine/state_file.h"

namespace npu::device {
namespace {

int PercentOf(const CardUse& use) {
  const uint64_t since = use.busy_since_ms.load(std::memory_order_relaxed);
  const uint64_t now = NowMs();
  if (since == 0 || now < since || now - since > 2000) return 0;  // idle for a while
  const uint64_t running_us = std::max<uint64_t>(now - since, 1) * 1000;
  // A window that has run for a fifth of its length says more than the one before.
  if (now - since < kBusyWindowMs / 5)
    return static_cast<int>(std::min<uint32_t>(use.last_percent.load(std::memory_order_relaxed), 100));
  return static_cast<int>(
      std::min<uint64_t>(use.busy_us.load(std::memory_order_relaxed) * uint64_t{100} / running_us, 100));
}

std::string CommandIn(const Slot& slot) {
  std::string text(slot.command, strnlen(slot.command, sizeof slot.command));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

// The kernel's process table prints at most this much; anything larger in the file is garbage.
constexpr uint64_t kSane = uint64_t{1} << 56;

}  // namespace

Result<MachineSnapshot> Snapshot(const MachineConfig& config) {
  MachineSnapshot out;
  out.name = config.name;
  NPU_ASSIGN(std::unique_ptr<StateFile> file, StateFile::Open(config.name, StateFile::Missing::kLeave));
  const StateLayout* layout = nullptr;
  if (file != nullptr && !file->fresh()) {
    StateLayout& found = file->layout();
    const bool kept = found.header.kept.load(std::memory_order_relaxed) != 0;
    if (RepairSlots(found, *file) == 0 && !kept) {
      file->Remove();
    } else {
      layout = &found;
      out.exists = true;
      out.kept = kept;
    }
  }
  uint64_t hbm_bytes = 0, system_bytes = 0;
  uint32_t cards = 0;
  if (layout != nullptr) {
    out.profile = FindProfile(layout->header.soc);
    out.cann = layout->header.cann;
    out.driver = layout->header.driver;
    cards = layout->header.cards;
    hbm_bytes = layout->header.hbm_bytes;
    system_bytes = layout->header.system_bytes;
  } else {
    NPU_ASSIGN(const MachineShape shape, ShapeOf(config));
    out.profile = shape.profile;
    out.cann = shape.cann;
    out.driver = kDefaultDriver;
    cards = shape.cards;
    hbm_bytes = shape.hbm_bytes;
    system_bytes = shape.system_bytes;
  }
  for (uint32_t card = 0; card < cards; ++card) {
    CardSnapshot c;
    c.total_bytes = hbm_bytes;
    c.used_bytes = system_bytes;
    for (uint32_t i = 0; layout != nullptr && i < SlotHigh(*layout); ++i) {
      const Slot& slot = layout->slots[i];
      if (slot.state.load(std::memory_order_acquire) != kSlotLive) continue;
      const CardUse& use = slot.cards[card];
      const uint64_t used = std::min(use.used.load(std::memory_order_relaxed), kSane);
      c.used_bytes = std::min(c.used_bytes + used, hbm_bytes);
      c.percent = std::min(100, c.percent + PercentOf(use));
      const bool open = use.open.load(std::memory_order_relaxed) != 0;
      if (used > 0 || open)
        c.processes.push_back({slot.pid.load(std::memory_order_relaxed), CommandIn(slot), used, open});
    }
    // A model, not a measurement: power and temperature rise with use from the profile's idle figures.
    c.power_dw =
        out.profile->idle_power_dw + (out.profile->busy_power_dw - out.profile->idle_power_dw) * c.percent / 100;
    c.temp_c = out.profile->idle_temp_c + (out.profile->busy_temp_c - out.profile->idle_temp_c) * c.percent / 100;
    out.cards.push_back(std::move(c));
  }
  return out;
}

}  // namespace npu::device
