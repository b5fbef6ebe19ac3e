// The memory that the ranks of one machine share for a communicator: lines, progress, pair cells.
//
// Rank r writes its own box and, in cell (s, d), what its side of the pair says; everybody reads everything. The layout
// is fixed by the number of ranks. One rank makes it as a memfd without a name, the others map it through the maker's
// descriptor table; it goes with its last mapping.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/os/fd.h"
#include "base/status/status.h"
#include "coll/transport/line.h"

namespace npu::coll {

struct alignas(64) GroupLine {
  std::atomic<uint64_t> seq;  // stored last, with release
  Line line;
  alignas(64) std::byte payload[kInlineBytes];
};

enum RankState : uint32_t { kRankHere = 0, kRankLeft = 1, kRankFailed = 2 };

struct alignas(64) RankBox {
  std::atomic<uint64_t> progress;           // of the group lane
  alignas(64) std::atomic<uint32_t> armed;  // the rank's process wants to be rung
  std::atomic<uint32_t> state;              // RankState
  alignas(64) GroupLine lines[2];           // call n uses n & 1
};

struct alignas(64) PairCell {
  std::atomic<uint64_t> seq;  // written by the sender
  Line line;
  alignas(64) std::atomic<uint64_t> answer;  // written by the receiver
};

class ControlBlock {
 public:
  static uint64_t BytesFor(uint32_t ranks);
  static Result<std::unique_ptr<ControlBlock>> Make(uint32_t ranks);
  // Maps the block that process `pid` holds as descriptor `fd`; inode proves that it is the one meant.
  static Result<std::unique_ptr<ControlBlock>> Join(uint32_t ranks, int32_t pid, int fd, uint64_t inode);
  ~ControlBlock();
  ControlBlock(const ControlBlock&) = delete;
  ControlBlock& operator=(const ControlBlock&) = delete;

  RankBox& box(uint32_t rank) { return boxes_[rank]; }
  PairCell& cell(uint32_t from, uint32_t to) { return cells_[uint64_t{from} * ranks_ + to]; }
  uint32_t ranks() const { return ranks_; }
  // Of the maker, for the others; CloseFd when all have joined.
  int fd() const { return fd_.get(); }
  uint64_t inode() const { return inode_; }
  void CloseFd() { fd_.Reset(); }

 private:
  ControlBlock() = default;
  static Result<std::unique_ptr<ControlBlock>> Map(uint32_t ranks, os::Fd fd);

  uint32_t ranks_ = 0;
  uint64_t inode_ = 0;
  os::Fd fd_;
  void* memory_ = nullptr;
  RankBox* boxes_ = nullptr;
  PairCell* cells_ = nullptr;
};

}  // namespace npu::coll
