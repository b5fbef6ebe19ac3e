// The part of an IPC event that several processes see: how many records were queued and how many have run, in a cell of the
// machine's state file.
//
// Records are numbered, and a wait is for the number of its time. Records on different streams may overlap and end in any order:
// which ones have run is kept for the latest 32 of them; when more overlap, older ones count as run.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status/status.h"
#include "base/task/task.h"
#include "base/time/deadline.h"
#include "device/machine/cells.h"
#include "device/machine/machine.h"
#include "runtime/workers/bell.h"

namespace npu::rt {

class SharedMark {
 public:
  static constexpr size_t kHandleBytes = 64;

  static Result<std::unique_ptr<SharedMark>> Make(const char* function);
  // From what another process (or this one) exported. kInvalidHandle for bytes that are no handle of this machine.
  static Result<std::unique_ptr<SharedMark>> Open(const void* handle, const char* function);
  ~SharedMark();
  SharedMark(const SharedMark&) = delete;
  SharedMark& operator=(const SharedMark&) = delete;

  void Export(void* handle) const;

  // A record is being queued: its number. Fails when the event's maker has gone.
  Result<uint64_t> Issue(const char* function);
  void Reach(uint64_t number, bool failed);

  uint64_t Issued() const;
  // Whether record `number` has run; kRemoteError when it never will: its process or the event's maker died, or its stream failed.
  Result<bool> Reached(uint64_t number) const;
  // Parks a task until something changed.
  void WakeOnChange(uint32_t bell_seen, const Waker& waker, BellWait& wait) const;
  uint32_t BellSeen() const;
  Status Wait(uint64_t number, Deadline deadline, const char* function) const;

 private:
  SharedMark(const device::Machine& machine, uint64_t id, bool owner) : machine_(machine), id_(id), owner_(owner) {}
  device::Cell* Cell() const { return device::FindCell(machine_, id_); }

  const device::Machine& machine_;
  const uint64_t id_;
  const bool owner_;
};

}  // namespace npu::rt
