#include "device/machine/machine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/log/log.h"
#include "base/os/process.h"
#include "device/doorbell/doorbell.h"
#include "device/faults/faults.h"
#include "device/machine/repair.h"
#include "device/machine/state_file.h"

namespace npu::device {
namespace {

constexpr uint64_t kSane = uint64_t{1} << 56;  // larger counters in the file are somebody's garbage

template <size_t N>
void Put(char (&field)[N], std::string_view text) {
  std::memset(field, 0, N);
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

void WriteHeader(StateHeader& header, const MachineShape& wanted) {
  header.magic = 0;
  std::atomic_thread_fence(std::memory_order_release);
  header.version = kStateVersion;
  header.bytes = sizeof(StateLayout);
  header.boot_id = os::BootId();
  header.nonce = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) ^
                 (static_cast<uint64_t>(getpid()) << 40);
  header.uid = geteuid();
  header.cards = wanted.cards;
  header.hbm_bytes = wanted.hbm_bytes;
  header.system_bytes = wanted.system_bytes;
  header.host_limit = wanted.host_limit;
  Put(header.soc, wanted.profile->soc);
  Put(header.cann, wanted.cann);
  Put(header.driver, kDefaultDriver);
  std::atomic_thread_fence(std::memory_order_release);
  header.magic = kStateMagic;
}

// What is asked for by name and differs from what a machine in use has.
Status CheckAgainst(const StateHeader& header, const MachineConfig& config, const MachineShape& wanted) {
  const auto differs = [&](std::string_view what, const auto& has, const auto& asked) {
    return Error(Code::kInvalidParam, "Machine {} is in use and has {} {}; this program asks for {}.", config.name,
                 what, has, asked)
        .Remedy("Ask for the same, wait until its programs have ended, or use another machine (--machine NAME).");
  };
  if (config.cards && *config.cards != header.cards) return differs("cards:", header.cards, *config.cards);
  if (config.soc && wanted.profile->soc != header.soc) return differs("the chip", header.soc, wanted.profile->soc);
  if (config.hbm_bytes && wanted.hbm_bytes != header.hbm_bytes) {
    return differs("MiB of memory a card:", header.hbm_bytes >> 20, wanted.hbm_bytes >> 20);
  }
  if (config.cann && wanted.cann != header.cann) return differs("the CANN version", header.cann, wanted.cann);
  return {};
}

// Under the lock: the file with a header that fits `config`.
Status Settle(StateFile& file, const MachineConfig& config) {
  NPU_ASSIGN(const MachineShape wanted, ShapeOf(config));
  StateLayout& layout = file.layout();
  bool fresh = file.fresh();
  if (!fresh) {
    if (layout.header.boot_id != os::BootId()) {
      ForgetAll(layout);  // an older life of the computer
      layout.header.kept.store(0, std::memory_order_relaxed);
      fresh = true;
    } else if (RepairSlots(layout, file) == 0) {
      const bool kept = Stays(layout);
      const bool same = CheckAgainst(layout.header, config, wanted).ok() &&
                        (!config.host_limit || *config.host_limit == layout.header.host_limit);
      fresh = !kept || !same;  // an idle machine is made anew; a kept one keeps what nobody asks to change
    }
  }
  if (fresh) {
    if (!file.fresh()) ForgetAll(layout);
    WriteHeader(layout.header, wanted);
    return {};
  }
  return CheckAgainst(layout.header, config, wanted);
}

// Slots that this program took. One with our identity that is not among them was taken before an exec, by a launcher
// that became us: it would keep the machine from ending with us.
struct OwnSlot {
  const StateLayout* layout;
  uint32_t word;
};
std::mutex& OwnMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::vector<OwnSlot>& OwnSlots() {
  static auto* slots = new std::vector<OwnSlot>;
  return *slots;
}
void Own(const StateLayout* layout, uint32_t word) {
  std::lock_guard lock(OwnMutex());
  OwnSlots().push_back({layout, word});
}
void Disown(const StateLayout* layout, uint32_t word) {
  std::lock_guard lock(OwnMutex());
  std::erase_if(OwnSlots(), [&](const OwnSlot& own) { return own.layout == layout && own.word == word; });
}
void ReleaseSlotsBeforeExec(StateLayout& layout, const os::ProcessId& self) {
  std::lock_guard lock(OwnMutex());
  for (uint32_t i = 0; i < SlotHigh(layout); ++i) {
    Slot& slot = layout.slots[i];
    if (slot.state.load(std::memory_order_relaxed) != kSlotLive ||
        slot.pid.load(std::memory_order_relaxed) != self.pid ||
        slot.pid_namespace.load(std::memory_order_relaxed) != self.pid_namespace ||
        slot.start_ticks.load(std::memory_order_relaxed) != self.start_ticks) {
      continue;
    }
    const uint32_t word = SlotWord(i, slot.generation.load(std::memory_order_relaxed));
    // By word alone: the same file may be mapped twice in one process.
    const bool ours =
        std::any_of(OwnSlots().begin(), OwnSlots().end(), [&](const OwnSlot& own) { return own.word == word; });
    if (!ours) ReleaseSlot(layout, i);
  }
}

std::optional<std::string> Env(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return std::nullopt;
  return std::string(text);
}

}  // namespace

Result<MachineShape> ShapeOf(const MachineConfig& config) {
  MachineShape wanted;
  const std::string soc = config.soc.value_or(std::string(kDefaultSoc));
  wanted.profile = FindProfile(soc);
  if (wanted.profile == nullptr) {
    std::string known;
    for (const Profile& p : Profiles()) known += fmt::format("{}{}", known.empty() ? "" : ", ", p.soc);
    return Error(Code::kInvalidParam, "ANYNPU_SOC (or --soc) is {:?}, which is no known chip.", soc.substr(0, 60))
        .Remedy("Known are {}.", known);
  }
  wanted.cards = config.cards.value_or(kDefaultCards);
  if (wanted.cards < 1 || wanted.cards > kMaxCards) {
    return Error(Code::kInvalidParam, "ANYNPU_CARDS (or -n) is {}.", wanted.cards).Remedy("Use 1 to {}.", kMaxCards);
  }
  const uint64_t full = wanted.profile->hbm_mb << 20;
  wanted.hbm_bytes = config.hbm_bytes.value_or(full) >> 21 << 21;
  if (wanted.hbm_bytes < (uint64_t{16} << 20) || wanted.hbm_bytes > (uint64_t{1} << 40)) {
    return Error(Code::kInvalidParam, "ANYNPU_HBM (or --hbm) is {} MiB.", wanted.hbm_bytes >> 20)
        .Remedy("Use 16M to 1T.");
  }
  // A card made smaller or larger gives the system the same share.
  wanted.system_bytes = static_cast<uint64_t>(static_cast<double>(wanted.profile->system_hbm_mb << 20) *
                                              (static_cast<double>(wanted.hbm_bytes) / static_cast<double>(full)));
  wanted.system_bytes = wanted.system_bytes >> 20 << 20;
  wanted.cann = config.cann.value_or(std::string(kDefaultCann));
  const auto versions = CannVersions();
  if (std::find(versions.begin(), versions.end(), wanted.cann) == versions.end()) {
    std::string known;
    for (const std::string_view v : versions) known += fmt::format("{}{}", known.empty() ? "" : ", ", v);
    return Error(Code::kInvalidParam, "ANYNPU_CANN (or --cann) is {:?}.", wanted.cann.substr(0, 60))
        .Remedy("Choose one of {}.", known);
  }
  wanted.host_limit = config.host_limit.value_or(0);
  return wanted;
}

Result<MachineConfig> ConfigFromEnvironment() {
  MachineConfig config;
  if (auto text = Env("ANYNPU_MACHINE")) config.name = *text;
  if (auto text = Env("ANYNPU_CARDS")) {
    char* end = nullptr;
    const long cards = std::strtol(text->c_str(), &end, 10);
    if (*end != 0 || cards < 1 || cards > kMaxCards) {
      return Error(Code::kInvalidParam, "ANYNPU_CARDS is {:?}.", text->substr(0, 60))
          .Remedy("Use a number from 1 to {}.", kMaxCards);
    }
    config.cards = static_cast<uint32_t>(cards);
  }
  if (auto text = Env("ANYNPU_SOC")) config.soc = *text;
  if (auto text = Env("ANYNPU_CANN")) config.cann = *text;
  const auto bytes = [](const char* name, std::optional<uint64_t>* out) -> Status {
    const auto text = Env(name);
    if (!text) return {};
    *out = ParseBytes(*text);
    if (*out) return {};
    return Error(Code::kInvalidParam, "{} is {:?}, which is no size.", name, text->substr(0, 60))
        .Remedy("Write for example 32G or 512M.");
  };
  NPU_TRY(bytes("ANYNPU_HBM", &config.hbm_bytes));
  NPU_TRY(bytes("ANYNPU_HOST_MEMORY", &config.host_limit));
  return config;
}

Machine::~Machine() { Leave(); }

Result<std::unique_ptr<Machine>> Enter(const MachineConfig& config) {
  NPU_ASSIGN(std::unique_ptr<StateFile> file, StateFile::Open(config.name, StateFile::Missing::kCreate));
  NPU_TRY(Settle(*file, config));
  StateLayout& layout = file->layout();
  std::unique_ptr<Machine> machine(new Machine);
  machine->name_ = config.name;
  machine->cards_ = static_cast<int>(layout.header.cards);
  machine->profile_ = FindProfile(layout.header.soc);
  machine->hbm_bytes_ = layout.header.hbm_bytes;
  machine->system_bytes_ = layout.header.system_bytes;
  machine->host_limit_ = layout.header.host_limit;
  machine->cann_ = layout.header.cann;
  machine->driver_ = layout.header.driver;
  machine->nonce_ = layout.header.nonce;
  machine->shared_ = &layout;

  const os::ProcessId self = os::Self();
  ReleaseSlotsBeforeExec(layout, self);
  uint32_t index = 0;
  while (index < kMaxSlots && layout.slots[index].state.load(std::memory_order_relaxed) != kSlotFree) ++index;
  if (index == kMaxSlots) {
    return Error(Code::kResourceExhausted, "Machine {} is used by {} processes, which is the most it can have.",
                 config.name, kMaxSlots)
        .Remedy("End some of them or use another machine (--machine NAME).");
  }
  Slot& slot = layout.slots[index];
  ClearSlot(slot);
  uint32_t generation = (layout.header.next_generation.load(std::memory_order_relaxed) + 1) & 0xFFFFFF;
  if (generation == 0) generation = 1;
  layout.header.next_generation.store(generation, std::memory_order_relaxed);
  slot.pid.store(self.pid, std::memory_order_relaxed);
  slot.pid_namespace.store(self.pid_namespace, std::memory_order_relaxed);
  slot.start_ticks.store(self.start_ticks, std::memory_order_relaxed);
  slot.joined_ms.store(NowMs(), std::memory_order_relaxed);
  Put(slot.command, os::CommandOf(self.pid));
  slot.generation.store(generation, std::memory_order_relaxed);
  RaiseHigh(layout.header.slot_high, index);
  slot.state.store(kSlotLive, std::memory_order_release);
  file->HoldSlot(index);
  machine->slot_ = SlotWord(index, generation);
  Own(&layout, machine->slot_);
  file->Unlock();
  machine->file_ = std::move(file);
  NPU_LOG(kInfo, "machine", "joined {} as slot {} ({} x {}, {} MiB)", machine->name_, index, machine->cards_,
          machine->profile_->soc, machine->hbm_bytes_ >> 20);
  return machine;
}

void Machine::Leave() {
  if (file_ == nullptr) return;
  std::lock_guard lock(file_mutex_);
  if (left() || !file_->Lock().ok()) return;
  Disown(shared_, slot_);
  left_.store(true, std::memory_order_release);  // before the slot can become another's
  ReleaseSlot(*shared_, SlotIndex(slot_));
  if (RepairSlots(*shared_, *file_) == 0 && !Stays(*shared_)) file_->Remove();
  file_->Unlock();
}

Slot* Machine::SlotOf(uint32_t slot) const {
  Slot& entry = shared_->slots[SlotIndex(slot)];
  const bool live = entry.state.load(std::memory_order_acquire) == kSlotLive;
  return live && entry.generation.load(std::memory_order_relaxed) == SlotGeneration(slot) ? &entry : nullptr;
}

bool Machine::IsAlive(uint32_t slot) const {
  const Slot* entry = SlotOf(slot);
  return entry != nullptr && SlotLives(*entry, SlotIndex(slot), *file_) && SlotOf(slot) == entry;
}

int32_t Machine::PidOf(uint32_t slot) const {
  const Slot* entry = SlotOf(slot);
  return entry == nullptr ? 0 : entry->pid.load(std::memory_order_relaxed);
}

CardUse& Machine::Mine(int card) const {
  static CardUse nowhere{};
  return left() ? nowhere : shared_->slots[SlotIndex(slot_)].cards[card];
}

ProcessWork& Machine::Work(int card) const {
  static ProcessWork nowhere{};
  return left() ? nowhere : shared_->work[SlotIndex(slot_)][card];
}

void Machine::Repair(bool force) const {
  const int64_t now = static_cast<int64_t>(NowMs());
  int64_t last = repaired_ms_.load(std::memory_order_relaxed);
  if (!force && now - last < 50) return;
  if (!repaired_ms_.compare_exchange_strong(last, now, std::memory_order_relaxed) && !force) return;
  // Looking needs no lock; most of the time nobody has died.
  bool dead = false;
  for (uint32_t i = 0; i < SlotHigh(*shared_) && !dead; ++i) {
    const Slot& slot = shared_->slots[i];
    dead =
        i != SlotIndex(slot_) && slot.state.load(std::memory_order_relaxed) == kSlotLive && !SlotLives(slot, i, *file_);
  }
  if (!dead) return;
  std::lock_guard lock(file_mutex_);
  if (!file_->Lock().ok()) return;
  RepairSlots(*shared_, *file_);
  file_->Unlock();
}

uint64_t Machine::UsedOn(int card) const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < SlotHigh(*shared_); ++i) {
    const Slot& slot = shared_->slots[i];
    if (slot.state.load(std::memory_order_acquire) != kSlotLive) continue;
    // Sequentially consistent: of two processes that take at once, at least one sees the other.
    sum += std::min(slot.cards[card].used.load(std::memory_order_seq_cst), kSane);
  }
  return std::min(sum, uint64_t{1} << 62);
}

