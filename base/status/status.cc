#include "base/status/status.h"

namespace npu {

std::string Status::Message() const {
  if (ok()) return {};
  if (rep_->remedy.empty()) return rep_->text;
  return fmt::format("{} {}", rep_->text, rep_->remedy);
}

Status NotYet(std::string_view name, std::string_view what) {
  return Error(Code::kNotYet, "{} is not implemented in AnyNPU yet{}{}.", name, what.empty() ? "" : ": ", what)
      .Remedy("See docs/limits.md for what is owed; the real product has it.");
}

Status Unsupported(std::string_view name, std::string_view why) {
  return Error(Code::kNotSupported, "{} is not supported: {}.", name, why);
}

namespace {
struct Row {
  std::string_view name;
  int32_t acl, nn, hccl, dcmi;
};
constexpr Row kRows[] = {
#define NPU_ERROR(name, acl, nn, hccl, dcmi) {#name, acl, nn, hccl, dcmi},
#include "gen/errors.inc"
#undef NPU_ERROR
};
const Row& RowOf(Code code) { return kRows[static_cast<size_t>(code)]; }
}  // namespace

int32_t AclCode(Code code) { return RowOf(code).acl; }
int32_t NnCode(Code code) { return RowOf(code).nn; }
int32_t HcclCode(Code code) { return RowOf(code).hccl; }
int32_t DcmiCode(Code code) { return RowOf(code).dcmi; }
std::string_view CodeName(Code code) { return RowOf(code).name; }

}  // namespace npu
