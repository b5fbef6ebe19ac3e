// Functions of the client that are told of failed tasks. They run on a thread of ours that does nothing else: they may
// take locks that a synchronising thread holds, and nothing of ours waits for them.
//
//   SetExceptionFunction(f);                       // one for the process; null takes it away
//   NPU_TRY(AddExceptionFunction(g, function));    // further ones
//
// Any thread may call anything. No lock of ours is held while a function of the client runs.
#pragma once

#include <cstdint>

#include "base/status/status.h"

namespace npu::rt {

// What a function is told; valid while it runs.
struct Exception {
  uint32_t task = 0;  // number of the task on its stream, from 1
  uint32_t stream = 0;
  uint32_t thread = 0;  // that queued on the stream last
  int card = 0;         // physical
  Code code = Code::kOk;
};
using ExceptionFunction = void (*)(Exception* exception);

void SetExceptionFunction(ExceptionFunction function);
Status AddExceptionFunction(ExceptionFunction added, const char* function);
Status RemoveExceptionFunction(ExceptionFunction removed, const char* function);

// A task has failed. Quick; never calls the client.
void NoteException(const Exception& exception);

}  // namespace npu::rt
