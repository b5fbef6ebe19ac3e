#include "base/os/fd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace npu::os {

Result<Fd> MakeMemfd(const char* label, uint64_t bytes) {
  // Hosts may insist on memory that cannot be executed (sysctl vm.memfd_noexec); kernels before 6.3 do not know the flag.
  Fd fd(memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!fd && errno == EINVAL) fd.Reset(memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) {
    return Error(Code::kBadAlloc, "memfd_create({}) failed: {}.", label, std::strerror(errno))
        .Remedy("Raise the limit of open files (ulimit -n).");
  }
  // Beyond this limit ftruncate would not merely fail: the kernel would end the process with SIGXFSZ.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {
    return Error(Code::kBadAlloc, "Anonymous shared memory {} of {} MiB passes the limit of file sizes.", label,
                 bytes >> 20)
        .Remedy("Lift it: ulimit -f unlimited.");
  }
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return Error(Code::kBadAlloc, "Anonymous shared memory {} cannot have {} bytes: {}.", label, bytes,
                 std::strerror(errno))
        .Remedy("Check the limit of file sizes (ulimit -f).");
  }
  fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

}  // namespace npu::os
