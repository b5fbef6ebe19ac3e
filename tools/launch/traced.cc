#include "tools/launch/traced.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "tools/launch/child.h"
#include "tools/trace/summary.h"

namespace npu::launch {
namespace fs = std::filesystem;

Traced::Traced(TraceOptions options, fs::path folder, bool keep)
    : options_(std::move(options)), folder_(std::move(folder)), keep_(keep) {}

Traced::Traced(Traced&& other) noexcept
    : options_(std::move(other.options_)), folder_(std::move(other.folder_)), keep_(std::exchange(other.keep_, true)) {}

Traced::~Traced() {
  if (std::error_code error; !keep_) fs::remove_all(folder_, error);
}

Result<Traced> Traced::Begin(const TraceOptions& options) {
  std::error_code error;
  fs::path folder;
  if (options.folder.empty()) {
    std::string pattern = (fs::temp_directory_path(error) / "anynpu-trace-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      return Error(Code::kInvalidFile, "anynpu trace: no folder can be made in {}: {}.",
                   fs::path(pattern).parent_path().string(), std::strerror(errno))
          .Remedy("Name one with -o.");
    }
    folder = pattern;
  } else {
    folder = fs::absolute(options.folder).lexically_normal();
    fs::create_directories(folder, error);
    if (error)
      return Error(Code::kInvalidFile, "anynpu trace: {}: {}.", folder.string(), error.message())
          .Remedy("Name another folder with -o.");
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() != ".jsonl") continue;
      return Error(Code::kInvalidFile, "anynpu trace: {} already holds {}.", folder.string(),
                   entry.path().filename().string())
          .Remedy("Name a new folder, or remove it: traces are not mixed.");
    }
  }
  setenv("ANYNPU_TRACE", folder.c_str(), 1);
  return Traced(options, folder, !options.folder.empty());
}

int Traced::Child(const std::function<int()>& body) { return RunChild("anynpu trace", body); }

Status Traced::Tell() const {
  NPU_ASSIGN(const std::vector<trace::Record> records, trace::Read(folder_));
  fmt::print(stderr, "anynpu trace: {}", trace::Table(records, options_.rows));
  if (keep_)
    fmt::print(stderr, "The calls lie in {}; anynpu replay {} makes them again.\n", folder_.string(), folder_.string());
  if (options_.chrome.empty()) return {};
  std::ofstream file(options_.chrome);
  file << trace::ChromeTrace(records);
  if (file.flush()) return {};
  return Error(Code::kInvalidFile, "anynpu trace: {} cannot be written.", options_.chrome)
      .Remedy("Name another file with --chrome.");
}

}  // namespace npu::launch
