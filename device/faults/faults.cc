#include "device/faults/faults.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "device/figures/model.h"
#include "device/machine/state_file.h"

namespace npu::device {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// Kinds that are one event and not a state: they strike when their time comes.
bool Strikes(FaultKind kind) { return kind == FaultKind::kEccSingle || kind == FaultKind::kEccDouble; }

uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

bool At(const FaultRecord& fault, int card) {
  const int on = fault.card.load(kRelaxed);
  return on < 0 || on == card;
}

int Cards(const StateLayout& layout) { return static_cast<int>(std::min<uint32_t>(layout.header.cards, kMaxCards)); }

uint64_t BitOf(int card) { return uint64_t{1} << static_cast<unsigned>(card); }

// An error that has struck when it was asked for; others wait for work that meets them.
bool AtOnce(FaultKind kind, const FaultRecord& fault) {
  return Strikes(kind) && fault.rank.load(kRelaxed) < 0 && fault.after.load(kRelaxed) == 0 &&
         fault.chance_ppm.load(kRelaxed) >= 1'000'000;
}

// Puts an ECC error into the counters of a card.
void Strike(StateLayout& layout, FaultKind kind, int card, uint64_t times) {
  const bool twice = kind == FaultKind::kEccDouble;
  CardBoard& board = layout.figures.boards[card];
  (twice ? board.ecc_double : board.ecc_single).fetch_add(times, kRelaxed);
  (twice ? board.ecc_double_life : board.ecc_single_life).fetch_add(times, kRelaxed);
  (twice ? board.isolated_double : board.isolated_single).fetch_add(twice ? times : 0, kRelaxed);
}

bool WorseThan(const FaultRecord& a, const FaultRecord& b) {
  const auto kind = static_cast<FaultKind>(a.kind.load(kRelaxed));
  if (kind == FaultKind::kSlow) return a.factor_permille.load(kRelaxed) > b.factor_permille.load(kRelaxed);
  if (kind == FaultKind::kPcieDegraded) return a.amount.load(kRelaxed) < b.amount.load(kRelaxed);
  return a.amount.load(kRelaxed) > b.amount.load(kRelaxed);
}

template <class Wanted>
const FaultRecord* Worst(const StateLayout& layout, FaultKind kind, Wanted&& wanted) {
  const FaultTable& table = layout.figures.faults;
  const FaultRecord* worst = nullptr;
  if (table.armed.load(kRelaxed) == 0) return worst;
  for (const FaultRecord& fault : table.faults) {
    if (fault.state.load(std::memory_order_acquire) != kFaultArmed) continue;
    if (fault.kind.load(kRelaxed) != static_cast<uint32_t>(kind) || !wanted(fault) || !IsActive(fault)) continue;
    if (worst == nullptr || WorseThan(fault, *worst)) worst = &fault;
  }
  return worst;
}

void Fill(FaultRecord& fault, uint32_t id, const FaultSpec& spec) {
  fault.state.store(kFaultWriting, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  fault.id.store(id, kRelaxed);
  fault.kind.store(static_cast<uint32_t>(spec.kind), kRelaxed);
  fault.card.store(spec.card, kRelaxed);
  fault.rank.store(spec.rank, kRelaxed);
  fault.code.store(spec.code, kRelaxed);
  fault.chance_ppm.store(static_cast<uint32_t>(std::lround(spec.chance * 1e6)), kRelaxed);
  fault.factor_permille.store(static_cast<uint32_t>(std::lround(spec.factor * 1000)), kRelaxed);
  fault.seed.store(spec.seed, kRelaxed);
  fault.amount.store(spec.amount, kRelaxed);
  fault.after.store(spec.after, kRelaxed);
  fault.times.store(spec.times, kRelaxed);
  fault.period_ms.store(spec.period_ms, kRelaxed);
  for (auto* count : {&fault.seen, &fault.acted, &fault.met, &fault.told}) count->store(0, kRelaxed);
  fault.since_unix_ms.store(static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                      std::chrono::system_clock::now().time_since_epoch())
                                                      .count()),
                            kRelaxed);
  std::memset(fault.call, 0, sizeof fault.call);
  std::memcpy(fault.call, spec.call.data(), std::min(spec.call.size(), sizeof fault.call - 1));
}

