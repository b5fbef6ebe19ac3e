#include "device/meters/read.h"

#include <algorithm>
#include <cstring>

#include "device/machine/repair.h"
#include "device/machine/state_file.h"

namespace npu::device {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

std::string NameIn(const OpMeter& op) {
  std::string name(op.name, strnlen(op.name, sizeof op.name));
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';
  }
  return name;
}

RankReading ReadRank(const RankMeter& meter, int card) {
  RankReading out{.card = card};
  out.rank = meter.rank.load(kRelaxed);
  out.ranks = meter.ranks.load(kRelaxed);
  // In this order, so that no queue looks negative.
  out.completed = meter.completed.load(kRelaxed);
  out.received = std::max(meter.received.load(kRelaxed), out.completed);
  out.issued = std::max(meter.issued.load(kRelaxed), out.received);
  out.steps = meter.steps.load(std::memory_order_acquire);
  out.own_ns = meter.own_ns.load(kRelaxed);
  out.wall_ns = meter.wall_ns.load(kRelaxed);
  const auto recent = static_cast<uint32_t>(std::min<uint64_t>(out.steps, kRecentSteps));
  for (uint32_t i = 0; i < recent; ++i) {
    out.recent_own_us.push_back(meter.recent_own_us[i].load(kRelaxed));
    out.recent_wall_us.push_back(meter.recent_wall_us[i].load(kRelaxed));
  }
  return out;
}

}  // namespace

Result<std::vector<ProcessReading>> ReadMeters(const MachineConfig& config) {
  std::vector<ProcessReading> out;
  NPU_ASSIGN(std::unique_ptr<StateFile> file, StateFile::Open(config.name, StateFile::Missing::kLeave));
  if (file == nullptr || file->fresh()) return out;
  const StateLayout& layout = file->layout();
  const uint32_t cards = std::min<uint32_t>(layout.header.cards, kMaxCards);
  for (uint32_t i = 0; i < SlotHigh(layout); ++i) {
    const Slot& slot = layout.slots[i];
    const Meters& meters = layout.meters[i];
    if (slot.state.load(std::memory_order_acquire) != kSlotLive || meters.used.load(kRelaxed) == 0 || !SlotLives(slot, i, *file))
      continue;
    ProcessReading process;
    process.slot = SlotWord(i, slot.generation.load(kRelaxed));
    process.pid = slot.pid.load(kRelaxed);
    const uint32_t high = std::min(meters.op_high.load(std::memory_order_acquire), kMaxOpMeters);
    for (uint32_t o = 0; o < high; ++o) {
      OpReading op{.name = NameIn(meters.ops[o]), .sum_ns = meters.ops[o].sum_ns.load(kRelaxed)};
      for (uint32_t b = 0; b < kMeterBuckets; ++b) op.buckets[b] = meters.ops[o].buckets[b].load(kRelaxed);
      process.ops.push_back(std::move(op));
    }
    for (uint32_t card = 0; card < cards; ++card) {
      if (meters.ranks[card].ranks.load(kRelaxed) != 0 || meters.ranks[card].steps.load(kRelaxed) != 0)
        process.ranks.push_back(ReadRank(meters.ranks[card], static_cast<int>(card)));
    }
    out.push_back(std::move(process));
  }
  return out;
}

}  // namespace npu::device
