#include "base/status/boundary.h"
#include "gen/calls/acl.h"

namespace npu::calls {

const char* aclGetRecentErrMsg() { return TakeErrorMessage(); }

}  // namespace npu::calls

// The value is the answer, not the success of the call: 100000 for another level is itself not recorded.
extern "C" NPU_EXPORT aclError aclrtGetLastError(aclrtLastErrLevel level) {
  return level == ACL_RT_THREAD_LEVEL ? npu::TakeErrorCode() : ACL_ERROR_INVALID_PARAM;
}
extern "C" NPU_EXPORT aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  return level == ACL_RT_THREAD_LEVEL ? npu::PeekErrorCode() : ACL_ERROR_INVALID_PARAM;
}