Status Check(const FaultSpec& spec, uint32_t cards) {
  const FaultFacts* facts = FactsOf(spec.kind);
  if (facts == nullptr) return Error(Code::kInvalidParam, "There is no such fault.");
  const auto bad = [&](std::string_view what) { return Error(Code::kInvalidParam, "{}: {}.", facts->name, what); };
  if (spec.card >= static_cast<int>(cards)) {
    return Error(Code::kInvalidParam, "{}: there is no card {}; the machine has cards 0 to {}.", facts->name, spec.card,
                 cards - 1);
  }
  if (!(spec.chance > 0 && spec.chance <= 1)) return bad("the probability must be above 0 and at most 1");
  if (spec.kind == FaultKind::kSlow && !(spec.factor > 1 && spec.factor <= 1000))
    return bad("the factor must be above 1 and at most 1000");
  if (spec.kind == FaultKind::kCallFails && (spec.call.empty() || spec.call.size() >= sizeof(FaultRecord::call)))
    return bad("a function's name is needed");
  if (spec.kind == FaultKind::kCallFails && spec.code == 0) return bad("a code other than 0 is needed");
  if (spec.kind == FaultKind::kErrorCode && spec.code == 0) return bad("a code of the fault list is needed");
  if (spec.kind == FaultKind::kHbmFragmentation && spec.amount > 99) return bad("the amount is a percentage up to 99");
  if (spec.kind == FaultKind::kPcieDegraded && (spec.amount < 1 || spec.amount > 16))
    return bad("the amount is 1 to 16 lanes");
  if (spec.kind == FaultKind::kOverTemperature && (spec.amount < 60 || spec.amount > 150))
    return bad("the amount is 60 to 150 degrees C");
  if (spec.kind == FaultKind::kLinkFlapping && spec.period_ms < 20) return bad("the period is at least 20 ms");
  return {};
}

}  // namespace

Result<uint32_t> AddFault(const MachineConfig& config, const FaultSpec& spec) {
  NPU_ASSIGN(std::unique_ptr<StateFile> file, OpenSettled(config));
  StateLayout& layout = file->layout();
  FaultSpec wanted = spec;
  const FaultFacts* facts = FactsOf(spec.kind);
  if (facts != nullptr && wanted.amount == 0) wanted.amount = facts->usual_amount;
  NPU_TRY(Check(wanted, layout.header.cards));
  FaultTable& table = layout.figures.faults;
  for (FaultRecord& fault : table.faults) {
    if (fault.state.load(std::memory_order_acquire) == kFaultArmed) continue;
    const uint32_t id = table.next_id.fetch_add(1, kRelaxed) + 1;
    Fill(fault, id, wanted);
    fault.since_ns.store(NowNs(layout), kRelaxed);
    const bool at_once = AtOnce(spec.kind, fault);
    const uint64_t times = std::max<uint64_t>(spec.times, 1);
    for (int card = 0; card < Cards(layout); ++card) {
      if (!Shows(fault, card)) continue;
      if (at_once) Strike(layout, spec.kind, card, times);
      if (spec.kind == FaultKind::kLinkDown) layout.figures.boards[card].link_downs.fetch_add(1, kRelaxed);
    }
    if (at_once) fault.acted.store(times, kRelaxed);
    fault.state.store(kFaultArmed, std::memory_order_release);
    if (spec.kind == FaultKind::kCallFails) table.armed_calls.fetch_add(1, std::memory_order_release);
    table.armed.fetch_add(1, std::memory_order_release);
    table.epoch.fetch_add(1, std::memory_order_release);
    return id;
  }
  return Error(Code::kResourceExhausted, "The machine has {} faults already, which is the most it can have.",
               kMaxFaults)
      .Remedy("End some of them with anynpu clear.");
}

Result<int> ClearFaults(const MachineConfig& config, const FaultChoice& choice) {
  NPU_ASSIGN(std::unique_ptr<StateFile> file, StateFile::Open(config.name, StateFile::Missing::kLeave));
  if (file == nullptr || file->fresh()) return 0;
  StateLayout& layout = file->layout();
  FaultTable& table = layout.figures.faults;
  int cleared = 0;
  for (FaultRecord& fault : table.faults) {
    if (fault.state.load(std::memory_order_acquire) != kFaultArmed) continue;
    const auto kind = static_cast<FaultKind>(fault.kind.load(kRelaxed));
    if (choice.id && *choice.id != fault.id.load(kRelaxed)) continue;
    if (choice.kind && *choice.kind != kind) continue;
    if (choice.card && fault.card.load(kRelaxed) != *choice.card) continue;
    for (int card = 0; card < Cards(layout); ++card) {
      if (!Shows(fault, card)) continue;
      CardBoard& board = layout.figures.boards[card];
      if (kind == FaultKind::kLinkDown) board.link_ups.fetch_add(1, kRelaxed);
      if (kind == FaultKind::kLinkFlapping) {
        board.link_downs.fetch_add(FlapDowns(layout, fault), kRelaxed);
        board.link_ups.fetch_add(FlapDowns(layout, fault), kRelaxed);
      }
    }
    fault.state.store(kFaultFree, std::memory_order_release);
    if (kind == FaultKind::kCallFails) table.armed_calls.fetch_sub(1, std::memory_order_release);
    table.armed.fetch_sub(1, std::memory_order_release);
    table.epoch.fetch_add(1, std::memory_order_release);
    ++cleared;
  }
  if (!Stays(layout) && RepairSlots(layout, *file) == 0) file->Remove();
  return cleared;
}

bool IsForThisProcess(const FaultRecord& fault) {
  const int rank = fault.rank.load(kRelaxed);
  if (rank < 0) return true;
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text) == rank;
  }
  return rank == 0;
}