Machine::HostUse Machine::HostUseOfAll() const {
  HostUse use;
  for (uint32_t i = 0; i < SlotHigh(*shared_); ++i) {
    const Slot& slot = shared_->slots[i];
    if (slot.state.load(std::memory_order_acquire) != kSlotLive) continue;
    for (int card = 0; card < cards_; ++card) {
      const CardUse& c = slot.cards[card];
      use.granted += std::min(c.used.load(std::memory_order_seq_cst), kSane);
      use.pooled += std::min(c.pooled.load(std::memory_order_relaxed), kSane);
      use.pending += std::min(c.pending.load(std::memory_order_seq_cst), kSane);
    }
  }
  return use;
}

void Machine::SetOpen(int card, bool open) const { Mine(card).open.store(open ? 1 : 0, std::memory_order_relaxed); }

namespace {

// This process's machine. Never freed: threads may still use it while the process ends.
struct Current {
  std::mutex mutex;
  std::atomic<Machine*> machine{nullptr};
  os::ForkGuard fork;
  bool exit_registered = false;
};
std::atomic<Current*> current{nullptr};

Current& Here() {
  Current* here = current.load(std::memory_order_acquire);
  if (here != nullptr && !here->fork.Forked()) return *here;
  // First use, or a forked child: the parent's state (and its mutex, which another thread may have held) is left alone.
  Current* fresh = new Current;
  if (!current.compare_exchange_strong(here, fresh, std::memory_order_acq_rel)) {
    delete fresh;
    return *current.load(std::memory_order_acquire);
  }
  return *fresh;
}

}  // namespace

