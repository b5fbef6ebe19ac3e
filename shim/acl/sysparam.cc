// Options of the process: determinism, debug kernels, strong consistency, early start.
#include <atomic>

#include "gen/calls/acl.h"

namespace npu::calls {
namespace {

constexpr int kOptions = 4;  // 3, early start, is younger than the enum
std::atomic<int64_t> options[kOptions];

Status KnownOption(int option, const char* function) {
  if (option >= 0 && option < kOptions) return {};
  return Error(Code::kInvalidParam, "{}: there is no option {}.", function, option);
}

}  // namespace

// Our kernels give the same bits in every run whatever the determinism level, so the levels are only remembered.
Status aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  NPU_TRY(KnownOption(opt, "aclrtSetSysParamOpt"));
  const int64_t largest = opt == ACL_OPT_DETERMINISTIC ? 3 : 1;
  if (value < 0 || value > largest) {
    return Error(Code::kOutOfRange, "aclrtSetSysParamOpt: value {} of option {} is outside 0 to {}.", value,
                 static_cast<int>(opt), largest);
  }
  options[opt].store(value, std::memory_order_relaxed);
  return {};
}

Status aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  if (value == nullptr) return Error(Code::kInvalidParam, "aclrtGetSysParamOpt: value is null.");
  NPU_TRY(KnownOption(opt, "aclrtGetSysParamOpt"));
  *value = options[opt].load(std::memory_order_relaxed);
  return {};
}

}  // namespace npu::calls
