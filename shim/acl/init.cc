// aclInit and aclFinalize: the configuration file and the reference count of the process.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "gen/calls/acl.h"
#include "runtime/context/default_device.h"
#include "shim/acl/init.h"

namespace npu {
namespace {

using nlohmann::json;

constexpr size_t kLargestFile = 1 << 20;

struct Process {
  std::mutex mutex;
  uint64_t references = 0;
  bool finalised = false;              // since the last aclInit
  std::optional<std::string> content;  // of the first successful init
};
Process& TheProcess() {
  static auto* process = new Process;
  return *process;
}

Result<std::string> ReadFile(const char* path, const char* function) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return Error(Code::kInvalidFile, "{}: the configuration file {} cannot be opened.", function, path)
        .Remedy("Give the path of a readable JSON file, or null for the defaults.");
  }
  std::string text(kLargestFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  std::error_code ignored;
  if (in.bad() || (text.empty() && std::filesystem::is_directory(path, ignored))) {
    return Error(Code::kInvalidFile, "{}: the configuration file {} cannot be read.", function, path)
        .Remedy("Give the path of a readable JSON file, or null for the defaults.");
  }
  if (text.size() > kLargestFile) {
    return Error(Code::kInvalidFile, "{}: the configuration file {} is larger than {} bytes.", function, path,
                 kLargestFile);
  }
  return text;
}

// {"defaultDevice": {"default_device": "0"}}; a number is accepted as well as its text.
Result<int> DefaultDeviceOf(const json& config) {
  const auto section = config.find("defaultDevice");
  if (section == config.end()) return -1;
  auto bad = [&](const std::string& got) {
    return Error(Code::kParseFile, "aclInit: defaultDevice.default_device is {}, not a device number.", got)
        .Remedy(
            "Write {{\"defaultDevice\": {{\"default_device\": \"0\"}}}} with the number of a device of this process.");
  };
  if (!section->is_object() || !section->contains("default_device")) return bad(section->dump());
  const json& value = (*section)["default_device"];
  if (value.is_number_integer()) {
    if (value.get<int64_t>() < 0 || value.get<int64_t>() > 1023) return bad(value.dump());
    return value.get<int>();
  }
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text.empty() || text.size() > 3 ||
      !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return bad(value.dump());
  }
  return std::stoi(text);
}

}  // namespace

Result<json> ParseConfig(const char* path, std::string* content, const char* function) {
  NPU_ASSIGN(*content, ReadFile(path, function));
  if (content->find_first_not_of(" \t\r\n") == std::string::npos) return json::object();
  json config = json::parse(*content, nullptr, /*allow_exceptions=*/false);
  if (config.is_discarded() || !config.is_object()) {
    return Error(Code::kParseFile, "{}: {} holds no JSON object.", function, path).Remedy("Correct the file's JSON.");
  }
  return config;
}

bool Initialised() {
  Process& process = TheProcess();
  std::lock_guard lock(process.mutex);
  return process.references > 0;
}

namespace calls {

Status aclInit(const char* configPath) {
  std::string content;
  json config = json::object();
  if (configPath != nullptr && *configPath != '\0') {
    NPU_ASSIGN(config, ParseConfig(configPath, &content, "aclInit"));
  }
  NPU_ASSIGN(const int device, DefaultDeviceOf(config));
  Process& process = TheProcess();
  std::lock_guard lock(process.mutex);
  if (process.content && *process.content != content) {
    return Error(Code::kInvalidParam, "aclInit: another configuration than at the first successful call.")
        .Remedy("Call aclInit once in a process, or with the same file.");
  }
  process.finalised = false;
  if (process.references++ > 0) {
    return Error(Code::kRepeatInitialize, "aclInit: already initialised in this process; one reference was added.")
        .Remedy("Nothing needs doing; each successful or repeated aclInit takes an aclFinalizeReference.");
  }
  process.content = content;
  if (device >= 0) rt::SetDefaultDevice(device);
  return {};
}

Status aclFinalize() {
  Process& process = TheProcess();
  std::lock_guard lock(process.mutex);
  if (process.finalised) {
    return Error(Code::kRepeatFinalize, "aclFinalize: already finalised since the last aclInit.");
  }
  process.finalised = true;
  process.references = 0;
  process.content.reset();
  rt::SetDefaultDevice(-1);
  return {};
}

Status aclFinalizeReference(uint64_t* refCount) {
  Process& process = TheProcess();
  std::lock_guard lock(process.mutex);
  if (process.references == 0) {
    return Error(Code::kRepeatFinalize, "aclFinalizeReference: no reference of aclInit is left.");
  }
  if (--process.references == 0) {
    process.finalised = true;
    process.content.reset();
    rt::SetDefaultDevice(-1);
  }
  if (refCount != nullptr) *refCount = process.references;
  return {};
}

}  // namespace calls
}  // namespace npu
