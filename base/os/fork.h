// Descriptors that a forked child must not keep: a child that lives on (a data loader's worker) would otherwise hold
// its parent's memory and locks after the parent has gone.
#pragma once

namespace npu::os {

// Closes fd in every child forked from here on. At most 1024 at a time; more are simply inherited.
void CloseInChildren(int fd);
// Before the owner closes it.
void ForgetInChildren(int fd);

}  // namespace npu::os
