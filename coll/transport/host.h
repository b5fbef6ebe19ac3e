// What ranks on one machine share beside their control block: each other's device memory, doorbells and signs of life.
#pragma once

#include <cstdint>

#include "base/status/status.h"
#include "coll/transport/line.h"

namespace npu::coll {

class Host {
 public:
  virtual ~Host() = default;
  // Device memory of a process, mapped here and with its pages. Cheap when it was asked for before.
  virtual Result<void*> Map(const Place& place) = 0;
  // Whether that process still lives. May ask the kernel.
  virtual bool Alive(uint32_t slot) = 0;
  // Wakes the process: it looks at everything that waits.
  virtual void Ring(uint32_t slot) = 0;
  // The process that `slot` names, for texts.
  virtual int32_t PidOf(uint32_t slot) = 0;
};

// A rank as the others know it.
struct Member {
  uint64_t host_id = 0;  // differs between hosts (boot, pid namespace)
  uint64_t machine = 0;  // differs between machines of a host
  uint32_t slot = 0;     // of the process in its machine
  int32_t pid = 0;
  int32_t card = 0;       // physical
  uint32_t port = 0;      // where its process listens
  char address[48] = {};  // numeric
};

}  // namespace npu::coll
