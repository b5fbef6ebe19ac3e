// Functions of the client that a stream calls. They never run on a worker and never on a thread that synchronises: they may
// take locks (Python's) that such a thread holds. A callback runs on the thread that the client subscribed for the stream,
// inside its ProcessReport; a host function runs on a thread of ours, one for each card.
//
// Any thread may call anything. No lock of ours is held while a function of the client runs.
#pragma once

#include <cstdint>

#include "base/status/status.h"
#include "base/time/deadline.h"
#include "runtime/stream/task_stream.h"

namespace npu::rt {

using HostFunction = void (*)(void* data);

// Binds the stream to the thread with that id (pthread_self or gettid) as the runner of its callbacks.
Status Subscribe(uint64_t thread_id, TaskStream& stream, const char* function);
// Waits (not for ever) for callbacks of the stream that are under way.
Status Unsubscribe(uint64_t thread_id, TaskStream& stream, const char* function);
// `block`: later tasks of the stream wait until the callback has returned.
Status QueueCallback(HostFunction call, void* data, bool block, TaskStream& stream, const char* function);
// On the subscribed thread: waits for callbacks and runs all that came. kReportTimeout when none came before the deadline.
Status ProcessCallbacks(Deadline deadline, const char* function);

// Forgets a stream that is being destroyed; with `abandon`, callbacks that wait for their thread are not called any more.
void ForgetCallbacks(const TaskStream& stream, bool abandon);

// Later tasks of the stream wait until the function has returned.
Status QueueHostFunction(HostFunction call, void* data, TaskStream& stream, const char* function);

}  // namespace npu::rt