bool IsActive(const FaultRecord& fault) {
  if (fault.acted.load(kRelaxed) > 0) return true;
  const auto kind = static_cast<FaultKind>(fault.kind.load(kRelaxed));
  // Lost packets and failing calls ask their chance each time; a state has begun with its first match, or at once.
  const uint64_t after = fault.after.load(kRelaxed);
  if (kind == FaultKind::kPacketLoss || kind == FaultKind::kCallFails) return fault.seen.load(kRelaxed) >= after;
  return after == 0 && fault.chance_ppm.load(kRelaxed) >= 1'000'000 && !Strikes(kind);
}

bool Matches(FaultRecord& fault) {
  const uint64_t n = fault.seen.fetch_add(1, kRelaxed);
  if (n < fault.after.load(kRelaxed)) return false;
  const uint32_t chance = fault.chance_ppm.load(kRelaxed);
  if (chance < 1'000'000 && Mix(fault.seed.load(kRelaxed) ^ Mix(n)) % 1'000'000 >= chance) return false;
  const uint64_t times = fault.times.load(kRelaxed);
  if (times == 0) {
    fault.acted.fetch_add(1, kRelaxed);
    return true;
  }
  for (uint64_t acted = fault.acted.load(kRelaxed); acted < times;) {
    if (!fault.acted.compare_exchange_weak(acted, acted + 1, kRelaxed)) continue;
    return true;
  }
  return false;
}

bool Shows(const FaultRecord& fault, int card) {
  if (!At(fault, card)) return false;
  return fault.rank.load(kRelaxed) < 0 || (fault.met.load(kRelaxed) & BitOf(card)) != 0;
}

void MeetFaults(StateLayout& layout, int card) {
  for (FaultRecord& fault : layout.figures.faults.faults) {
    if (fault.state.load(std::memory_order_acquire) != kFaultArmed || Shows(fault, card)) continue;
    if (!At(fault, card) || !IsForThisProcess(fault)) continue;
    if ((fault.met.fetch_or(BitOf(card), kRelaxed) & BitOf(card)) != 0) continue;
    if (fault.kind.load(kRelaxed) == static_cast<uint32_t>(FaultKind::kLinkDown))
      layout.figures.boards[card].link_downs.fetch_add(1, kRelaxed);
  }
}

void CountWork(StateLayout& layout, int card) {
  MeetFaults(layout, card);
  for (FaultRecord& fault : layout.figures.faults.faults) {
    if (fault.state.load(std::memory_order_acquire) != kFaultArmed || !At(fault, card) || !IsForThisProcess(fault))
      continue;
    const auto kind = static_cast<FaultKind>(fault.kind.load(kRelaxed));
    if (kind == FaultKind::kCallFails || kind == FaultKind::kPacketLoss) continue;  // they count their own matches
    if (Strikes(kind)) {
      if (AtOnce(kind, fault)) continue;
      if (fault.times.load(kRelaxed) == 0) fault.times.store(1, kRelaxed);
      if (Matches(fault)) Strike(layout, kind, card, 1);
    } else if (!IsActive(fault)) {
      Matches(fault);
    }
  }
}

const FaultRecord* ActiveFault(const StateLayout& layout, FaultKind kind, int card) {
  return Worst(layout, kind, [&](const FaultRecord& fault) { return Shows(fault, card); });
}

const FaultRecord* FaultHere(const StateLayout& layout, FaultKind kind, int card) {
  return Worst(layout, kind, [&](const FaultRecord& fault) { return At(fault, card) && IsForThisProcess(fault); });
}

CardHealth HealthOf(const StateLayout& layout, int card) {
  CardHealth out;
  const FaultTable& table = layout.figures.faults;
  if (table.armed.load(kRelaxed) == 0) return out;
  for (const FaultRecord& fault : table.faults) {
    if (fault.state.load(std::memory_order_acquire) != kFaultArmed || !Shows(fault, card) || !IsActive(fault)) continue;
    const auto kind = static_cast<FaultKind>(fault.kind.load(kRelaxed));
    const FaultFacts* facts = FactsOf(kind);
    if (facts == nullptr || (kind == FaultKind::kLinkFlapping && FlapIsUp(layout, fault))) continue;
    out.health = std::max(out.health, facts->health);
    const uint32_t code =
        kind == FaultKind::kErrorCode ? static_cast<uint32_t>(fault.code.load(kRelaxed)) : facts->dcmi_code;
    if (code != 0 && out.codes.size() < 128 && std::find(out.codes.begin(), out.codes.end(), code) == out.codes.end()) {
      out.codes.push_back(code);
    }
  }
  return out;
}

namespace {
uint64_t HalfPeriods(const StateLayout& layout, const FaultRecord& fault) {
  const uint64_t half_ns = std::max<uint64_t>(fault.period_ms.load(kRelaxed), 2) * 500'000;
  const uint64_t since = fault.since_ns.load(kRelaxed), now = NowNs(layout);
  return now <= since ? 0 : (now - since) / half_ns;
}
}  // namespace

// It begins with a half period down.
bool FlapIsUp(const StateLayout& layout, const FaultRecord& fault) { return HalfPeriods(layout, fault) % 2 == 1; }
uint64_t FlapDowns(const StateLayout& layout, const FaultRecord& fault) { return HalfPeriods(layout, fault) / 2 + 1; }

}  // namespace npu::device
