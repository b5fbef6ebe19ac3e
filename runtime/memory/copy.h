// Copies and fills between host and device memory, blocking or queued.
//
//   NPU_ASSIGN(CopyPlan plan, PlanCopy({.dst = d, .dst_bytes = n, .src = s, .bytes = n, .kind = CopyKind::kDefault},
//   fn)); NPU_TRY(plan.Pageable() ? … : CopyOn(plan, stream));
//
// Addresses are translated once, when a plan is made. The direction follows the addresses where both are known.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status/status.h"
#include "base/task/parallel.h"
#include "runtime/stream/stream.h"

namespace npu::rt {

class Pool;

enum class CopyKind : uint8_t { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kDefault };

// Numbers of aclrtMemcpyKind; nothing for unknown ones.
Result<CopyKind> CopyKindOf(int number, const char* function);

// kRegistered: memory of the host that devices see as theirs; either side of a copy may call it what it likes.
enum class Place : uint8_t { kDevice, kRegistered, kPinned, kPageable };
constexpr bool OnHost(Place place) { return place == Place::kPinned || place == Place::kPageable; }

struct Side {
  char* local = nullptr;  // for kernels
  Place place = Place::kPageable;
};
// What an address is; device memory must hold all `bytes`. `param` names it in errors.
Result<Side> LookAt(const void* address, size_t bytes, const char* function, const char* param);

struct CopyArgs {
  void* dst = nullptr;
  size_t dst_bytes = 0;
  const void* src = nullptr;
  size_t bytes = 0;
  CopyKind kind = CopyKind::kDefault;
};

// Rows of `width` bytes; a plain copy is one row.
struct CopyPlan {
  Side dst, src;
  size_t width = 0, rows = 1;
  size_t dst_pitch = 0, src_pitch = 0;
  const char* function = "";
  bool Pageable() const { return dst.place == Place::kPageable || src.place == Place::kPageable; }
  bool HostToHost() const { return OnHost(dst.place) && OnHost(src.place); }
  size_t Bytes() const { return width * rows; }
};

Result<CopyPlan> PlanCopy(const CopyArgs& args, const char* function);
Result<CopyPlan> PlanCopy2d(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height,
                            CopyKind kind, const char* function);

// On the calling thread with the threads of a card. Fails with `code` where memory of the client is not there.
Status CopyNow(const CopyPlan& plan, Parallel& parallel, Code code = Code::kOutOfRange);
// The same for a call of the client: counted among the card's work, and followed by strict memory.
Status CopyHere(const CopyPlan& plan, Pool& pool);
// Behind what is queued.
Status CopyOn(const CopyPlan& plan, Stream& stream);
// The same from a source that the client may change as soon as this returns: it is copied here and now to a place of
// ours. False, with nothing done, when too much waits in such places already or the host has no memory for one.
Result<bool> CopyStagedOn(const CopyPlan& plan, Stream& stream);

// `pattern_bytes` 1 or 4; count patterns from `local` on.
void FillNow(char* local, uint32_t pattern, size_t pattern_bytes, size_t count, Parallel& parallel);
Status FillHere(const Side& side, uint32_t pattern, size_t pattern_bytes, size_t count, Pool& pool,
                const char* function);
Status FillOn(const Side& side, uint32_t pattern, size_t pattern_bytes, size_t count, Stream& stream,
              const char* function);

}  // namespace npu::rt
