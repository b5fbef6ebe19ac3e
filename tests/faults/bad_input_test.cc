// What users get wrong, through the C interface: each gives CANN's code and a text with cause and remedy, nothing hangs
// or crashes, and the process goes on.
//
// Every case runs in a process of its own on a machine of its own (rank_process_test.h): TEST(Body, …) is what it does.
#include <acl/acl.h>
#include <acl/acl_rt.h>
#include <aclnn/acl_meta.h>
#include <aclnnop/aclnn_add.h>

#include <memory>
#include <string>
#include <vector>

#include "shim/hccl/rank_process_test.h"

namespace hccl_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kMiB = size_t{1} << 20;

// The code, every word of `says`, a remedy behind the cause, and nothing that torch_npu would steer on.
void ExpectFault(int expected, int got, const std::vector<std::string>& says) {
  const std::string text = RecentError();
  EXPECT_EQ(got, expected) << text;
  for (const std::string& word : says) EXPECT_THAT(text, HasSubstr(word));
  const size_t cause = text.find(". ");
  EXPECT_TRUE(cause != std::string::npos && cause + 10 < text.size()) << "no remedy behind the cause: " << text;
  for (const char* word : {"EL0004", "Failed to allocate", "reason=["}) EXPECT_THAT(text, Not(HasSubstr(word)));
}
#define OK(call) ASSERT_EQ(static_cast<int>(call), 0) << #call << " " << RecentError()

