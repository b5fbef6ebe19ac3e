// The command as a child of the launcher, for modes that tell something when it has ended.
#pragma once

#include <filesystem>
#include <functional>

#include "base/status/status.h"

namespace npu::launch {

// Runs `body`, which becomes the command, in a child and waits for its end; signals that end programs are handed on.
// The exit status as a shell sees it. `name` begins a message when no process can be started.
int RunChild(const char* name, const std::function<int()>& body);

// A folder of its own that goes with the object.
class Folder {
 public:
  static Result<Folder> Make(const char* name);
  Folder(Folder&& other) noexcept;
  ~Folder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit Folder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace npu::launch
