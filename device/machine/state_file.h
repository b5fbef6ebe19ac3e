// The file of one machine: found, checked, locked and mapped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/os/fd.h"
#include "base/status/status.h"
#include "base/time/deadline.h"
#include "device/machine/layout.h"

namespace npu::device {

// The user's directory for state files: $XDG_RUNTIME_DIR/anynpu, else /tmp/anynpu-<uid>. Made with mode 0700; refused
// when it is a link, belongs to another user or others may enter.
Result<os::Fd> OpenStateDirectory(bool create, std::string* path = nullptr);
// Letters, digits, '-', '_', '.', at most 48, not starting with a dot.
bool IsMachineName(std::string_view name);
// Whether the header may be believed: magic, version, sizes, ranges, known profile, ended texts.
Status CheckHeader(const StateHeader& header, uint64_t file_bytes);

class StateFile {
 public:
  ~StateFile();

  enum class Missing { kCreate, kLeave };
  // Opens and locks. With kLeave an absent machine gives null. A file that is not ours or not sound is refused or, when
  // it is ours and merely of another layout, replaced. fresh() says that the header is still to be written.
  static Result<std::unique_ptr<StateFile>> Open(const std::string& name, Missing missing);

  // The lock belongs to the open file and goes with the process. Not recursive.
  Status Lock();
  void Unlock();

  StateLayout& layout() const { return *layout_; }
  bool fresh() const { return fresh_; }
  // Takes the name away; mappings live on. Only under the lock.
  void Remove();
  // Marks slot `index` as held by this process, for those who cannot see our pid. Goes with the process.
  void HoldSlot(uint32_t index);
  // Whether somebody holds it.
  bool SlotHeld(uint32_t index) const;
  const std::string& path() const { return path_; }

 private:
  StateFile() = default;
  Status Map();

  os::Fd directory_, fd_;
  std::string file_name_, path_;
  StateLayout* layout_ = nullptr;
  bool fresh_ = false, locked_ = false;
  uint32_t held_ = kMaxSlots;  // the slot this object holds, if any
};

}  // namespace npu::device
