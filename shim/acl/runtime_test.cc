// Streams, events, memory and copies through the C interface: codes and texts, as a client sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_rt.h"

namespace {

using ::testing::HasSubstr;

// A machine of this test's own, for it and the processes it starts, before anything joins one.
const int machine_of_its_own = setenv("ANYNPU_MACHINE", ("acl-test-" + std::to_string(getpid())).c_str(), 0);

std::string RecentError() {
  const char* text = aclGetRecentErrMsg();
  return text == nullptr ? "" : text;
}

#define EXPECT_ACL(expected, call) EXPECT_EQ(call, expected) << RecentError()
#define ASSERT_ACL(expected, call) ASSERT_EQ(call, expected) << RecentError()

class Runtime : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_ACL(0, aclrtSetDevice(0)); }
  void TearDown() override { EXPECT_ACL(0, aclrtResetDevice(0)); }

  void* Device(size_t bytes) {
    void* p = nullptr;
    EXPECT_ACL(0, aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return p;
  }
  void* Pinned(size_t bytes) {
    void* p = nullptr;
    EXPECT_ACL(0, aclrtMallocHost(&p, bytes));
    return p;
  }
  std::vector<uint8_t> Random(size_t bytes) {
    std::vector<uint8_t> data(bytes);
    for (auto& b : data) b = static_cast<uint8_t>(random_());
    return data;
  }
  std::mt19937 random_{std::random_device{}()};
};

TEST_F(Runtime, DevicesAreCountedAndNamed) {
  uint32_t count = 0;
  ASSERT_ACL(0, aclrtGetDeviceCount(&count));
  EXPECT_GE(count, 1u);
  EXPECT_ACL(100000, aclrtGetDeviceCount(nullptr));
  EXPECT_THAT(aclrtGetSocName(), HasSubstr("Ascend"));
  int32_t device = -1;
  ASSERT_ACL(0, aclrtGetDevice(&device));
  EXPECT_EQ(device, 0);
  EXPECT_ACL(107001, aclrtSetDevice(static_cast<int32_t>(count)));
  EXPECT_ACL(107001, aclrtSetDevice(-1));
  aclrtRunMode mode = ACL_DEVICE;
  ASSERT_ACL(0, aclrtGetRunMode(&mode));
  EXPECT_EQ(mode, ACL_HOST);
}

