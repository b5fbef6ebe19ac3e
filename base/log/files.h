// The files of a process's log: opened with the first line, followed by another when full, the oldest removed.
//
// One object for each kind ("debug", "run") and process; a forked child makes its own, since a lock of the parent's may
// be held for ever there. Any thread.
#pragma once

#include <deque>
#include <mutex>
#include <string>

#include "base/os/fd.h"
#include "base/os/process.h"

namespace npu::log {

class Files {
 public:
  explicit Files(const char* kind) : kind_(kind) {}

  bool Forked() const { return fork_.Forked(); }
  // Writes the line with one call. In the default folder events make no file of their own: `make_default` says whether
  // this line may.
  void Write(const std::string& line, bool make_default);
  void Close();
  // The file being written, or the folder it would be in.
  std::string Path();

 private:
  void Open(bool make_default);

  const char* const kind_;
  std::mutex mutex_;
  os::ForkGuard fork_;
  bool opened_ = false;
  os::Fd file_;
  uint64_t bytes_ = 0;
  std::deque<std::string> paths_;  // oldest first; the last is open
};

}  // namespace npu::log
