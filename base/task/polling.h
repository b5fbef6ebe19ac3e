// A task that may be run again while it is parked: it waits for a moment inside Run, so a synchronising thread that looks once
// more saves two hand-overs when the peer is quick.
#pragma once

#include "base/task/task.h"

namespace npu {

class PollingTask : public Task {
 public:
  // Whether running it now, unwoken, is worth while. Asked only while it is parked, under the stream's lock.
  virtual bool Polls() const = 0;
};

}  // namespace npu
