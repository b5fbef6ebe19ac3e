// Operator dump: the state machine clients see. Dumping itself is owed, so a valid dump section answers NotYet.
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "gen/calls/acl.h"
#include "shim/acl/init.h"

namespace npu::calls {
namespace {

std::mutex mutex;
bool started = false;

Status NeedsInit(const char* function) {
  if (Initialised()) return {};
  return Error(Code::kUninitialized, "{}: aclInit was not called.", function).Remedy("Call aclInit first.");
}

}  // namespace

Status aclmdlInitDump() {
  NPU_TRY(NeedsInit("aclmdlInitDump"));
  std::lock_guard lock(mutex);
  if (started) return Error(Code::kRepeatInitialize, "aclmdlInitDump: dump is on already.");
  started = true;
  return {};
}

Status aclmdlSetDump(const char* dumpCfgPath) {
  NPU_TRY(NeedsInit("aclmdlSetDump"));
  std::lock_guard lock(mutex);
  if (!started) return Error(Code::kDumpNotRun, "aclmdlSetDump: dump is not on.").Remedy("Call aclmdlInitDump first.");
  if (dumpCfgPath == nullptr) return Error(Code::kInvalidParam, "aclmdlSetDump: dumpCfgPath is null.");
  std::string content;
  NPU_ASSIGN(const nlohmann::json config, ParseConfig(dumpCfgPath, &content, "aclmdlSetDump"));
  if (!config.contains("dump") || !config["dump"].is_object()) {
    return Error(Code::kInvalidDumpConfig, "aclmdlSetDump: {} has no \"dump\" section.", dumpCfgPath);
  }
  return NotYet("aclmdlSetDump", "operator data are not dumped");
}

Status aclmdlFinalizeDump() {
  NPU_TRY(NeedsInit("aclmdlFinalizeDump"));
  std::lock_guard lock(mutex);
  if (!started) return Error(Code::kDumpNotRun, "aclmdlFinalizeDump: dump is not on.");
  started = false;
  return {};
}

}  // namespace npu::calls
