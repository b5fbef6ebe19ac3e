// What a thread has to say about its failures: the text of aclGetRecentErrMsg and the code of aclrtGetLastError.
//
// Failing entries queue a message; success clears nothing. Reading the message empties the queue, as CANN does. The
// newest message comes first because clients append the whole text to the error of the call that has just failed; older
// ones (of failures the client tolerated) follow, a few at most.
#pragma once

#include <cstdint>

#include "base/status/status.h"

namespace npu {

// Queues the message of a failed `status` for this thread; `code` is the number the client gets.
void RecordError(const Status& status, int32_t code);

// Takes this thread's queued text; null when nothing is queued. The buffer lives until the same thread's next call.
const char* TakeErrorMessage();

// Last runtime code (107xxx, 207xxx, 507xxx) of this thread, 0 when none. The layer above (100xxx) is not recorded.
int32_t PeekErrorCode();
int32_t TakeErrorCode();

}  // namespace npu
