#include "runtime/notify/shared_notify.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>

#include "device/doorbell/doorbell.h"
#include "runtime/context/devices.h"

namespace npu::rt {
namespace {

// Words of the cell. A pid word holds two processes that may import, 0 none.
enum Word : size_t { kSet = 0, kOpenToAll = 1, kPids = 2, kEnd = 6 };

// How often a waiter asks whether the maker still lives.
constexpr auto kAskAfter = std::chrono::milliseconds(200);
constexpr std::string_view kPrefix = "NPUNOTIFY-";

Status Gone(uint64_t id) {
  return Error(Code::kRemoteError, "The process that made the shared notify {:#x} has ended or destroyed it.", id)
      .Remedy("Keep the process and its notify until all that use it have gone on.");
}

bool Hex(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number, 16);
  return error == std::errc() && end == text.data() + text.size();
}

bool Holds(const device::Cell& cell, int32_t pid) {
  const auto wanted = static_cast<uint32_t>(pid);
  for (size_t w = kPids; w < kEnd; ++w) {
    const uint64_t two = cell.words[w].load(std::memory_order_relaxed);
    if (static_cast<uint32_t>(two) == wanted || two >> 32 == wanted) return true;
  }
  return false;
}

// Puts the process where there is room.
bool Place(device::Cell& cell, int32_t pid) {
  const auto number = static_cast<uint64_t>(static_cast<uint32_t>(pid));
  for (size_t w = kPids; w < kEnd; ++w) {
    uint64_t two = cell.words[w].load(std::memory_order_relaxed);
    for (int shift = 0; shift < 64; shift += 32) {
      while (static_cast<uint32_t>(two >> shift) == 0) {
        if (cell.words[w].compare_exchange_weak(two, two | number << shift, std::memory_order_relaxed)) return true;
      }
    }
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<SharedNotify>> SharedNotify::Make(bool set) {
  NPU_ASSIGN(const device::Machine* machine, TheMachine());
  NPU_ASSIGN(const device::CellRef cell, device::MakeCell(*machine));
  cell.cell->words[kSet].store(set ? 1 : 0, std::memory_order_release);
  return std::unique_ptr<SharedNotify>(new SharedNotify(*machine, cell.id, true));
}

Result<std::unique_ptr<SharedNotify>> SharedNotify::Open(std::string_view key, const char* function) {
  NPU_ASSIGN(const device::Machine* machine, TheMachine());
  uint64_t nonce = 0, id = 0;
  const bool shape = key.size() == kPrefix.size() + 32 && key.starts_with(kPrefix) &&
                     Hex(key.substr(kPrefix.size(), 16), &nonce) && Hex(key.substr(kPrefix.size() + 16), &id);
  if (!shape || nonce != machine->nonce()) {
    return Error(Code::kInvalidHandle, "{}: this key names no notify of a process of this machine.", function)
        .Remedy("Pass what aclrtNotifyGetExportKey gave in a process of the same machine.");
  }
  const device::Cell* cell = device::FindCell(*machine, id);
  if (cell == nullptr) return Gone(id);
  const bool ours = device::CellOwner(*machine, id) == machine->slot();
  if (!ours && cell->words[kOpenToAll].load(std::memory_order_relaxed) == 0 && !Holds(*cell, getpid())) {
    return Error(Code::kNoPermission, "{}: the owner of the notify has not allowed process {} to import it.", function,
                 getpid())
        .Remedy("Let the owner call aclrtNotifySetImportPid, or export with the flag that switches the check off.");
  }
  return std::unique_ptr<SharedNotify>(new SharedNotify(*machine, id, false));
}

SharedNotify::~SharedNotify() {
  if (owner_) device::FreeCell(machine_, id_);
}

std::string SharedNotify::Key() const { return fmt::format("{}{:016x}{:016x}", kPrefix, machine_.nonce(), id_); }

void SharedNotify::OpenToAll() {
  if (device::Cell* cell = Cell()) cell->words[kOpenToAll].store(1, std::memory_order_relaxed);
}

Status SharedNotify::Allow(std::span<const int32_t> pids, const char* function) {
  device::Cell* cell = Cell();
  if (cell == nullptr) return Gone(id_);
  for (const int32_t pid : pids) {
    if (pid <= 0) return Error(Code::kOutOfRange, "{}: {} is no process id.", function, pid);
    if (!Holds(*cell, pid) && !Place(*cell, pid)) {
      return Error(Code::kResourceExhausted, "{}: the notify has {} allowed processes already.", function,
                   2 * (kEnd - kPids))
          .Remedy("Export it with the flag that switches the check off.");
    }
  }
  return {};
}

Status SharedNotify::Set() {
  device::Cell* cell = Cell();
  if (cell == nullptr) return Gone(id_);
  cell->words[kSet].store(1, std::memory_order_release);
  device::RingAll(machine_);
  return {};
}

Result<bool> SharedNotify::Take() {
  device::Cell* cell = Cell();
  if (cell == nullptr) return Gone(id_);
  if (cell->words[kSet].exchange(0, std::memory_order_acq_rel) != 0) return true;
  if (!owner_ && !machine_.IsAlive(device::CellOwner(machine_, id_))) return Gone(id_);
  return false;
}

void SharedNotify::Clear() {
  if (device::Cell* cell = Cell()) cell->words[kSet].store(0, std::memory_order_release);
}

uint32_t SharedNotify::BellSeen() const { return device::BellCount(machine_); }

void SharedNotify::WakeOnChange(uint32_t bell_seen, const Waker& waker, BellWait& wait) const {
  wait.Set(machine_, bell_seen, waker, Deadline::Clock::now() + kAskAfter);
}

}  // namespace npu::rt
