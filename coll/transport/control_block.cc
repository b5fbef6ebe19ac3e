#include "coll/transport/control_block.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace npu::coll {

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

uint64_t ControlBlock::BytesFor(uint32_t ranks) {
  const uint64_t bytes = sizeof(RankBox) * uint64_t{ranks} + sizeof(PairCell) * uint64_t{ranks} * ranks;
  return (bytes + 4095) / 4096 * 4096;
}

Result<std::unique_ptr<ControlBlock>> ControlBlock::Map(uint32_t ranks, os::Fd fd) {
  struct stat info;
  if (::fstat(fd.get(), &info) != 0 || static_cast<uint64_t>(info.st_size) != BytesFor(ranks)) {
    return Error(Code::kIpcError, "The shared block of a communicator of {} ranks has {} bytes instead of {}.", ranks,
                 static_cast<int64_t>(info.st_size), BytesFor(ranks));
  }
  void* memory = ::mmap(nullptr, BytesFor(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return Error(Code::kIpcError, "The shared block of a communicator ({} bytes) cannot be mapped: {}.",
                 BytesFor(ranks), std::strerror(errno));
  }
  ::madvise(memory, BytesFor(ranks), MADV_DONTFORK);
  std::unique_ptr<ControlBlock> block(new ControlBlock);
  block->ranks_ = ranks;
  block->inode_ = info.st_ino;
  block->fd_ = std::move(fd);
  block->memory_ = memory;
  block->boxes_ = static_cast<RankBox*>(memory);
  block->cells_ = reinterpret_cast<PairCell*>(static_cast<std::byte*>(memory) + sizeof(RankBox) * uint64_t{ranks});
  return block;
}

Result<std::unique_ptr<ControlBlock>> ControlBlock::Make(uint32_t ranks) {
  NPU_ASSIGN(os::Fd fd, os::MakeMemfd("anynpu-coll", BytesFor(ranks)));
  return Map(ranks, std::move(fd));
}

Result<std::unique_ptr<ControlBlock>> ControlBlock::Join(uint32_t ranks, int32_t pid, int fd, uint64_t inode) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  os::Fd mine(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!mine) {
    return Error(Code::kIpcError, "Process {} holds the shared block of a communicator, but {} cannot be opened: {}.",
                 pid, path, std::strerror(errno))
        .Remedy(
            "Run all ranks of a machine under one user and in one pid namespace, or give them machines of different "
            "names.");
  }
  NPU_ASSIGN(std::unique_ptr<ControlBlock> block, Map(ranks, std::move(mine)));
  if (block->inode_ != inode) {
    return Error(Code::kIpcError,
                 "Process {} closed the shared block of a communicator before all ranks had mapped it.", pid);
  }
  block->CloseFd();
  return block;
}

ControlBlock::~ControlBlock() {
  if (memory_ != nullptr) ::munmap(memory_, BytesFor(ranks_));
}

}  // namespace npu::coll