// The card still works.
void GoesOn() {
  OK(aclrtSetDevice(0));
  void* p = nullptr;
  OK(aclrtMalloc(&p, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  OK(aclrtMemsetAsync(p, 4096, 0x5A, 4096, stream));
  OK(aclrtSynchronizeStream(stream));
  std::vector<unsigned char> back(4096);
  OK(aclrtMemcpy(back.data(), 4096, p, 4096, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_THAT(back, Each(0x5A));
  OK(aclrtDestroyStream(stream));
  OK(aclrtFree(p));
}

int Alone(const std::string& body, const Ranks::Environment& environment = {}) {
  return Ranks(body, 1, environment).Codes()[0];
}

// ---- the visible list

TEST(Body, DISABLED_VisibleList) {
  const std::string list = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
  const auto expected = static_cast<uint32_t>(Number("FAULT_COUNT"));
  uint32_t count = 99;
  if (expected == 0) {
    ExpectFault(207004, aclrtGetDeviceCount(&count), {"ASCEND_RT_VISIBLE_DEVICES", "\"" + list + "\""});
    EXPECT_EQ(count, 0u);
    ExpectFault(107001, aclrtSetDevice(0), {"device 0", "ASCEND_RT_VISIBLE_DEVICES"});
    void* p = nullptr;
    EXPECT_NE(aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    return;
  }
  OK(aclrtGetDeviceCount(&count));
  EXPECT_EQ(count, expected);
  ExpectFault(107001, aclrtSetDevice(static_cast<int32_t>(count)), {"device " + std::to_string(count)});
  GoesOn();
}

TEST(Faults, VisibleLists) {
  const std::pair<const char*, const char*> lists[] = {
      {"0", "1"},   {"3", "1"},     {"0,1", "2"},  {"2,5,7", "3"},
      {"0,9", "1"}, {"0,x,1", "1"}, {"0 ,1", "1"}, {"0,-1", "1"},
      {"", "0"},    {"1,0", "0"},   {"0,0", "0"},  {"x", "0"},
      {",0", "0"},  {"8", "0"},     {"-1", "0"},   {"99999999999999999999", "0"}};
  for (const auto& [list, count] : lists) {
    EXPECT_EQ(Alone("VisibleList", {{"ASCEND_RT_VISIBLE_DEVICES", list}, {"FAULT_COUNT", count}}), 0)
        << "list \"" << list << '"';
  }
}

// ---- memory runs out

TEST(Body, DISABLED_CardFull) {
  OK(aclrtSetDevice(0));
  void* p = nullptr;
  ExpectFault(207001, aclrtMalloc(&p, size_t{8} << 30, ACL_MEM_MALLOC_HUGE_FIRST), {"card 0", "512 MiB", "--hbm"});
  EXPECT_EQ(p, nullptr);
  std::vector<void*> blocks;
  int code = 0;
  while ((code = aclrtMalloc(&p, 64 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST)) == 0) blocks.push_back(p);
  size_t free = 0, total = 0;
  const std::string text = RecentError();
  OK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  EXPECT_EQ(code, 207001);
  EXPECT_EQ(total, 512 * kMiB);
  EXPECT_LT(free, 65 * kMiB);
  EXPECT_THAT(text, HasSubstr("is full"));
  EXPECT_THAT(text, HasSubstr(std::to_string(free / kMiB) + " MiB of 512 MiB are free"));
  EXPECT_THAT(text, Not(HasSubstr("Failed to allocate")));
  ASSERT_FALSE(blocks.empty());
  for (void* block : blocks) OK(aclrtFree(block));
  GoesOn();
}
TEST(Faults, AFullCard) { EXPECT_EQ(Alone("CardFull", {{"ANYNPU_HBM", "512M"}}), 0); }

TEST(Body, DISABLED_HostFull) {
  OK(aclrtSetDevice(0));
  void *p = nullptr, *big = nullptr;
  OK(aclrtMalloc(&p, 32 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
  ExpectFault(207001, aclrtMalloc(&big, 256 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST),
              {"The host cannot back", "ANYNPU_HOST_MEMORY", "--hbm"});
  EXPECT_THAT(RecentError(), Not(HasSubstr("is full")));
  OK(aclrtFree(p));
  GoesOn();
  ExpectFault(207001, aclrtMallocHost(&p, size_t{1} << 60), {"aclrtMallocHost", "host"});
}
TEST(Faults, AFullHost) { EXPECT_EQ(Alone("HostFull", {{"ANYNPU_HOST_MEMORY", "128M"}}), 0); }

// ---- wrong devices

TEST(Body, DISABLED_WrongDevice) {
  for (const int32_t device : {8, 99, -1, INT32_MAX, INT32_MIN}) {
    ExpectFault(107001, aclrtSetDevice(device), {"device " + std::to_string(device)});
    EXPECT_EQ(aclrtResetDevice(device), 107001) << device;
    aclrtContext context = nullptr;
    EXPECT_EQ(aclrtCreateContext(&context, device), 107001) << device;
  }
  // Without a device.
  aclrtStream stream = nullptr;
  void* p = nullptr;
  ExpectFault(107002, aclrtCreateStream(&stream), {"aclrtCreateStream", "aclrtSetDevice"});
  ExpectFault(107002, aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST), {"aclrtMalloc", "aclrtSetDevice"});
  ExpectFault(107002, aclrtSynchronizeDevice(), {"aclrtSynchronizeDevice", "aclrtSetDevice"});
  GoesOn();
}
TEST(Faults, WrongDevices) { EXPECT_EQ(Alone("WrongDevice"), 0); }

// ---- handles

TEST(Body, DISABLED_Handles) {
  OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr, gone = nullptr;
  OK(aclrtCreateStream(&stream));
  OK(aclrtCreateStream(&gone));
  OK(aclrtDestroyStream(gone));
  aclrtEvent event = nullptr, gone_event = nullptr;
  OK(aclrtCreateEvent(&event));
  OK(aclrtCreateEvent(&gone_event));
  OK(aclrtDestroyEvent(gone_event));
  int mine = 0;
  for (void* handle : {gone, static_cast<aclrtStream>(&mine), static_cast<aclrtStream>(event),
                       reinterpret_cast<aclrtStream>(0x1234)}) {
    ExpectFault(107017, aclrtSynchronizeStream(handle), {"aclrtSynchronizeStream", "stream"});
    EXPECT_EQ(aclrtDestroyStream(handle), 107017);
    EXPECT_EQ(aclrtRecordEvent(event, handle), 107017);
    EXPECT_EQ(aclrtMemsetAsync(&mine, 4, 0, 4, handle), 107017);
    EXPECT_EQ(aclrtLaunchHostFunc(
                  handle, [](void*) {}, nullptr),
              107017);
  }
  for (void* handle : {gone_event, static_cast<aclrtEvent>(&mine), static_cast<aclrtEvent>(stream)}) {
    ExpectFault(107017, aclrtSynchronizeEvent(handle), {"aclrtSynchronizeEvent", "event"});
    EXPECT_EQ(aclrtRecordEvent(handle, stream), 107017);
    EXPECT_EQ(aclrtStreamWaitEvent(stream, handle), 107017);
    EXPECT_EQ(aclrtDestroyEvent(handle), 107017);
  }
  aclrtContext context = nullptr;
  OK(aclrtCreateContext(&context, 1));
  OK(aclrtDestroyContext(context));
  ExpectFault(107000, aclrtSetCurrentContext(context), {"aclrtSetCurrentContext"});
  EXPECT_NE(aclrtDestroyContext(context), 0);
  EXPECT_NE(aclrtSetCurrentContext(&mine), 0);
  OK(aclrtSetDevice(0));
  ExpectFault(107017, aclrtDestroyNotify(&mine), {"notify"});
  ExpectFault(107000, aclrtFreePhysical(&mine), {"aclrtFreePhysical"});
  ExpectFault(107000, aclrtIpcMemClose("no such key"), {"key"});
  void* p = nullptr;
  ExpectFault(107000, aclrtIpcMemImportByKey(&p, "anpu1", 0), {"key"});
  // Communicators.
  HcclComm comm = nullptr;
  int32_t device = 0;
  HCCL_OK(HcclCommInitAll(1, &device, &comm));
  HCCL_OK(HcclCommDestroy(comm));
  ExpectFault(HCCL_E_PARA, HcclCommDestroy(comm), {"comm"});
  ExpectFault(HCCL_E_PARA, HcclBarrier(comm, stream), {"HcclBarrier", "comm"});
  EXPECT_EQ(HcclBarrier(reinterpret_cast<HcclComm>(&mine), stream), HCCL_E_PARA);
  OK(aclrtDestroyStream(stream));
  OK(aclrtDestroyEvent(event));
  GoesOn();
}
TEST(Faults, StaleAndForeignHandles) { EXPECT_EQ(Alone("Handles"), 0); }

// ---- memory that does not belong here

struct Tensor {
  Tensor(void* data, int64_t count) {
    const int64_t shape[] = {count}, stride[] = {1};
    raw = aclCreateTensor(shape, 1, ACL_FLOAT, stride, 0, ACL_FORMAT_ND, shape, 1, data);
  }
  ~Tensor() { aclDestroyTensor(raw); }
  aclTensor* raw = nullptr;
};

// out = a + b on the stream; the code of the phase that refuses.
int Add(void* a, void* b, void* out, int64_t count, aclrtStream stream) {
  float one = 1;
  aclScalar* alpha = aclCreateScalar(&one, ACL_FLOAT);
  const Tensor x(a, count), y(b, count), z(out, count);
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  int code = aclnnAddGetWorkspaceSize(x.raw, y.raw, alpha, z.raw, &workspace, &executor);
  if (code == 0) code = aclnnAdd(nullptr, workspace, executor, stream);
  aclDestroyScalar(alpha);
  return code;
}

TEST(Body, DISABLED_HostMemory) {
  OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  void *device = nullptr, *pinned = nullptr, *freed = nullptr;
  OK(aclrtMalloc(&device, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtMalloc(&freed, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtFree(freed));
  OK(aclrtMallocHost(&pinned, 4096));
  std::vector<float> host(1024, 1.0f);
  for (void* bad : {static_cast<void*>(host.data()), pinned}) {
    ExpectFault(161002, Add(device, bad, device, 8, stream), {"aclnnAdd", "other", "host memory", "aclrtMalloc"});
    ExpectFault(161002, Add(device, device, bad, 8, stream), {"aclnnAdd", "out", "host memory"});
  }
  ExpectFault(161002, Add(device, freed, device, 8, stream), {"other", "freed"});
  ExpectFault(161002, Add(device, device, device, 4096, stream), {"self", "leave the allocation"});
  ExpectFault(107000, aclrtMemcpy(device, 64, host.data(), 64, ACL_MEMCPY_DEVICE_TO_DEVICE), {"src", "host"});
  ExpectFault(107000, aclrtMemcpyAsync(host.data(), 64, device, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream),
              {"dst", "host"});
  ExpectFault(107000, aclrtMemcpy(device, 8192, host.data(), 8192, ACL_MEMCPY_HOST_TO_DEVICE), {"dst"});
  ExpectFault(107000, aclrtMemset(host.data(), 64, 0, 64), {"devPtr", "memset"});
  ExpectFault(107000, aclrtFree(host.data()), {"aclrtFree", "host memory"});
  ExpectFault(107000, aclrtFree(freed), {"aclrtFree", "freed already"});
  ExpectFault(107000, aclrtFreeHost(device), {"aclrtFreeHost", "aclrtFree"});
  ExpectFault(107000, aclrtFreeHost(host.data()), {"aclrtFreeHost"});
  char key[65];
  ExpectFault(107016, aclrtIpcMemGetExportKey(host.data(), 64, key, sizeof key, 0), {"devPtr", "host memory"});
  HcclComm comm = nullptr;
  int32_t number = 0;
  HCCL_OK(HcclCommInitAll(1, &number, &comm));
  ExpectFault(HCCL_E_PARA, HcclAllReduce(host.data(), device, 8, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream),
              {"HcclAllReduce", "sendBuf", "host memory"});
  HCCL_OK(HcclCommDestroy(comm));
  // Registered, it may be used by everybody.
  void* view = nullptr;
  OK(aclrtHostRegister(host.data(), host.size() * sizeof(float), ACL_HOST_REGISTER_MAPPED, &view));
  OK(Add(view, view, view, 1024, stream));
  OK(aclrtSynchronizeStream(stream));
  EXPECT_THAT(host, Each(2.0f));
  ExpectFault(161002, Add(view, view, view, 1025, stream), {"self", "registered"});
  OK(aclrtHostUnregister(host.data()));
  ExpectFault(161002, Add(view, view, view, 8, stream), {"host memory"});
  OK(aclrtSynchronizeStream(stream));
  OK(aclrtFreeHost(pinned));
  OK(aclrtFree(device));
  OK(aclrtDestroyStream(stream));
  GoesOn();
}
TEST(Faults, HostMemoryWhereDeviceMemoryBelongs) { EXPECT_EQ(Alone("HostMemory"), 0); }

TEST(Body, DISABLED_MixedDevices) {
  void* memory[2] = {};
  aclrtStream streams[2] = {};
  for (int32_t d : {1, 0}) {
    OK(aclrtSetDevice(d));
    OK(aclrtCreateStream(&streams[d]));
    OK(aclrtMalloc(&memory[d], 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(memory[d], 4096, 0, 4096));
  }
  // Device 0 is current.
  ExpectFault(107003, aclrtMemsetAsync(memory[0], 64, 0, 64, streams[1]), {"device 1", "device 0", "aclrtSetDevice"});
  EXPECT_EQ(aclrtStreamWaitEvent(streams[1], nullptr), 100000);
  ExpectFault(207006, aclrtMemcpy(memory[0], 64, memory[1], 64, ACL_MEMCPY_DEVICE_TO_DEVICE),
              {"device 0", "device 1", "aclrtDeviceEnablePeerAccess"});
  ExpectFault(207006, aclrtMemcpyAsync(memory[0], 64, memory[1], 64, ACL_MEMCPY_DEVICE_TO_DEVICE, streams[0]),
              {"peer access"});
  ExpectFault(161002, Add(memory[0], memory[1], memory[0], 8, streams[0]), {"aclnnAdd", "device 1", "device 0"});
  HcclComm comms[2] = {};
  int32_t devices[2] = {0, 1};
  HCCL_OK(HcclCommInitAll(2, devices, comms));
  ExpectFault(HCCL_E_PARA,
              HcclAllReduce(memory[0], memory[0], 8, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comms[0], streams[1]),
              {"device 1", "device 0"});
  for (HcclComm comm : comms) HCCL_OK(HcclCommDestroy(comm));
  // With peer access it works.
  OK(aclrtSetDevice(0));
  OK(aclrtDeviceEnablePeerAccess(1, 0));
  OK(aclrtMemcpy(memory[0], 64, memory[1], 64, ACL_MEMCPY_DEVICE_TO_DEVICE));
  OK(Add(memory[0], memory[1], memory[0], 8, streams[0]));
  OK(aclrtSynchronizeStream(streams[0]));
  GoesOn();
}
TEST(Faults, MixedDevices) { EXPECT_EQ(Alone("MixedDevices"), 0); }

// ---- a peer dies in a collective

TEST(Body, DISABLED_KilledPeer) {
  Process p;
  p.Start(p.rank);
  HcclComm comm = nullptr;
  p.Join(&comm);
  void* data = nullptr;
  OK(aclrtMalloc(&data, 4 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
  if (p.rank == 1) {
    std::thread([] {
      std::this_thread::sleep_for(milliseconds(50));
      ::raise(SIGKILL);
    }).detach();
  }
  int code = 0;
  while (code == 0) {  // until the other one is gone in the middle of it
    HCCL_OK(HcclAllReduce(data, data, kMiB, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, p.stream));
    code = aclrtSynchronizeStream(p.stream);
    if (code == 0) continue;
    ExpectFault(507057, code, {"rank 1"});
    HcclResult async = HCCL_SUCCESS;
    HCCL_OK(HcclGetCommAsyncError(comm, &async));
    EXPECT_EQ(async, HCCL_E_REMOTE);
  }
  HCCL_OK(HcclCommDestroy(comm));
  GoesOn();
}
TEST(Faults, APeerKilledInACollective) { EXPECT_THAT(Ranks("KilledPeer", 2).Codes(), ElementsAre(0, 128 + SIGKILL)); }

}  // namespace
}  // namespace hccl_test
