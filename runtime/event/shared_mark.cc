#include "runtime/event/shared_mark.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "device/doorbell/doorbell.h"
#include "runtime/context/devices.h"

namespace npu::rt {
namespace {

enum Word : size_t { kIssued = 0, kWindow = 1, kRecorder = 2, kFailed = 3 };

// Which records have run, as one word: all up to `base` (modulo 2^32), and base + 1 + i where bit i is set.
struct Window {
  static constexpr uint32_t kBits = 32;
  uint32_t base = 0, bits = 0;

  static Window Of(uint64_t word) { return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)}; }
  uint64_t word() const { return uint64_t{base} << 32 | bits; }
  // 0 or less: below the window.
  int32_t Place(uint64_t number) const { return static_cast<int32_t>(static_cast<uint32_t>(number) - base); }

  bool Has(uint64_t number) const {
    const int32_t place = Place(number);
    return place <= 0 || (static_cast<uint32_t>(place) <= kBits && (bits >> (place - 1) & 1) != 0);
  }
  Window With(uint64_t number) const {
    if (Has(number)) return *this;
    Window next = *this;
    if (const auto place = static_cast<uint32_t>(Place(number)); place > kBits) {
      const uint32_t step = place - kBits;
      next.base += step;
      next.bits = step < kBits ? bits >> step : 0;
    }
    next.bits |= 1u << (next.Place(number) - 1);
    while ((next.bits & 1) != 0) {
      next.bits >>= 1;
      ++next.base;
    }
    return next;
  }
};

bool Has(const device::Cell& cell, uint64_t number) {
  return Window::Of(cell.words[kWindow].load(std::memory_order_acquire)).Has(number);
}

// How often a waiter asks whether the recording process still lives.
constexpr auto kAskAfter = std::chrono::milliseconds(200);

struct Handle {
  char magic[8];
  uint64_t nonce;
  uint64_t id;
};
constexpr char kMagic[8] = {'N', 'P', 'U', 'E', 'V', 'E', 'N', 'T'};
static_assert(sizeof(Handle) <= SharedMark::kHandleBytes);

void Raise(std::atomic<uint64_t>& word, uint64_t value) {
  uint64_t now = word.load(std::memory_order_relaxed);
  while (now < value && !word.compare_exchange_weak(now, value, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

Status Gone(uint64_t id) {
  return Error(Code::kRemoteError, "The process that made the shared event {:#x} has ended or destroyed it.", id)
      .Remedy("Keep the process and its event until all that wait for it have gone on.");
}

}  // namespace

Result<std::unique_ptr<SharedMark>> SharedMark::Make(const char*) {
  NPU_ASSIGN(const device::Machine* machine, TheMachine());
  NPU_ASSIGN(const device::CellRef cell, device::MakeCell(*machine));
  return std::unique_ptr<SharedMark>(new SharedMark(*machine, cell.id, true));
}

Result<std::unique_ptr<SharedMark>> SharedMark::Open(const void* raw, const char* function) {
  NPU_ASSIGN(const device::Machine* machine, TheMachine());
  Handle handle;
  std::memcpy(&handle, raw, sizeof handle);
  if (std::memcmp(handle.magic, kMagic, sizeof kMagic) != 0 || handle.nonce != machine->nonce()) {
    return Error(Code::kInvalidHandle, "{}: these bytes are no event of a process of this machine.", function)
        .Remedy("Pass what aclrtIpcGetEventHandle gave in a process of the same machine.");
  }
  if (device::FindCell(*machine, handle.id) == nullptr) return Gone(handle.id);
  return std::unique_ptr<SharedMark>(new SharedMark(*machine, handle.id, false));
}

SharedMark::~SharedMark() {
  if (owner_) device::FreeCell(machine_, id_);
}

void SharedMark::Export(void* raw) const {
  Handle handle{};
  std::memcpy(handle.magic, kMagic, sizeof kMagic);
  handle.nonce = machine_.nonce();
  handle.id = id_;
  std::memset(raw, 0, kHandleBytes);
  std::memcpy(raw, &handle, sizeof handle);
}

Result<uint64_t> SharedMark::Issue(const char*) {
  device::Cell* cell = Cell();
  if (cell == nullptr) return Gone(id_);
  cell->words[kRecorder].store(machine_.slot(), std::memory_order_relaxed);
  return cell->words[kIssued].fetch_add(1, std::memory_order_acq_rel) + 1;
}

void SharedMark::Reach(uint64_t number, bool failed) {
  device::Cell* cell = Cell();
  if (cell == nullptr) return;
  if (failed) Raise(cell->words[kFailed], number);
  uint64_t now = cell->words[kWindow].load(std::memory_order_relaxed);
  while (!cell->words[kWindow].compare_exchange_weak(now, Window::Of(now).With(number).word(), std::memory_order_release,
                                                     std::memory_order_relaxed)) {
  }
  device::RingAll(machine_);
}

uint64_t SharedMark::Issued() const {
  const device::Cell* cell = Cell();
  return cell == nullptr ? 0 : cell->words[kIssued].load(std::memory_order_acquire);
}

Result<bool> SharedMark::Reached(uint64_t number) const {
  if (number == 0) return true;
  const device::Cell* cell = Cell();
  if (cell == nullptr) return Gone(id_);
  if (Has(*cell, number)) {
    if (cell->words[kFailed].load(std::memory_order_relaxed) != number) return true;
    return Error(Code::kRemoteError, "The stream that was to reach the shared event {:#x} has failed.", id_)
        .Remedy("Look at the error of the process that records it.");
  }
  const auto recorder = static_cast<uint32_t>(cell->words[kRecorder].load(std::memory_order_relaxed));
  if (recorder == machine_.slot() || machine_.IsAlive(recorder)) return false;
  // It may have reached the event just before it went.
  if (Has(*cell, number)) return true;
  return Error(Code::kRemoteError, "The process that was to reach the shared event {:#x} has ended.", id_)
      .Remedy("Look at why it ended, and start the job again.");
}

uint32_t SharedMark::BellSeen() const { return device::BellCount(machine_); }

void SharedMark::WakeOnChange(uint32_t bell_seen, const Waker& waker, BellWait& wait) const {
  wait.Set(machine_, bell_seen, waker, Deadline::Clock::now() + kAskAfter);
}

Status SharedMark::Wait(uint64_t number, Deadline deadline, const char* function) const {
  while (true) {
    const uint32_t seen = BellSeen();
    NPU_ASSIGN(const bool reached, Reached(number));
    if (reached) return {};
    if (deadline.passed()) {
      return Error(Code::kEventSyncTimeout, "{}: the shared event was not reached within the time limit.", function)
          .Remedy("Wait longer, or look at the process that records it.");
    }
    device::AwaitBell(machine_, seen, Deadline::In(std::min<std::chrono::nanoseconds>(kAskAfter, deadline.left())));
  }
}

}  // namespace npu::rt
