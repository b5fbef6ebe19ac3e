// `anynpu trace`: a command as a child whose operators write down what they do, and the list of it afterwards.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/status/status.h"

namespace npu::launch {

struct TraceOptions {
  std::string folder;  // where the calls are kept; empty: nowhere
  std::string chrome;  // a file for a Chrome trace; empty: none
  size_t rows = 30;
};

class Traced {
 public:
  // Makes the folder and names it to the libraries (ANYNPU_TRACE). A folder that already holds a trace is refused.
  static Result<Traced> Begin(const TraceOptions& options);
  Traced(Traced&& other) noexcept;
  ~Traced();  // removes what was not to be kept

  // Runs `body`, which becomes the command, in a child and waits for its end. Returns the exit status as a shell sees
  // it.
  int Child(const std::function<int()>& body);
  // The list on stderr, since stdout is the command's.
  Status Tell() const;

 private:
  Traced(TraceOptions options, std::filesystem::path folder, bool keep);
  TraceOptions options_;
  std::filesystem::path folder_;
  bool keep_;
};

}  // namespace npu::launch
