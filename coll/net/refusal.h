// What precedes every message of a meeting, and how a failure is told instead of one.
#pragma once

#include <cstdint>

#include "base/status/status.h"
#include "base/time/deadline.h"

namespace npu::coll {

struct Frame {
  uint32_t code = 0;  // npu::Code; 0 is fine
  uint32_t bytes = 0;
};

Status SendFailure(int fd, const Status& status, Deadline deadline);
// The failure that the frame announces, or that of receiving it.
Status ReceiveFailure(int fd, const Frame& frame, Deadline deadline);

// One line on stderr, whole.
void Tell(const std::string& line);

}  // namespace npu::coll
