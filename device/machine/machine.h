// A machine: virtual cards that all processes of a user share. No daemon, no root, no name but one small state file.
//
//   NPU_ASSIGN(Machine* machine, Join());            // makes the machine at first use; the same object every time
//   machine->profile().soc, machine->cards(), machine->slot()
//
// The environment says which machine and what it is like (`anynpu run` sets it; a program started without it joins
// machine "default" as it stands, or makes it with the defaults):
//
//   variable        value                  default        meaning
//   ANYNPU_MACHINE  letters, digits, -_.   default        name of the machine
//   ANYNPU_CARDS    1 … 64                 2              number of cards (devices)
//   ANYNPU_SOC      Ascend910B4, 910B3, …  Ascend910B4    what the cards are
//   ANYNPU_HBM      32G, 512M, …           the profile's  memory of one card
//   ANYNPU_CANN     9.1.0, 8.5.0, …        9.1.0          reported CANN version
//   ANYNPU_HOST_MEMORY  8G, …              what the host gives   most host memory that all cards together may take
//
// What is asked for and differs from what a machine in use has is an error that names both; an idle machine is made
// anew. A machine goes with its last process, however that ends, unless it is kept. A process is named by pid
// namespace, pid and start time; what a dead one held is returned by whoever looks next.
//
// After a fork the child is a process of its own: it joins with its next call and has a slot of its own.
// Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status/status.h"
#include "device/machine/layout.h"
#include "device/profile/profile.h"

namespace npu::device {

struct MachineConfig {
  std::string name = "default";
  std::optional<uint32_t> cards;
  std::optional<std::string> soc;
  std::optional<uint64_t> hbm_bytes;
  std::optional<std::string> cann;
  std::optional<uint64_t> host_limit;
};
// Fails on a malformed variable, naming it.
Result<MachineConfig> ConfigFromEnvironment();

// The machine that a configuration asks for, defaults filled in.
struct MachineShape {
  const Profile* profile = nullptr;
  uint32_t cards = kDefaultCards;
  uint64_t hbm_bytes = 0, system_bytes = 0, host_limit = 0;
  std::string cann{kDefaultCann};
};
Result<MachineShape> ShapeOf(const MachineConfig& config);

class StateFile;

class Machine {
 public:
  ~Machine();
  const std::string& name() const { return name_; }
  int cards() const { return cards_; }
  const Profile& profile() const { return *profile_; }
  uint64_t hbm_bytes() const { return hbm_bytes_; }
  uint64_t system_bytes() const { return system_bytes_; }
  uint64_t host_limit() const { return host_limit_; }
  std::string_view cann() const { return cann_; }
  std::string_view driver() const { return driver_; }
  uint64_t nonce() const { return nonce_; }
  // This process: SlotWord of layout.h.
  uint32_t slot() const { return slot_; }

  // Whether the process that `slot` names is still there. Asks the kernel: some 10 µs.
  bool IsAlive(uint32_t slot) const;
  // Who it is, for error texts: pid, or 0 when the slot names nobody.
  int32_t PidOf(uint32_t slot) const;
  // The shared entry of a process, or null when the word names nobody. Content is hostile.
  Slot* SlotOf(uint32_t slot) const;
  StateLayout& shared() const { return *shared_; }
  // This process's figures of one card; a place without meaning once it has left.
  CardUse& Mine(int card) const;
  // The process is ending: nothing may be granted any more.
  bool left() const { return left_.load(std::memory_order_acquire); }

  // Returns what dead processes held. At most every 50 ms, unless forced.
  void Repair(bool force = false) const;
  // Bytes granted on a card to all processes. Never above 2^62.
  uint64_t UsedOn(int card) const;
  // Bytes that all processes hold or will need of the host and that have no pages yet, and those that have.
  struct HostUse {
    uint64_t granted = 0, pooled = 0, pending = 0;
  };
  HostUse HostUseOfAll() const;

  // What this process does on one card; a place without meaning once it has left.
  ProcessWork& Work(int card) const;
  // Marks the card as opened by this process (aclrtSetDevice), so that it shows in the process table.
  void SetOpen(int card, bool open) const;

 private:
  friend Result<Machine*> Join();
  friend Result<std::unique_ptr<Machine>> Enter(const MachineConfig& config);
  Machine() = default;
  void Leave();

  std::string name_, cann_, driver_;
  int cards_ = 0;
  const Profile* profile_ = nullptr;
  uint64_t hbm_bytes_ = 0, system_bytes_ = 0, host_limit_ = 0, nonce_ = 0;
  uint32_t slot_ = 0;
  std::atomic<bool> left_{false};  // written under file_mutex_
  StateLayout* shared_ = nullptr;
  std::unique_ptr<StateFile> file_;
  mutable std::atomic<int64_t> repaired_ms_{0};
  mutable std::mutex file_mutex_;  // the file's lock excludes other processes, this one the threads of ours
};

// The machine of this process, by the environment.
Result<Machine*> Join();
// The one joined already, or null; never joins. Null in a forked child until it joins.
Machine* Joined();
// Joins by hand: what Join does, without making it the machine of this process. For tests.
Result<std::unique_ptr<Machine>> Enter(const MachineConfig& config);

// The machine's state file, locked, made or made anew as the configuration asks. For what changes the machine from outside.
Result<std::unique_ptr<StateFile>> OpenSettled(const MachineConfig& config);

// `anynpu up`: makes the machine if needed and keeps it. `anynpu down`: no longer; gone at once when idle, else with
// its last process. Drop of a machine that does not exist is no error.
Status Keep(const MachineConfig& config);
Status Drop(const std::string& name);

}  // namespace npu::device
