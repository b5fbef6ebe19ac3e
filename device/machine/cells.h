// Shared words: what one process sets and others await, for events and notifies between processes.
//
//   NPU_ASSIGN(CellRef cell, MakeCell(*machine));              // the owner
//   cell words[0].store(1, release); RingAll(*machine);        // signal
//   const Cell* c = FindCell(*machine, id);                    // another process; null once the owner is gone
//
// A cell is named by a number that fits 64 bits and is never used twice. Its words are six atomics whose meaning is the
// owner's; a peer may write any of them, so a reader checks what it reads. When the owner dies or frees it the name is
// stale and all doorbells ring.
#pragma once

#include <cstdint>

#include "base/status/status.h"
#include "device/machine/machine.h"

namespace npu::device {

struct CellRef {
  uint64_t id = 0;  // generation << 32 | index + 1
  Cell* cell = nullptr;
};
// Words are zero at first. kNoNotifyResource when all are taken.
Result<CellRef> MakeCell(const Machine& machine);
Cell* FindCell(const Machine& machine, uint64_t id);
// The owner's slot word, 0 when stale.
uint32_t CellOwner(const Machine& machine, uint64_t id);
void FreeCell(const Machine& machine, uint64_t id);

}  // namespace npu::device
