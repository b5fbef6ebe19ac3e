// The life of this process as far as threads care: fork and exit.
//
// A forked child has none of our threads and may have copied a lock in the locked state, so nothing of the runtime may be
// touched in it: every door asks Forked() first. At exit the workers are told to stop before the client's static
// destructors run; calls made after that still work, on the calling thread alone.
#pragma once

#include "base/status/status.h"

namespace npu::rt {

// Notes that threads or contexts exist from now on (registers the fork and exit handlers once).
void NoteUse();
// True in a child forked after NoteUse.
bool Forked();
// The error for calls in such a child.
Status ForkedError(const char* function);
// True once exit handlers ran.
bool Exiting();

// For tests of the exit path: what the exit handler does.
void StopWorkersForExit();

}  // namespace npu::rt