TEST_F(Runtime, AThreadWithoutDeviceHasNoContext) {
  std::thread([] {
    int32_t device = -1;
    EXPECT_ACL(107002, aclrtGetDevice(&device));
    aclrtStream stream = nullptr;
    EXPECT_ACL(107002, aclrtCreateStream(&stream));
    EXPECT_THAT(RecentError(), HasSubstr("aclrtSetDevice"));
    aclrtContext context = nullptr;
    EXPECT_ACL(107002, aclrtGetCurrentContext(&context));
    void* p = nullptr;
    EXPECT_ACL(107002, aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  }).join();
}

TEST_F(Runtime, ContextsAreMadeDestroyedAndShared) {
  aclrtContext primary = nullptr, own = nullptr, now = nullptr;
  ASSERT_ACL(0, aclrtGetCurrentContext(&primary));
  ASSERT_ACL(0, aclrtCreateContext(&own, 0));
  ASSERT_ACL(0, aclrtGetCurrentContext(&now));
  EXPECT_EQ(now, own);
  aclrtStream stream = nullptr;
  ASSERT_ACL(0, aclrtCreateStream(&stream));
  ASSERT_ACL(0, aclrtSetCurrentContext(primary));
  aclrtEvent event = nullptr;
  ASSERT_ACL(0, aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
  EXPECT_ACL(107003, aclrtRecordEvent(event, stream));
  EXPECT_ACL(0, aclrtSynchronizeStream(stream));
  EXPECT_ACL(107002, aclrtDestroyContext(primary));
  ASSERT_ACL(0, aclrtDestroyContext(own));
  EXPECT_ACL(107017, aclrtSynchronizeStream(stream));
  EXPECT_ACL(107002, aclrtDestroyContext(own));
  EXPECT_ACL(107000, aclrtSetCurrentContext(own));
  EXPECT_ACL(0, aclrtDestroyEvent(event));
}

TEST_F(Runtime, DestroyedAndForeignHandlesAreRefused) {
  aclrtStream stream = nullptr;
  ASSERT_ACL(0, aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  ASSERT_ACL(0, aclrtSynchronizeStream(stream));
  ASSERT_ACL(0, aclrtDestroyStream(stream));
  EXPECT_ACL(107017, aclrtDestroyStream(stream));
  EXPECT_ACL(107017, aclrtSynchronizeStream(stream));
  EXPECT_ACL(100000, aclrtDestroyStream(nullptr));
  int local = 0;
  EXPECT_ACL(107017, aclrtSynchronizeStream(&local));
  aclrtEvent event = nullptr;
  ASSERT_ACL(0, aclrtCreateEvent(&event));
  ASSERT_ACL(0, aclrtDestroyEvent(event));
  EXPECT_ACL(107017, aclrtRecordEvent(event, nullptr));
  EXPECT_ACL(107017, aclrtDestroyEvent(event));
  EXPECT_ACL(107017, aclrtRecordEvent(&local, nullptr));
  EXPECT_ACL(100000, aclrtRecordEvent(nullptr, nullptr));
}

TEST_F(Runtime, TimedWaitsRefuseZero) {
  EXPECT_ACL(107000, aclrtSynchronizeStreamWithTimeout(nullptr, 0));
  EXPECT_ACL(107000, aclrtSynchronizeStreamWithTimeout(nullptr, -2));
  EXPECT_ACL(107000, aclrtSynchronizeDeviceWithTimeout(0));
  EXPECT_ACL(0, aclrtSynchronizeStreamWithTimeout(nullptr, -1));
  EXPECT_ACL(0, aclrtSynchronizeDeviceWithTimeout(1000));
}

TEST_F(Runtime, StreamsEndAtANamedLimit) {
  uint32_t left = 0;
  ASSERT_ACL(0, aclrtGetStreamAvailableNum(&left));
  std::vector<aclrtStream> streams(left);
  for (auto& s : streams) ASSERT_ACL(0, aclrtCreateStream(&s));
  aclrtStream more = nullptr;
  EXPECT_ACL(207008, aclrtCreateStream(&more));
  EXPECT_THAT(RecentError(), HasSubstr("limit"));
  for (auto& s : streams) ASSERT_ACL(0, aclrtDestroyStream(s));
  ASSERT_ACL(0, aclrtCreateStream(&more));
  ASSERT_ACL(0, aclrtDestroyStream(more));
}

TEST_F(Runtime, EventsNeverRecorded) {
  aclrtEvent ex = nullptr, plain = nullptr;
  ASSERT_ACL(0, aclrtCreateEventExWithFlag(&ex, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  ASSERT_ACL(0, aclrtCreateEventWithFlag(&plain, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  aclrtEventRecordedStatus status;
  ASSERT_ACL(0, aclrtQueryEventStatus(ex, &status));
  EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
  ASSERT_ACL(0, aclrtQueryEventStatus(plain, &status));
  EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_ACL(0, aclrtSynchronizeEvent(ex));
  EXPECT_ACL(0, aclrtStreamWaitEvent(nullptr, ex));
  float ms = 0;
  EXPECT_ACL(507000, aclrtEventElapsedTime(&ms, ex, plain));
  aclrtEventStatus old;
  EXPECT_ACL(207000, aclrtQueryEvent(ex, &old));
  aclrtEventWaitStatus waits;
  EXPECT_ACL(207000, aclrtQueryEventWaitStatus(ex, &waits));
  EXPECT_ACL(0, aclrtQueryEventWaitStatus(plain, &waits));
  EXPECT_EQ(waits, ACL_EVENT_WAIT_STATUS_COMPLETE);
  EXPECT_ACL(207000, aclrtResetEvent(ex, nullptr));
  EXPECT_ACL(107000, aclrtCreateEventExWithFlag(&ex, 0));
  EXPECT_ACL(107000, aclrtCreateEventExWithFlag(&ex, ACL_EVENT_EXTERNAL));
  EXPECT_ACL(107000, aclrtCreateEventWithFlag(&plain, 0x80));
  EXPECT_ACL(0, aclrtDestroyEvent(plain));
}

TEST_F(Runtime, EventsTimeTheirStream) {
  aclrtEvent start = nullptr, end = nullptr;
  ASSERT_ACL(0, aclrtCreateEventExWithFlag(&start, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  ASSERT_ACL(0, aclrtCreateEventExWithFlag(&end, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  ASSERT_ACL(0, aclrtRecordEvent(start, nullptr));
  const auto sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(3)); };
  ASSERT_ACL(0, aclrtLaunchHostFunc(nullptr, sleep, nullptr));
  ASSERT_ACL(0, aclrtRecordEvent(end, nullptr));
  ASSERT_ACL(0, aclrtSynchronizeEvent(end));
  float ms = 0;
  ASSERT_ACL(0, aclrtEventElapsedTime(&ms, start, end));
  EXPECT_GE(ms, 3.0f);
  uint64_t us = 0;
  EXPECT_ACL(0, aclrtEventGetTimestamp(end, &us));
  EXPECT_GT(us, 0u);
  EXPECT_ACL(0, aclrtDestroyEvent(start));
  EXPECT_ACL(0, aclrtDestroyEvent(end));
}

TEST_F(Runtime, CopiesMoveTheBytes) {
  for (const size_t bytes : {size_t{1}, size_t{4097}, size_t{5} << 20}) {
    const auto data = Random(bytes);
    std::vector<uint8_t> back(bytes);
    void *a = Device(bytes), *b = Device(bytes), *pinned = Pinned(bytes);
    // Pageable, blocking and queued.
    ASSERT_ACL(0, aclrtMemcpy(a, bytes, data.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    ASSERT_ACL(0, aclrtMemcpyAsync(b, bytes, a, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, nullptr));
    ASSERT_ACL(0, aclrtMemcpyAsync(back.data(), bytes, b, bytes, ACL_MEMCPY_DEVICE_TO_HOST, nullptr));
    EXPECT_EQ(back, data);
    // Pinned, queued, the kind by the addresses.
    ASSERT_ACL(0, aclrtMemsetAsync(b, bytes, 0x5A, bytes, nullptr));
    ASSERT_ACL(0, aclrtMemcpyAsync(pinned, bytes, b, bytes, ACL_MEMCPY_DEFAULT, nullptr));
    ASSERT_ACL(0, aclrtSynchronizeStream(nullptr));
    EXPECT_EQ(std::vector<uint8_t>(static_cast<uint8_t*>(pinned), static_cast<uint8_t*>(pinned) + bytes),
              std::vector<uint8_t>(bytes, 0x5A));
    std::memcpy(pinned, data.data(), bytes);
    ASSERT_ACL(0, aclrtMemcpyAsync(b, bytes, pinned, bytes, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
    ASSERT_ACL(0, aclrtSynchronizeStream(nullptr));
    std::fill(back.begin(), back.end(), uint8_t{0});
    ASSERT_ACL(0, aclrtMemcpy(back.data(), bytes, b, bytes, ACL_MEMCPY_DEFAULT));
    EXPECT_EQ(back, data);
    EXPECT_ACL(0, aclrtFree(a));
    EXPECT_ACL(0, aclrtFree(b));
    EXPECT_ACL(0, aclrtFreeHost(pinned));
  }
}

TEST_F(Runtime, PitchedCopiesMoveRows) {
  constexpr size_t kWidth = 37, kHeight = 11, kHostPitch = 50, kDevicePitch = 64;
  const auto data = Random(kHostPitch * kHeight);
  std::vector<uint8_t> back(kHostPitch * kHeight, 0);
  void* d = Device(kDevicePitch * kHeight);
  ASSERT_ACL(0, aclrtMemcpy2d(d, kDevicePitch, data.data(), kHostPitch, kWidth, kHeight, ACL_MEMCPY_HOST_TO_DEVICE));
  ASSERT_ACL(0, aclrtMemcpy2dAsync(back.data(), kHostPitch, d, kDevicePitch, kWidth, kHeight, ACL_MEMCPY_DEVICE_TO_HOST, nullptr));
  for (size_t r = 0; r < kHeight; ++r) {
    for (size_t c = 0; c < kHostPitch; ++c) EXPECT_EQ(back[r * kHostPitch + c], c < kWidth ? data[r * kHostPitch + c] : 0);
  }
  EXPECT_ACL(100000, aclrtMemcpy2d(d, kWidth - 1, data.data(), kHostPitch, kWidth, kHeight, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_ACL(0, aclrtMemcpy2d(nullptr, 0, nullptr, 0, 0, kHeight, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_ACL(0, aclrtFree(d));
}

TEST_F(Runtime, CopyCodes) {
  uint8_t host[64] = {}, other[64] = {};
  void *d = Device(64), *p = Pinned(64);
  EXPECT_ACL(0, aclrtMemcpy(nullptr, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_ACL(100000, aclrtMemcpy(nullptr, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_ACL(100000, aclrtMemcpy(d, 64, host, 64, static_cast<aclrtMemcpyKind>(99)));
  EXPECT_ACL(107000, aclrtMemcpy(d, 32, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_ACL(107000, aclrtMemcpyAsync(d, 32, host, 64, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
  EXPECT_ACL(0, aclrtMemcpy(d, 64, d, 64, ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_ACL(0, aclrtMemcpy(other, 64, host, 64, ACL_MEMCPY_HOST_TO_HOST));
  EXPECT_ACL(207000, aclrtMemcpyAsync(other, 64, host, 64, ACL_MEMCPY_HOST_TO_HOST, nullptr));
  EXPECT_ACL(207000, aclrtMemcpyAsync(p, 64, host, 64, ACL_MEMCPY_DEFAULT, nullptr));
  // Host memory that the client calls device memory.
  EXPECT_ACL(107000, aclrtMemcpy(other, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_THAT(RecentError(), HasSubstr("dst"));
  // More than the allocation holds.
  std::vector<uint8_t> large(1 << 20);
  EXPECT_NE(aclrtMemcpy(d, large.size(), large.data(), large.size(), ACL_MEMCPY_HOST_TO_DEVICE), 0);
  EXPECT_THAT(RecentError(), HasSubstr("aclrtMemcpy"));
  EXPECT_ACL(107000, aclrtMemset(d, 32, 0, 64));
  EXPECT_ACL(100000, aclrtMemset(nullptr, 64, 0, 64));
  EXPECT_ACL(107000, aclrtMemset(host, 64, 0, 64));
  EXPECT_ACL(0, aclrtMemset(nullptr, 0, 0, 0));
  EXPECT_ACL(0, aclrtFree(d));
  EXPECT_ACL(107000, aclrtFree(d));
  EXPECT_NE(aclrtMemcpy(d, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE), 0);
  EXPECT_ACL(0, aclrtFreeHost(p));
  EXPECT_ACL(107000, aclrtFreeHost(p));
  EXPECT_ACL(100000, aclrtFree(nullptr));
}

TEST_F(Runtime, BatchesCheckEverythingFirst) {
  constexpr size_t kCount = 3, kBytes = 256;
  std::vector<std::vector<uint8_t>> data;
  std::vector<void*> device, host;
  for (size_t i = 0; i < kCount; ++i) {
    data.push_back(Random(kBytes));
    device.push_back(Device(kBytes));
    host.push_back(data.back().data());
  }
  std::vector<size_t> sizes(kCount, kBytes), rooms(kCount, kBytes);
  size_t failed = 0;
  ASSERT_ACL(0, aclrtMemcpyBatch(device.data(), rooms.data(), host.data(), sizes.data(), kCount, nullptr, nullptr, 0, &failed));
  EXPECT_EQ(failed, SIZE_MAX);
  for (size_t i = 0; i < kCount; ++i) {
    std::vector<uint8_t> back(kBytes);
    ASSERT_ACL(0, aclrtMemcpy(back.data(), kBytes, device[i], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT_EQ(back, data[i]);
  }
  rooms[2] = kBytes - 1;
  EXPECT_ACL(100000, aclrtMemcpyBatch(device.data(), rooms.data(), host.data(), sizes.data(), kCount, nullptr, nullptr, 0, &failed));
  EXPECT_EQ(failed, 2u);
  EXPECT_ACL(100000, aclrtMemcpyBatch(device.data(), rooms.data(), host.data(), sizes.data(), 0, nullptr, nullptr, 0, &failed));
  rooms[2] = kBytes;
  EXPECT_ACL(107000, aclrtMemcpyBatch(device.data(), rooms.data(), device.data(), sizes.data(), kCount, nullptr, nullptr, 0, &failed));
  EXPECT_EQ(failed, 0u);
  for (void* d : device) EXPECT_ACL(0, aclrtFree(d));
}

TEST_F(Runtime, MemoryIsDescribed) {
  size_t free_bytes = 0, total = 0;
  ASSERT_ACL(0, aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
  EXPECT_GT(total, 0u);
  EXPECT_LE(free_bytes, total);
  EXPECT_ACL(107016, aclrtGetMemInfo(static_cast<aclrtMemAttr>(77), &free_bytes, &total));
  EXPECT_ACL(100000, aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &total));
  void *d = Device(100), *p = Pinned(100);
  int local = 0;
  aclrtPtrAttributes attributes;
  ASSERT_ACL(0, aclrtPointerGetAttributes(static_cast<char*>(d) + 5, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(attributes.location.id, 0u);
  ASSERT_ACL(0, aclrtPointerGetAttributes(p, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  ASSERT_ACL(0, aclrtPointerGetAttributes(&local, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  void* none = d;
  EXPECT_ACL(100000, aclrtMalloc(&none, 0, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_ACL(207001, aclrtMalloc(&none, size_t{1} << 50, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_EQ(none, nullptr);
  EXPECT_ACL(0, aclrtFree(d));
  EXPECT_ACL(0, aclrtFreeHost(p));
}

TEST_F(Runtime, HostRangesAreRegisteredOnce) {
  std::vector<uint8_t> block(8192);
  void* view = nullptr;
  ASSERT_ACL(0, aclrtHostRegister(block.data(), block.size(), ACL_HOST_REGISTER_MAPPED, &view));
  EXPECT_EQ(view, block.data());
  EXPECT_ACL(507910, aclrtHostRegister(block.data() + 100, 10, ACL_HOST_REGISTER_MAPPED, &view));
  ASSERT_ACL(0, aclrtHostUnregister(block.data()));
  EXPECT_ACL(507911, aclrtHostUnregister(block.data()));
  EXPECT_ACL(107000, aclrtHostRegisterV2(block.data(), block.size(), 0));
  ASSERT_ACL(0, aclrtHostRegisterV2(block.data(), block.size(), ACL_HOST_REG_MAPPED));
  ASSERT_ACL(0, aclrtHostUnregister(block.data()));
}

// torch_npu's swapped memory: a pinned block is registered, used by the device and given back.
TEST_F(Runtime, PinnedMemoryMayBeRegistered) {
  auto* block = static_cast<uint8_t*>(Pinned(3 * 4096));
  const auto values = Random(4096);
  std::copy(values.begin(), values.end(), block + 4096);
  void* device = Device(4096);
  aclrtStream stream = nullptr;
  ASSERT_ACL(0, aclrtCreateStream(&stream));
  void* view = nullptr;
  ASSERT_ACL(0, aclrtHostRegister(block + 4096, 4096, ACL_HOST_REGISTER_MAPPED, &view));
  ASSERT_ACL(0, aclrtMemcpyAsync(device, 4096, view, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  ASSERT_ACL(0, aclrtMemsetAsync(view, 4096, 3, 4096, stream));
  ASSERT_ACL(0, aclrtValueWrite(view, 11, 0, stream));
  ASSERT_ACL(0, aclrtSynchronizeStream(stream));
  EXPECT_EQ(block[4096], 11);
  EXPECT_EQ(block[2 * 4096 - 1], 3);
  std::vector<uint8_t> back(4096);
  ASSERT_ACL(0, aclrtMemcpy(back.data(), 4096, device, 4096, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(back, values);
  // Once only, and not across the end of a pinned block; its neighbour in the block is another range.
  EXPECT_ACL(507910, aclrtHostRegister(block + 5000, 8, ACL_HOST_REGISTER_MAPPED, &view));
  EXPECT_ACL(507910, aclrtHostRegister(block + 2 * 4096, 2 * 4096, ACL_HOST_REGISTER_MAPPED, &view));
  ASSERT_ACL(0, aclrtHostRegisterV2(block, 4096, ACL_HOST_REG_MAPPED));
  ASSERT_ACL(0, aclrtHostUnregister(block + 4096));
  EXPECT_ACL(507911, aclrtHostUnregister(block + 4096));
  EXPECT_ACL(0, aclrtValueWrite(block, 1, 0, stream));
  ASSERT_ACL(0, aclrtSynchronizeStream(stream));
  ASSERT_ACL(0, aclrtHostUnregister(block));
  EXPECT_ACL(107016, aclrtValueWrite(block, 1, 0, stream));
  // What is registered still when the block goes, goes with it.
  ASSERT_ACL(0, aclrtHostRegister(block, 3 * 4096, ACL_HOST_REGISTER_MAPPED, &view));
  ASSERT_ACL(0, aclrtFreeHost(block));
  EXPECT_ACL(507911, aclrtHostUnregister(block));
  EXPECT_ACL(0, aclrtDestroyStream(stream));
  EXPECT_ACL(0, aclrtFree(device));
}

TEST_F(Runtime, PhysicalMemoryIsMappedByHand) {
  constexpr size_t kPiece = size_t{2} << 20;
  void* range = nullptr;
  ASSERT_ACL(0, aclrtReserveMemAddress(&range, 8 * kPiece, 0, nullptr, 1));
  aclrtPhysicalMemProp prop{};
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = 0;
  size_t step = 0;
  ASSERT_ACL(0, aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &step));
  EXPECT_EQ(step, kPiece);
  aclrtDrvMemHandle first = nullptr, second = nullptr;
  ASSERT_ACL(0, aclrtMallocPhysical(&first, kPiece, &prop, 0));
  ASSERT_ACL(0, aclrtMallocPhysical(&second, kPiece, &prop, 0));
  char* base = static_cast<char*>(range);
  ASSERT_ACL(0, aclrtMapMem(base, kPiece, 0, first, 0));
  ASSERT_ACL(0, aclrtMapMem(base + kPiece, kPiece, 0, second, 0));
  // A copy that crosses the two pieces.
  const auto data = Random(4096);
  std::vector<uint8_t> back(4096);
  ASSERT_ACL(0, aclrtMemcpy(base + kPiece - 1000, 4096, data.data(), 4096, ACL_MEMCPY_HOST_TO_DEVICE));
  ASSERT_ACL(0, aclrtMemcpy(back.data(), 4096, base + kPiece - 1000, 4096, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(back, data);
  // Moved to another place of the range, the memory keeps what it holds.
  ASSERT_ACL(0, aclrtUnmapMem(base + kPiece));
  ASSERT_ACL(0, aclrtMapMem(base + 4 * kPiece, kPiece, 0, second, 0));
  ASSERT_ACL(0, aclrtMemcpy(back.data(), 3096, base + 4 * kPiece, 3096, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_TRUE(std::equal(data.begin() + 1000, data.end(), back.begin()));
  EXPECT_NE(aclrtMemcpy(back.data(), 16, base + kPiece, 16, ACL_MEMCPY_DEVICE_TO_HOST), 0);
  EXPECT_NE(aclrtReleaseMemAddress(range), 0);
  ASSERT_ACL(0, aclrtUnmapMem(base));
  ASSERT_ACL(0, aclrtUnmapMem(base + 4 * kPiece));
  EXPECT_ACL(507899, aclrtUnmapMem(base));
  ASSERT_ACL(0, aclrtFreePhysical(first));
  ASSERT_ACL(0, aclrtFreePhysical(second));
  EXPECT_ACL(107000, aclrtFreePhysical(second));
  ASSERT_ACL(0, aclrtReleaseMemAddress(range));
}

TEST_F(Runtime, NotifiesAndValuesOrderStreams) {
  aclrtStream a = nullptr, b = nullptr;
  ASSERT_ACL(0, aclrtCreateStream(&a));
  ASSERT_ACL(0, aclrtCreateStream(&b));
  aclrtNotify notify = nullptr;
  ASSERT_ACL(0, aclrtCreateNotify(&notify, 0));
  static std::atomic<int> order;
  static std::atomic<int> at_record, at_wait;
  order = 0;
  ASSERT_ACL(0, aclrtWaitAndResetNotify(notify, b, 0));
  ASSERT_ACL(0, aclrtLaunchHostFunc(b, [](void*) { at_wait = order++; }, nullptr));
  ASSERT_ACL(0, aclrtLaunchHostFunc(a, [](void*) { at_record = order++; }, nullptr));
  ASSERT_ACL(0, aclrtRecordNotify(notify, a));
  ASSERT_ACL(0, aclrtSynchronizeStream(b));
  EXPECT_LT(at_record, at_wait);
  ASSERT_ACL(0, aclrtWaitAndResetNotify(notify, b, 20));
  EXPECT_ACL(507047, aclrtSynchronizeStream(b));

  void* word = Device(64);
  ASSERT_ACL(0, aclrtMemset(word, 64, 0, 64));
  ASSERT_ACL(0, aclrtValueWait(word, 7, ACL_STREAM_WAIT_VALUE_EQ, b));
  EXPECT_ACL(507046, aclrtSynchronizeStreamWithTimeout(b, 20));
  ASSERT_ACL(0, aclrtValueWrite(word, 7, 0, a));
  EXPECT_ACL(0, aclrtSynchronizeStream(b));
  // A word that a copy changes is seen as well.
  const uint64_t nine = 9;
  ASSERT_ACL(0, aclrtValueWait(word, 8, ACL_STREAM_WAIT_VALUE_GEQ, b));
  ASSERT_ACL(0, aclrtMemcpy(word, 64, &nine, sizeof nine, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_ACL(0, aclrtSynchronizeStream(b));
  alignas(8) uint64_t host[2] = {};
  EXPECT_ACL(107016, aclrtValueWrite(host, 1, 0, a));
  EXPECT_ACL(107000, aclrtValueWrite(static_cast<char*>(word) + 4, 1, 0, a));
  EXPECT_ACL(107000, aclrtValueWait(word, 1, 4, a));
  EXPECT_ACL(0, aclrtDestroyNotify(notify));
  EXPECT_ACL(107017, aclrtRecordNotify(notify, a));
  EXPECT_ACL(0, aclrtFree(word));
  EXPECT_ACL(0, aclrtDestroyStream(a));
  EXPECT_ACL(0, aclrtDestroyStream(b));
}

// A stream that waits until Go().
class Held {
 public:
  Held() {
    EXPECT_ACL(0, aclrtCreateStream(&stream_));
    EXPECT_ACL(0, aclrtCreateStream(&other_));
    EXPECT_ACL(0, aclrtMalloc(&word_, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_ACL(0, aclrtMemset(word_, 64, 0, 64));
    EXPECT_ACL(0, aclrtValueWait(word_, 1, ACL_STREAM_WAIT_VALUE_EQ, stream_));
  }
  ~Held() {
    Go();
    EXPECT_ACL(0, aclrtDestroyStream(stream_));
    EXPECT_ACL(0, aclrtDestroyStream(other_));
    EXPECT_ACL(0, aclrtFree(word_));
  }
  void Go() {
    EXPECT_ACL(0, aclrtValueWrite(word_, 1, 0, other_));
    EXPECT_ACL(0, aclrtSynchronizeStream(other_));
  }
  aclrtStream stream() const { return stream_; }

 private:
  aclrtStream stream_ = nullptr, other_ = nullptr;
  void* word_ = nullptr;
};

TEST_F(Runtime, PinnedMemoryMayBeFreedWhileCopiesOfItAreQueued) {
  constexpr size_t kBytes = size_t{5} << 20;
  const auto data = Random(kBytes);
  void* device = Device(kBytes);
  std::vector<uint8_t> back(kBytes);
  for (int round = 0; round < 3; ++round) {
    Held held;
    void* pinned = Pinned(kBytes);
    std::memcpy(pinned, data.data(), kBytes);
    ASSERT_ACL(0, aclrtMemset(device, kBytes, 0, kBytes));
    ASSERT_ACL(0, aclrtMemcpyAsync(device, kBytes, pinned, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, held.stream()));
    ASSERT_ACL(0, aclrtFreeHost(pinned));
    EXPECT_ACL(107000, aclrtFreeHost(pinned));  // gone for the client
    held.Go();
    ASSERT_ACL(0, aclrtSynchronizeStream(held.stream()));
    ASSERT_ACL(0, aclrtMemcpy(back.data(), kBytes, device, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
    ASSERT_EQ(back, data);
  }
  EXPECT_ACL(0, aclrtFree(device));
}

TEST_F(Runtime, MappedMemoryMayBeUnmappedWhileCopiesOfItAreQueued) {
  constexpr size_t kPiece = size_t{2} << 20;
  const auto data = Random(kPiece);
  void* device = Device(kPiece);
  void* range = nullptr;
  ASSERT_ACL(0, aclrtReserveMemAddress(&range, kPiece, 0, nullptr, 1));
  aclrtPhysicalMemProp prop{};
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtDrvMemHandle handle = nullptr;
  ASSERT_ACL(0, aclrtMallocPhysical(&handle, kPiece, &prop, 0));
  ASSERT_ACL(0, aclrtMapMem(range, kPiece, 0, handle, 0));
  ASSERT_ACL(0, aclrtMemcpy(range, kPiece, data.data(), kPiece, ACL_MEMCPY_HOST_TO_DEVICE));
  Held held;
  ASSERT_ACL(0, aclrtMemcpyAsync(device, kPiece, range, kPiece, ACL_MEMCPY_DEVICE_TO_DEVICE, held.stream()));
  ASSERT_ACL(0, aclrtUnmapMem(range));
  EXPECT_ACL(507899, aclrtUnmapMem(range));
  ASSERT_ACL(0, aclrtFreePhysical(handle));
  ASSERT_ACL(0, aclrtReleaseMemAddress(range));
  held.Go();
  ASSERT_ACL(0, aclrtSynchronizeStream(held.stream()));
  std::vector<uint8_t> back(kPiece);
  ASSERT_ACL(0, aclrtMemcpy(back.data(), kPiece, device, kPiece, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(back, data);
  EXPECT_ACL(0, aclrtFree(device));
}

TEST_F(Runtime, APageableSourceIsReadWhenTheCopyIsQueuedAndNothingWaits) {
  constexpr size_t kBytes = size_t{1} << 20, kRows = 64, kWidth = 1000, kPitch = 1500;
  void* device = Device(2 * kBytes);
  char* const second = static_cast<char*>(device) + kBytes;
  auto data = Random(kBytes), rows = Random(kRows * kPitch);
  const auto sent = data, sent_rows = rows;
  {
    Held held;
    // Without a place of its own for the source each call would wait for ever: what lets the stream go comes after them.
    ASSERT_ACL(0, aclrtMemcpyAsync(device, kBytes, data.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE, held.stream()));
    ASSERT_ACL(0, aclrtMemcpy2dAsync(second, kWidth, rows.data(), kPitch, kWidth, kRows, ACL_MEMCPY_HOST_TO_DEVICE, held.stream()));
    std::fill(data.begin(), data.end(), uint8_t{0});
    std::fill(rows.begin(), rows.end(), uint8_t{0});
    held.Go();
    ASSERT_ACL(0, aclrtSynchronizeStream(held.stream()));
  }
  std::vector<uint8_t> back(kBytes), back_rows(kRows * kWidth);
  ASSERT_ACL(0, aclrtMemcpy(back.data(), kBytes, device, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  ASSERT_ACL(0, aclrtMemcpy(back_rows.data(), back_rows.size(), second, back_rows.size(), ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(back, sent);
  for (size_t r = 0; r < kRows; ++r) {
    EXPECT_TRUE(std::equal(back_rows.begin() + r * kWidth, back_rows.begin() + (r + 1) * kWidth, sent_rows.begin() + r * kPitch)) << r;
  }
  EXPECT_ACL(0, aclrtFree(device));
}

TEST_F(Runtime, AReadIntoPageableMemoryIsWokenByAReset) {
  aclrtStream stream = nullptr;
  ASSERT_ACL(0, aclrtCreateStream(&stream));
  void* word = Device(64);
  ASSERT_ACL(0, aclrtMemset(word, 64, 0, 64));
  ASSERT_ACL(0, aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_EQ, stream));
  std::atomic<int> code{-1};
  std::atomic<bool> inside{false};
  std::thread reader([&] {
    EXPECT_ACL(0, aclrtSetDevice(0));
    uint64_t out = 0;
    inside = true;
    code = aclrtMemcpyAsync(&out, sizeof out, word, sizeof out, ACL_MEMCPY_DEVICE_TO_HOST, stream);
  });
  while (!inside) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(code, -1) << "it waits for its stream";
  EXPECT_ACL(0, aclrtResetDeviceForce(0));
  reader.join();  // a hang is the failure
  EXPECT_NE(code, 0);
  EXPECT_ACL(0, aclrtSetDevice(0));
  EXPECT_ACL(0, aclrtFree(word));
}

TEST_F(Runtime, AFunctionOfAStreamDestroyedByForceIsNotCalled) {
  static std::atomic<bool> inside, go;
  static std::atomic<int> calls;
  inside = go = false;
  calls = 0;
  aclrtStream first = nullptr, second = nullptr;
  ASSERT_ACL(0, aclrtCreateStream(&first));
  ASSERT_ACL(0, aclrtCreateStream(&second));
  ASSERT_ACL(0, aclrtLaunchHostFunc(first, [](void*) {
    inside = true;
    while (!go) std::this_thread::yield();
  }, nullptr));
  while (!inside) std::this_thread::yield();
  ASSERT_ACL(0, aclrtLaunchHostFunc(second, [](void*) { ++calls; }, nullptr));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it waits in line behind the first
  ASSERT_ACL(0, aclrtDestroyStreamForce(second));
  go = true;
  ASSERT_ACL(0, aclrtSynchronizeStream(first));
  ASSERT_ACL(0, aclrtLaunchHostFunc(first, [](void*) {}, nullptr));
  ASSERT_ACL(0, aclrtSynchronizeStream(first));
  EXPECT_EQ(calls, 0);
  EXPECT_ACL(0, aclrtDestroyStream(first));
}

TEST_F(Runtime, StreamConfigurationsAreHandles) {
  aclrtStreamConfigHandle* config = aclrtCreateStreamConfigHandle();
  ASSERT_NE(config, nullptr);
  const uint32_t priority = 3;
  const size_t flag = ACL_STREAM_FAST_LAUNCH;
  EXPECT_ACL(0, aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, sizeof priority));
  EXPECT_ACL(0, aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flag, sizeof flag));
  EXPECT_ACL(100000, aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, 1));
  aclrtStream stream = nullptr;
  ASSERT_ACL(0, aclrtCreateStreamV2(&stream, config));
  uint32_t got = 9;
  EXPECT_ACL(0, aclrtStreamGetPriority(stream, &got));
  EXPECT_EQ(got, priority);
  EXPECT_ACL(0, aclrtDestroyStreamConfigHandle(config));
  EXPECT_ACL(107017, aclrtDestroyStreamConfigHandle(config));
  EXPECT_ACL(107017, aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, sizeof priority));
  aclrtStreamConfigHandle mine{};
  EXPECT_ACL(107017, aclrtDestroyStreamConfigHandle(&mine));
  EXPECT_ACL(107017, aclrtCreateStreamV2(&stream, &mine));
  EXPECT_ACL(100000, aclrtDestroyStreamConfigHandle(nullptr));
  EXPECT_ACL(0, aclrtDestroyStream(stream));
}

TEST_F(Runtime, RegisteredMemoryIsMemoryForDevices) {
  auto block = Random(8192);
  const auto before = block;
  void* device = Device(8192);
  void* view = nullptr;
  ASSERT_ACL(0, aclrtHostRegister(block.data(), block.size(), ACL_HOST_REGISTER_MAPPED, &view));
  aclrtStream stream = nullptr;
  ASSERT_ACL(0, aclrtCreateStream(&stream));
  ASSERT_ACL(0, aclrtMemcpyAsync(device, 8192, view, 8192, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  ASSERT_ACL(0, aclrtMemsetAsync(view, 8192, 7, 4096, stream));
  ASSERT_ACL(0, aclrtSynchronizeStream(stream));
  EXPECT_TRUE(std::all_of(block.begin(), block.begin() + 4096, [](uint8_t b) { return b == 7; }));
  EXPECT_TRUE(std::equal(block.begin() + 4096, block.end(), before.begin() + 4096));
  std::vector<uint8_t> back(8192);
  ASSERT_ACL(0, aclrtMemcpy(back.data(), 8192, device, 8192, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(back, before);
  // A word of it may be waited for.
  auto* word = static_cast<uint64_t*>(view);
  *word = 0;
  ASSERT_ACL(0, aclrtValueWait(view, 5, ACL_STREAM_WAIT_VALUE_EQ, stream));
  __atomic_store_n(word, uint64_t{5}, __ATOMIC_RELEASE);
  ASSERT_ACL(0, aclrtSynchronizeStream(stream));
  ASSERT_ACL(0, aclrtHostUnregister(block.data()));
  EXPECT_ACL(107016, aclrtValueWait(view, 5, ACL_STREAM_WAIT_VALUE_EQ, stream));
  // A pinned block has a device view once it is asked for.
  void* pinned = Pinned(4096);
  EXPECT_ACL(507911, aclrtHostGetDevicePointer(block.data(), &view, 0));
  ASSERT_ACL(0, aclrtHostGetDevicePointer(pinned, &view, 0));
  ASSERT_ACL(0, aclrtMemset(view, 4096, 0, 4096));
  ASSERT_ACL(0, aclrtValueWrite(view, 11, 0, stream));
  ASSERT_ACL(0, aclrtSynchronizeStream(stream));
  EXPECT_EQ(*static_cast<uint64_t*>(pinned), 11u);
  ASSERT_ACL(0, aclrtFreeHost(pinned));
  EXPECT_ACL(0, aclrtDestroyStream(stream));
  EXPECT_ACL(0, aclrtFree(device));
}

TEST_F(Runtime, AbortedTasksSayStop) {
  aclrtStream stream = nullptr;
  ASSERT_ACL(0, aclrtCreateStream(&stream));
  void* word = Device(64);
  ASSERT_ACL(0, aclrtMemset(word, 64, 0, 64));
  ASSERT_ACL(0, aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_EQ, stream));
  ASSERT_ACL(0, aclrtDeviceTaskAbort(0, 5000));
  EXPECT_ACL(107022, aclrtSynchronizeStream(stream));
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107022);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107022);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
  EXPECT_ACL(107022, aclrtMemsetAsync(word, 64, 0, 64, stream));
  EXPECT_ACL(107000, aclrtDeviceTaskAbort(0, 2160001));
  aclrtStream fresh = nullptr;
  ASSERT_ACL(0, aclrtCreateStream(&fresh));
  EXPECT_ACL(0, aclrtMemsetAsync(word, 64, 0, 64, fresh));
  EXPECT_ACL(0, aclrtSynchronizeStream(fresh));
  EXPECT_ACL(0, aclrtDestroyStream(stream));
  EXPECT_ACL(0, aclrtFree(word));
}

struct Told {
  std::atomic<int> times{0};
  std::atomic<uint32_t> code{0}, stream{~0u}, device{~0u}, task{0}, thread{0};
};
Told told_one, told_more;
void Tell(Told& told, aclrtExceptionInfo* info) {
  told.code = aclrtGetErrorCodeFromExceptionInfo(info);
  told.stream = aclrtGetStreamIdFromExceptionInfo(info);
  told.device = aclrtGetDeviceIdFromExceptionInfo(info);
  told.task = aclrtGetTaskIdFromExceptionInfo(info);
  told.thread = aclrtGetThreadIdFromExceptionInfo(info);
  told.times.fetch_add(1);
}
void TellOne(aclrtExceptionInfo* info) { Tell(told_one, info); }
void TellMore(aclrtExceptionInfo* info) { Tell(told_more, info); }

TEST_F(Runtime, FailedTasksAreTold) {
  EXPECT_ACL(107000, aclrtExceptionInfoCallbackRegister(nullptr));
  EXPECT_ACL(107000, aclrtExceptionInfoCallbackUnregister(TellMore));
  EXPECT_EQ(aclrtGetErrorCodeFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  ASSERT_ACL(0, aclrtSetExceptionInfoCallback(TellOne));
  ASSERT_ACL(0, aclrtExceptionInfoCallbackRegister(TellMore));
  EXPECT_ACL(107000, aclrtExceptionInfoCallbackRegister(TellMore));
  aclrtStream stream = nullptr;
  ASSERT_ACL(0, aclrtCreateStream(&stream));
  int32_t id = -1;
  ASSERT_ACL(0, aclrtStreamGetId(stream, &id));
  aclrtNotify notify = nullptr;
  ASSERT_ACL(0, aclrtCreateNotify(&notify, 0));
  void* word = Device(64);
  const auto fail = [&] {
    ASSERT_ACL(0, aclrtMemsetAsync(word, 64, 0, 64, stream));
    ASSERT_ACL(0, aclrtWaitAndResetNotify(notify, stream, 10));  // nobody records it
    EXPECT_ACL(507047, aclrtSynchronizeStream(stream));
  };
  const auto wait_for = [](const Told& told, int times) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (told.times < times && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return told.times.load();
  };
  fail();
  EXPECT_EQ(wait_for(told_one, 1), 1);
  EXPECT_EQ(wait_for(told_more, 1), 1);
  EXPECT_EQ(told_one.code, 507047u);
  EXPECT_EQ(told_one.stream, static_cast<uint32_t>(id));
  EXPECT_EQ(told_one.device, 0u);
  EXPECT_EQ(told_one.task, 2u);
  EXPECT_EQ(told_one.thread, static_cast<uint32_t>(gettid()));
  ASSERT_ACL(0, aclrtSetExceptionInfoCallback(nullptr));
  fail();
  EXPECT_EQ(wait_for(told_more, 2), 2);
  EXPECT_EQ(told_one.times, 1);
  ASSERT_ACL(0, aclrtExceptionInfoCallbackUnregister(TellMore));
  fail();
  EXPECT_EQ(told_more.times, 2);
  EXPECT_ACL(0, aclrtDestroyNotify(notify));
  EXPECT_ACL(0, aclrtDestroyStream(stream));
  EXPECT_ACL(0, aclrtFree(word));
}

TEST_F(Runtime, FailureModeIsSetOnce) {
  aclrtStream stream = nullptr;
  ASSERT_ACL(0, aclrtCreateStream(&stream));
  EXPECT_ACL(0, aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE));
  EXPECT_ACL(0, aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
  EXPECT_ACL(0, aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
  EXPECT_ACL(207000, aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE));
  uint32_t flag = 9;
  ASSERT_ACL(0, aclrtGetStreamOverflowSwitch(stream, &flag));
  EXPECT_EQ(flag, 0u);
  ASSERT_ACL(0, aclrtSetStreamOverflowSwitch(stream, 1));
  ASSERT_ACL(0, aclrtGetStreamOverflowSwitch(stream, &flag));
  EXPECT_EQ(flag, 1u);
  EXPECT_ACL(100000, aclrtSetStreamOverflowSwitch(stream, 2));
  EXPECT_ACL(0, aclrtDestroyStream(stream));
}

TEST(DefaultDevice, OpensForThreadsThatNeverHadOne) {
  char path[] = "/tmp/anynpu-acl-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  const std::string config = R"({"dump":{"dump_scene":"lite_exception"}, "defaultDevice":{"default_device":"0"}})";
  ASSERT_EQ(write(fd, config.data(), config.size()), static_cast<ssize_t>(config.size()));
  close(fd);
  EXPECT_ACL(100003, aclInit("/nonexistent.json"));
  ASSERT_ACL(0, aclInit(path));
  EXPECT_ACL(100002, aclInit(path));
  EXPECT_ACL(100000, aclInit(nullptr));
  std::thread([] {
    int32_t device = -1;
    EXPECT_ACL(0, aclrtGetDevice(&device));
    EXPECT_EQ(device, 0);
    aclrtContext context = nullptr;
    EXPECT_ACL(107002, aclrtGetCurrentContext(&context));
    void* p = nullptr;
    EXPECT_ACL(0, aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_ACL(0, aclrtGetCurrentContext(&context));
    EXPECT_ACL(0, aclrtFree(p));
    int32_t active = 0;
    EXPECT_ACL(0, aclrtGetPrimaryCtxState(0, nullptr, &active));
    EXPECT_EQ(active, 1);
    EXPECT_ACL(0, aclrtResetDevice(0));
    EXPECT_ACL(507007, aclrtResetDevice(0));
    EXPECT_ACL(107002, aclrtGetDevice(&device));
  }).join();
  EXPECT_ACL(0, aclFinalize());
  EXPECT_ACL(100037, aclFinalize());
  std::thread([] {
    int32_t device = -1;
    EXPECT_ACL(107002, aclrtGetDevice(&device));
  }).join();
  unlink(path);
}

}  // namespace
