#include "runtime/context/default_device.h"

#include <atomic>

namespace npu::rt {
namespace {
std::atomic<int> default_device{-1};
}

void SetDefaultDevice(int logical) { default_device.store(logical < 0 ? -1 : logical, std::memory_order_release); }
int DefaultDevice() { return default_device.load(std::memory_order_acquire); }

}  // namespace npu::rt
