// The overflow flag of a context in saturation mode, read and cleared in the order of a stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status/status.h"
#include "runtime/stream/stream.h"

namespace npu::rt {

// The bytes that say "overflow", then zeros: what a status looks like in memory.
enum class FlagAs : uint32_t { kInteger = 1, kFloat = 0x3f800000 };  // the bits of 1 and of 1.0f

// Writes the flag to `bytes` of device memory: the first word, and zeros behind it.
Status QueueOverflowRead(void* client, size_t bytes, FlagAs as, Stream& stream, const char* function, const char* param);
Status QueueOverflowClear(Stream& stream);

}  // namespace npu::rt
