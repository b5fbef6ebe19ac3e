// Settings of the process and its devices that clients set and other rooms read.
#pragma once

#include <cstdint>

#include "base/status/status.h"

namespace npu::rt {

// May `device` reach the memory of `peer`? Logical numbers. Copies between devices of one process ask for it.
Status SetPeerAccess(int device, int peer, bool enabled);
bool PeerAccess(int device, int peer);

// Cores kernels may count on (kind 0 cube, 1 vector): the profile's number unless lowered.
Result<uint32_t> CoreNumber(int kind, const char* function);
Result<uint32_t> DeviceCoreLimit(int device, int kind, const char* function);
// 0: back to the profile's. The threads that kernels of this process use on the card shrink in proportion, at least to one.
Status SetDeviceCoreLimit(int device, int kind, uint32_t cores, const char* function);

// 0 saturation, 1 inf and nan.
void SetSaturationMode(int device, int mode);
int SaturationMode(int device);

// Time limit of a kernel in microseconds; 0 is none.
void SetExecuteLimitUs(uint64_t us);
uint64_t ExecuteLimitUs();

}  // namespace npu::rt
