#include "device/figures/read.h"

#include <algorithm>
#include <cstring>

#include "device/faults/act.h"
#include "device/faults/faults.h"
#include "device/figures/model.h"
#include "device/machine/repair.h"
#include "device/machine/state_file.h"

namespace npu::device {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr uint64_t kSane = uint64_t{1} << 56;  // anything larger in the file is garbage

template <size_t n>
std::string TextIn(const char (&field)[n]) {
  std::string text(field, strnlen(field, n));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }
double Share(const std::atomic<uint32_t>& permille) { return std::min(permille.load(kRelaxed), 1000u) / 1000.0; }

void ReadProcesses(const StateLayout& layout, uint32_t card, uint64_t now_ns, CardFigures* c) {
  for (uint32_t i = 0; i < SlotHigh(layout); ++i) {
    const Slot& slot = layout.slots[i];
    if (slot.state.load(std::memory_order_acquire) != kSlotLive) continue;
    const ProcessWork& work = layout.work[i][card];
    const uint64_t used = std::min(slot.cards[card].used.load(kRelaxed), kSane);
    c->used_bytes = std::min(c->used_bytes + used, c->total_bytes);
    const uint64_t free = work.now.free_bytes.load(kRelaxed), largest = work.now.largest_free_bytes.load(kRelaxed);
    if (free > 0 && largest <= free) {
      c->fragmentation_ratio =
          std::max(c->fragmentation_ratio, 1 - static_cast<double>(largest) / static_cast<double>(free));
    }
    const bool open = slot.cards[card].open.load(kRelaxed) != 0;
    if (used == 0 && !open) continue;
    CardProcess process{
        slot.pid.load(kRelaxed), slot.pid_namespace.load(kRelaxed), TextIn(slot.command), used, open, {}};
    const WorkSum sum = SumOf(work, now_ns);
    for (size_t u = 0; u < kUnits; ++u) process.busy_s[u] = Seconds(sum.busy_ns[u]);
    c->processes.push_back(std::move(process));
  }
}

void ReadBoard(const StateLayout& layout, uint32_t card, const Profile& profile, uint64_t now_ns, CardFigures* c) {
  const CardBoard& board = layout.figures.boards[card];
  const WorkSum sum = SumOf(layout, card, now_ns);
  for (size_t u = 0; u < kUnits; ++u) {
    c->busy_s[u] = Seconds(sum.busy_ns[u]);
    c->tasks[u] = sum.tasks[u];
  }
  for (size_t f = 0; f < kFlows; ++f) {
    c->bytes[f] = sum.bytes[f];
    c->bytes_per_s[f] = static_cast<double>(board.rate_bytes[f].load(kRelaxed));
  }
  c->failed_tasks = sum.failed;
  c->use_cube = Share(board.use_permille[0]);
  c->use_vector = Share(board.use_permille[1]);
  c->use_memory = Share(board.use_permille[2]);
  c->use_link = Share(board.use_permille[3]);
  c->use_core = Share(board.use_core_permille);
  c->use_any = Share(board.use_any_permille);
  c->use_bandwidth = Share(board.use_bandwidth_permille);
  c->core_mhz = CoreMhz(board, profile);
  if (board.modelled.load(std::memory_order_acquire) != 0) {
    c->power_w = static_cast<double>(board.power_uw.load(kRelaxed)) / 1e6;
    c->chip_c = static_cast<double>(board.chip_uc.load(kRelaxed)) / 1e6;
    c->hbm_c = static_cast<double>(board.hbm_uc.load(kRelaxed)) / 1e6;
  }
  c->ecc_single = board.ecc_single.load(kRelaxed);
  c->ecc_double = board.ecc_double.load(kRelaxed);
  c->ecc_single_life = board.ecc_single_life.load(kRelaxed);
  c->ecc_double_life = board.ecc_double_life.load(kRelaxed);
  c->isolated_single = board.isolated_single.load(kRelaxed);
  c->isolated_double = board.isolated_double.load(kRelaxed);
  c->link_downs = board.link_downs.load(kRelaxed);
  c->link_ups = board.link_ups.load(kRelaxed);
  c->packets_lost = board.packets_lost.load(kRelaxed);
  c->pcie_errors = board.pcie_errors.load(kRelaxed);
  c->resets = board.resets.load(kRelaxed);
  c->shared = board.shared.load(kRelaxed) == kShared;
  c->exclusive = board.shared.load(kRelaxed) == kExclusive;
  c->ecc_enabled = board.ecc_off.load(kRelaxed) == 0;
}

void ReadFaultsOf(const StateLayout& layout, int card, CardFigures* c) {
  if (layout.figures.faults.armed.load(kRelaxed) == 0) return;
  const CardHealth health = HealthOf(layout, card);
  c->health = health.health;
  c->fault_codes = health.codes;
  c->present = ActiveFault(layout, FaultKind::kCardLost, card) == nullptr;
  c->link_up = ActiveFault(layout, FaultKind::kLinkDown, card) == nullptr;
  if (const FaultRecord* late = ActiveFault(layout, FaultKind::kDriverTimeout, card)) {
    c->driver_timeout_ms = std::clamp<uint64_t>(late->amount.load(kRelaxed), 1, 60'000);
  }
  if (const FaultRecord* flapping = ActiveFault(layout, FaultKind::kLinkFlapping, card)) {
    const bool up = FlapIsUp(layout, *flapping);
    const uint64_t downs = FlapDowns(layout, *flapping);
    c->link_up = c->link_up && up;
    c->link_downs += downs;
    c->link_ups += downs - (up ? 0 : 1);
  }
  if (const FaultRecord* pcie = ActiveFault(layout, FaultKind::kPcieDegraded, card)) {
    c->pcie_lanes = static_cast<int>(std::clamp<uint64_t>(pcie->amount.load(kRelaxed), 1, 16));
    c->pcie_generation = 1;
  }
  c->used_bytes = std::min(c->total_bytes, c->used_bytes + LeakedBytes(layout, card));
  const uint64_t free = c->total_bytes - c->used_bytes;
  if (free > 0) {
    const double left = static_cast<double>(LargestBlock(layout, card, free)) / static_cast<double>(free);
    c->fragmentation_ratio = std::max(c->fragmentation_ratio, 1 - left);
  }
}

void ReadFaults(const StateLayout& layout, std::vector<FaultFigures>* out) {
  for (const FaultRecord& fault : layout.figures.faults.faults) {
    if (fault.state.load(std::memory_order_acquire) != kFaultArmed) continue;
    const FaultFacts* facts = FactsOf(static_cast<FaultKind>(fault.kind.load(kRelaxed)));
    if (facts == nullptr) continue;
    out->push_back({.id = fault.id.load(kRelaxed),
                    .name = std::string(facts->name),
                    .call = TextIn(fault.call),
                    .card = fault.card.load(kRelaxed),
                    .rank = fault.rank.load(kRelaxed),
                    .seen = fault.seen.load(kRelaxed),
                    .acted = fault.acted.load(kRelaxed),
                    .since_unix_ms = fault.since_unix_ms.load(kRelaxed),
                    .active = IsActive(fault)});
  }
}

}  // namespace

Result<MachineFigures> ReadFigures(const MachineConfig& config) {
  MachineFigures out;
  out.name = config.name;
  NPU_ASSIGN(std::unique_ptr<StateFile> file, StateFile::Open(config.name, StateFile::Missing::kLeave));
  StateLayout* layout = nullptr;
  if (file != nullptr && !file->fresh()) {
    StateLayout& found = file->layout();
    if (RepairSlots(found, *file) == 0 && !Stays(found)) {
      file->Remove();
    } else {
      layout = &found;
      out.exists = true;
      out.kept = found.header.kept.load(kRelaxed) != 0;
    }
    file->Unlock();
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
  const uint64_t now_ns = layout == nullptr ? 0 : NowNs(*layout);
  for (uint32_t card = 0; card < cards; ++card) {
    CardFigures c;
    c.logic = static_cast<int>(card);
    c.total_bytes = hbm_bytes;
    c.used_bytes = c.system_bytes = system_bytes;
    c.power_w = out.profile->idle_power_dw / 10.0;
    c.chip_c = c.hbm_c = out.profile->idle_temp_c;
    c.hbm_mhz = out.profile->hbm_mhz;
    c.core_mhz = CoreMhz(CardBoard{}, *out.profile);
    if (layout != nullptr) {
      MoveModel(*layout, card, now_ns);
      ReadProcesses(*layout, card, now_ns, &c);
      ReadBoard(*layout, card, *out.profile, now_ns, &c);
    }
    if (layout != nullptr) ReadFaultsOf(*layout, static_cast<int>(card), &c);
    c.free_bytes = c.total_bytes - c.used_bytes;
    c.largest_free_bytes = static_cast<uint64_t>(static_cast<double>(c.free_bytes) * (1 - c.fragmentation_ratio));
    c.voltage_v = 0.75 + 0.1 * c.use_any;
    out.cards.push_back(std::move(c));
  }
  if (layout != nullptr) ReadFaults(*layout, &out.faults);
  return out;
}

}  // namespace npu::device
