// The bit of a notify that several processes share, in a cell of the machine's state file.
//
//   NPU_ASSIGN(auto bit, SharedNotify::Make(set));           // the maker
//   std::string key = bit->Key();                             // at most 64 characters
//   NPU_ASSIGN(auto same, SharedNotify::Open(key, function)); // another process (or this one)
//
// Setting rings every doorbell of the machine. Any thread may call anything.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status/status.h"
#include "base/task/task.h"
#include "device/machine/cells.h"
#include "device/machine/machine.h"
#include "runtime/workers/bell.h"

namespace npu::rt {

class SharedNotify {
 public:
  static constexpr size_t kKeyBytes = 65;

  static Result<std::unique_ptr<SharedNotify>> Make(bool set);
  // kInvalidHandle for what is no key of this machine, kNoPermission for a process that may not import.
  static Result<std::unique_ptr<SharedNotify>> Open(std::string_view key, const char* function);
  ~SharedNotify();
  SharedNotify(const SharedNotify&) = delete;
  SharedNotify& operator=(const SharedNotify&) = delete;

  std::string Key() const;
  void OpenToAll();
  // At most eight processes in all.
  Status Allow(std::span<const int32_t> pids, const char* function);

  // Fails when the maker has gone.
  Status Set();
  // Whether the bit was set; it is clear then.
  Result<bool> Take();
  void Clear();

  uint32_t BellSeen() const;
  // Parks a task until something changed.
  void WakeOnChange(uint32_t bell_seen, const Waker& waker, BellWait& wait) const;

 private:
  SharedNotify(const device::Machine& machine, uint64_t id, bool owner) : machine_(machine), id_(id), owner_(owner) {}
  device::Cell* Cell() const { return device::FindCell(machine_, id_); }

  const device::Machine& machine_;
  const uint64_t id_;
  const bool owner_;
};

}  // namespace npu::rt
