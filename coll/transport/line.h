// What ranks tell each other about one call: a line of 128 bytes, and up to 8 KiB of payload behind it.
//
// A lane is a sequence of lines: the group lane of a rank is read by all its peers, a pair lane by one. Lines of a lane
// are numbered from 1. A line is never believed further than its own bounds: places are checked where they are used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace npu::coll {

enum class Op : uint8_t {
  kNone,
  kAllReduce,
  kBroadcast,
  kAllGather,
  kAllGatherV,
  kReduceScatter,
  kReduceScatterV,
  kReduce,
  kScatter,
  kAlltoAll,
  kAlltoAllV,
  kAlltoAllVC,
  kBarrier,
  kSendRecv,
  kBatch,
};

// What all ranks must agree on. Counts that may differ between ranks (the V forms) are not in it.
struct Fingerprint {
  Op op = Op::kNone;
  uint8_t type = 0;    // HcclDataType
  uint8_t reduce = 0;  // HcclReduceOp
  uint8_t spare = 0;
  uint32_t root = 0;
  uint64_t count = 0;

  bool operator==(const Fingerprint&) const = default;
};
static_assert(sizeof(Fingerprint) == 16);

// Where a buffer is: an offset in the arena that a process has on a card.
struct Place {
  uint32_t slot = 0;
  int32_t card = -1;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

inline constexpr uint32_t kInlineBytes = 8192;
// Where no two ranks share memory, a line is a message and may carry more.
inline constexpr uint32_t kWireInlineBytes = 128 << 10;

// kOverlaps: this rank's out-buffer covers parts of its in-buffer that others still read, so nobody may write into it.
enum LineFlags : uint32_t { kOverlaps = 1 };

struct Line {
  Fingerprint print;
  Place in, out;
  uint32_t payload_bytes = 0;
  uint32_t flags = 0;  // LineFlags
  uint32_t spare[12] = {};
};
static_assert(sizeof(Line) == 120 && sizeof(Place) == 24);

enum class Lane : uint8_t { kGroup, kPair };
enum class Buffer : uint8_t { kIn, kOut, kPartial };

const char* NameOf(Op op);  // "HcclAllReduce"

}  // namespace npu::coll
