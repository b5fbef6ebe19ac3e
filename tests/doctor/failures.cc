// A program that fails in the way its first word says, and then in ways that follow from it, as programs do that look at no
// code. What it leaves in the log is what `anynpu explain` gets (test_failures.py).
#include <acl/acl.h>
#include <aclnn/aclnn_base.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <hccl/hccl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

void* Device(size_t bytes) {
  void* p = nullptr;
  aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  return p;
}

aclTensor* Tensor(std::vector<int64_t> shape, aclDataType type = ACL_FLOAT, aclFormat format = ACL_FORMAT_ND, void* data = nullptr) {
  std::vector<int64_t> strides(shape.size(), 1);
  int64_t n = 1;
  for (size_t d = shape.size(); d-- > 0; n *= shape[d]) strides[d] = n;
  if (data == nullptr) data = Device(static_cast<size_t>(n) * 16 + 64);
  return aclCreateTensor(shape.data(), shape.size(), type, strides.data(), 0, format, shape.data(), shape.size(), data);
}

// aclnnAbs of two tensors, both phases, whatever phase one says.
void Abs(const aclTensor* in, const aclTensor* out) {
  using Plan = int (*)(const aclTensor*, const aclTensor*, uint64_t*, void**);
  using Run = int (*)(void*, uint64_t, void*, void*);
  void* library = dlopen("libopapi.so", RTLD_NOW | RTLD_GLOBAL);
  uint64_t bytes = 0;
  void* executor = nullptr;
  reinterpret_cast<Plan>(dlsym(library, "aclnnAbsGetWorkspaceSize"))(in, out, &bytes, &executor);
  reinterpret_cast<Run>(dlsym(library, "aclnnAbs"))(nullptr, bytes, executor, nullptr);
}

// What a program does that does not look at codes: more calls that fail.
void GoOn() {
  aclrtSynchronizeStream(reinterpret_cast<void*>(0x10));
  aclrtMemcpy(nullptr, 4, nullptr, 4, ACL_MEMCPY_HOST_TO_DEVICE);
}

// Two ranks as threads; `body` gets the rank's communicator and stream.
template <class Body>
void Ranks(Body body) {
  int32_t devices[] = {0, 1};
  HcclComm comms[2] = {};
  for (int i = 0; i < 2; ++i) aclrtSetDevice(i);
  HcclCommInitAll(2, devices, comms);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      aclrtSetDevice(rank);
      aclrtStream stream = nullptr;
      aclrtCreateStream(&stream);
      body(rank, comms[rank], stream);
      aclrtSynchronizeStream(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

const std::map<std::string, void (*)()> kFailures = {
    {"device-beyond", [] { aclrtSetDevice(99); }},
    {"list-unordered", [] { uint32_t n = 0; aclrtGetDeviceCount(&n); }},
    {"list-beyond", [] { aclrtSetDevice(0); }},
    {"no-context", [] { Device(1024); }},
    {"out-of-memory", [] { aclrtSetDevice(0); Device(size_t{1} << 40); }},
    {"type-refused", [] { aclrtSetDevice(0); Abs(Tensor({4}, ACL_STRING), Tensor({4})); }},
    {"shape-refused", [] { aclrtSetDevice(0); Abs(Tensor({4}), Tensor({5})); }},
    {"tensor-null", [] { aclrtSetDevice(0); Abs(nullptr, Tensor({5})); }},
    {"private-format", [] { aclrtSetDevice(0); Abs(Tensor({4, 4}, ACL_FLOAT, ACL_FORMAT_FRACTAL_NZ), Tensor({4, 4})); }},
    {"host-address", [] { static float host[4]; aclrtSetDevice(0); Abs(Tensor({4}, ACL_FLOAT, ACL_FORMAT_ND, host), Tensor({4})); }},
    {"stream-destroyed", [] { aclrtSetDevice(0); aclrtStream s = nullptr; aclrtCreateStream(&s); aclrtDestroyStream(s); aclrtSynchronizeStream(s); }},
    {"peer-closed", [] { aclrtSetDevice(1); void* theirs = Device(64); aclrtSetDevice(0); void* ours = Device(64); aclrtMemcpy(ours, 64, theirs, 64, ACL_MEMCPY_DEVICE_TO_DEVICE); }},
    {"copy-too-long", [] { aclrtSetDevice(0); char host[8] = {}; aclrtMemcpy(Device(64), 4, host, 8, ACL_MEMCPY_HOST_TO_DEVICE); }},
    {"config-missing", [] { aclInit("/no/such/file.json"); }},
    {"config-broken", [] { aclInit(std::getenv("FAILURE_FILE")); }},
    {"wait-forever", [] { aclrtSetDevice(0); aclrtStream s = nullptr; aclrtCreateStream(&s); aclrtNotify n = nullptr; aclrtCreateNotify(&n, 0); aclrtWaitAndResetNotify(n, s, 0); aclrtSynchronizeStreamWithTimeout(s, 50); }},
    {"ranks-disagree", [] { Ranks([](int rank, HcclComm comm, aclrtStream stream) { HcclAllReduce(Device(4096), Device(4096), rank == 0 ? 10 : 20, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream); }); }},
    {"type-not-reduced", [] { Ranks([](int, HcclComm comm, aclrtStream stream) { HcclAllReduce(Device(4096), Device(4096), 10, HCCL_DATA_TYPE_INT128, HCCL_REDUCE_SUM, comm, stream); }); }},
    {"hccl-setting", [] { aclrtSetDevice(0); HcclRootInfo info; HcclGetRootInfo(&info); HcclComm comm = nullptr; HcclCommInitRootInfo(1, &info, 0, &comm); }},
    {"rank-table", [] { aclrtSetDevice(0); HcclComm comm = nullptr; HcclCommInitClusterInfo("/no/such/table.json", 0, &comm); }},
    {"port-taken", [] { aclrtSetDevice(0); HcclRootInfo info; HcclGetRootInfo(&info); }},
    // Nothing wrong by itself: it fails when a fault was injected.
    {"work", [] {
       aclrtSetDevice(0);
       void* block = Device(size_t{8} << 30);
       Abs(Tensor({1024}), Tensor({1024}));
       if (block == nullptr || aclrtSynchronizeDevice() != ACL_SUCCESS) return;
       Ranks([](int, HcclComm comm, aclrtStream stream) { HcclAllReduce(Device(4096), Device(4096), 10, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream); });
     }},
    {"model-not-here", [] { aclrtSetDevice(0); uint32_t id = 0; aclmdlLoadFromFile("model.om", &id); }},
};

}  // namespace

int main(int argc, char** argv) {
  const auto found = argc > 1 ? kFailures.find(argv[1]) : kFailures.end();
  if (found == kFailures.end()) {
    for (const auto& [name, failure] : kFailures) std::puts(name.c_str());
    return argc > 1 ? 2 : 0;
  }
  if (found->first.rfind("config-", 0) != 0) aclInit(nullptr);
  found->second();
  // A wait that ends by its limit mostly follows from another process; beside a fault of its own process it is not taken for the cause.
  if (found->first != "wait-forever") GoOn();
  return 0;
}