Machine* Joined() { return Here().machine.load(std::memory_order_acquire); }

Result<Machine*> Join() {
  Current& here = Here();
  if (Machine* machine = here.machine.load(std::memory_order_acquire); machine != nullptr) return machine;
  std::lock_guard lock(here.mutex);
  if (Machine* machine = here.machine.load(std::memory_order_relaxed); machine != nullptr) return machine;
  NPU_ASSIGN(const MachineConfig config, ConfigFromEnvironment());
  NPU_ASSIGN(std::unique_ptr<Machine> machine, Enter(config));
  here.machine.store(machine.get(), std::memory_order_release);
  WatchCalls(machine->shared());
  static std::once_flag once;
  std::call_once(once, [] {
    std::atexit([] {
      Current* last = current.load(std::memory_order_acquire);
      if (last == nullptr || last->fork.Forked()) return;
      if (Machine* joined = last->machine.load(std::memory_order_acquire); joined != nullptr) joined->Leave();
    });
  });
  return machine.release();
}

Result<std::unique_ptr<StateFile>> OpenSettled(const MachineConfig& config) {
  NPU_ASSIGN(std::unique_ptr<StateFile> file, StateFile::Open(config.name, StateFile::Missing::kCreate));
  NPU_TRY(Settle(*file, config));
  return file;
}

Status Keep(const MachineConfig& config) {
  NPU_ASSIGN(std::unique_ptr<StateFile> file, OpenSettled(config));
  file->layout().header.kept.store(1, std::memory_order_relaxed);
  return {};
}

Status Drop(const std::string& name) {
  NPU_ASSIGN(std::unique_ptr<StateFile> file, StateFile::Open(name, StateFile::Missing::kLeave));
  if (file == nullptr) return {};
  file->layout().header.kept.store(0, std::memory_order_relaxed);
  if (file->fresh() || (RepairSlots(file->layout(), *file) == 0 && !Stays(file->layout()))) file->Remove();
  return {};
}

}  // namespace npu::device
