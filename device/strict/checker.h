// What the hooks of strict.h, the fault handler and the end of the process share.
#pragma once

#include <bitset>
#include <mutex>

#include "device/strict/blocks.h"
#include "device/strict/order.h"
#include "device/strict/report.h"

namespace npu::strict {

struct Checker {
  std::mutex mutex;  // guards what follows
  Blocks blocks;
  Order order;
  std::bitset<64 * 64> peers;  // card a may use memory of card b: a * 64 + b
  uint64_t allocations = 0, uses = 0, fragmented = 0;  // fragmented: uses in too many pieces to be followed for order
  static Checker& Get();
};

// "on stream 3 of card 0", "by the calling thread".
std::string Place(int card, int stream);
// What runs now, for a fault in a kernel: "aclnnAdd on stream 3 of card 0, …".
std::string RunningNow();

void CatchFaults();
void TellAtExit();

}  // namespace npu::strict
