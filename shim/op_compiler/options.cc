// Compile options: texts by number. Nothing is compiled here, so they are remembered and steer nothing.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "gen/calls/op_compiler.h"

namespace npu::calls {
namespace {

constexpr size_t kJitSize = 256;  // what CANN reports for ACL_OP_JIT_COMPILE, whatever is stored

std::mutex mutex;
std::map<aclCompileOpt, std::string>& Stored() {
  // Library kernels serve every operator: clients then take the aclnn path.
  static auto* stored = new std::map<aclCompileOpt, std::string>{{ACL_OP_JIT_COMPILE, "disable"}};
  return *stored;
}

}  // namespace

Status aclSetCompileopt(aclCompileOpt opt, const char* value) {
  if (value == nullptr)
    return Error(Code::kInvalidParam, "aclSetCompileopt: the value of option {} is null.", static_cast<int>(opt));
  if (opt == ACL_AUTO_TUNE_MODE) {
    return Error(Code::kFeatureRetired, "aclSetCompileopt: auto tuning (option {}) was retired.",
                 static_cast<int>(opt));
  }
  if (opt < ACL_PRECISION_MODE || opt > ACL_OP_DEBUG_OPTION) {
    return Error(Code::kUnknownOption, "aclSetCompileopt: there is no option {}.", static_cast<int>(opt));
  }
  std::lock_guard lock(mutex);
  Stored()[opt] = value;
  return {};
}

size_t aclGetCompileoptSize(aclCompileOpt opt) {
  if (opt == ACL_OP_JIT_COMPILE) return kJitSize;
  std::lock_guard lock(mutex);
  const auto found = Stored().find(opt);
  return found == Stored().end() ? 0 : found->second.size() + 1;
}

Status aclGetCompileopt(aclCompileOpt opt, char* value, size_t length) {
  if (value == nullptr) return Error(Code::kInvalidParam, "aclGetCompileopt: value is null.");
  if (opt != ACL_OP_JIT_COMPILE && opt != ACL_OP_DEBUG_OPTION) {
    return Error(Code::kNotSupported, "aclGetCompileopt: option {} can be set but not read.", static_cast<int>(opt));
  }
  std::lock_guard lock(mutex);
  const auto found = Stored().find(opt);
  const std::string text = found == Stored().end() ? "" : found->second;
  if (length < (opt == ACL_OP_JIT_COMPILE ? kJitSize : text.size() + 1)) {
    return Error(Code::kShortBuffer, "aclGetCompileopt: {} bytes are too few for option {}.", length,
                 static_cast<int>(opt))
        .Remedy("Ask aclGetCompileoptSize for the size.");
  }
  std::memcpy(value, text.c_str(), text.size() + 1);
  return {};
}

Status aclopSetCompileFlag(aclOpCompileFlag flag) {
  if (flag == ACL_OP_COMPILE_DEFAULT || flag == ACL_OP_COMPILE_FUZZ) return {};
  return Error(Code::kInvalidParam, "aclopSetCompileFlag: there is no flag {}.", static_cast<int>(flag));
}

}  // namespace npu::calls
