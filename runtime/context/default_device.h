// The device that aclInit's configuration names ("defaultDevice"). A thread that never chose a device works on this
// one, and calls that need a device open it; without one such calls answer kContextNull.
#pragma once

namespace npu::rt {

void SetDefaultDevice(int logical);  // negative: none
int DefaultDevice();                 // logical number, or -1

}  // namespace npu::rt
