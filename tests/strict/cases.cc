// strict_cases NAME: one bug, or one program without.  strict_cases --list: "group name" lines.
#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_mul.h>

#include <cstring>

#include "client.h"

namespace strict_cases {
namespace {

constexpr size_t kBytes = 4096;

struct Planned {
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
};
Planned PlanAdd(void* a, void* b, void* out, int64_t n) {
  Planned plan;
  const float one = 1;
  aclTensor* t[] = {Floats(a, n), Floats(b, n), Floats(out, n)};
  aclScalar* alpha = aclCreateScalar(const_cast<float*>(&one), ACL_FLOAT);
  OK(aclnnAddGetWorkspaceSize(t[0], t[1], alpha, t[2], &plan.bytes, &plan.executor));
  for (aclTensor* each : t) aclDestroyTensor(each);
  aclDestroyScalar(alpha);
  return plan;
}
void Add(void* a, void* b, void* out, int64_t n, aclrtStream s) {
  const Planned plan = PlanAdd(a, b, out, n);
  OK(aclnnAdd(nullptr, plan.bytes, plan.executor, s));
}

void WaitFor(aclrtStream s) { OK(aclrtSynchronizeStream(s)); }

}  // namespace

Cases MemoryCases() {
  Cases c;
  c["copies-what-was-never-written"] = [] {
    void* p = Malloc(kBytes);
    std::vector<char> back(kBytes);
    OK(aclrtMemcpy(back.data(), kBytes, p, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
    OK(aclrtFree(p));
  };
  c["adds-what-is-half-written"] = [] {
    void* p = Malloc(kBytes);
    void* q = Malloc(kBytes);
    OK(aclrtMemset(p, kBytes, 0, kBytes));
    OK(aclrtMemset(q, kBytes, 0, kBytes / 2));
    aclrtStream s = Stream();
    Add(p, q, p, kBytes / 4, s);
    WaitFor(s);
    OK(aclrtFree(p));
    OK(aclrtFree(q));
  };
  c["reads-a-copy-of-what-was-never-written"] = [] {
    void* p = Malloc(kBytes);
    void* q = Malloc(kBytes);
    aclrtStream s = Stream();
    Move(q, p, kBytes, s);  // not a fault yet
    WaitFor(s);
    std::vector<char> back(kBytes);
    OK(aclrtMemcpy(back.data(), kBytes, q, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
    OK(aclrtFree(p));
    OK(aclrtFree(q));
  };
  c["copies-from-freed-memory"] = [] {
    void* p = Malloc(kBytes);
    OK(aclrtMemset(p, kBytes, 0, kBytes));
    OK(aclrtFree(p));
    std::vector<char> back(kBytes);
    (void)aclrtMemcpy(back.data(), kBytes, p, kBytes, ACL_MEMCPY_DEVICE_TO_HOST);
  };
  c["frees-between-plan-and-launch"] = [] {
    void* p = Malloc(kBytes);
    OK(aclrtMemset(p, kBytes, 0, kBytes));
    aclrtStream s = Stream();
    const Planned plan = PlanAdd(p, p, p, kBytes / 4);
    OK(aclrtFree(p));
    (void)aclnnAdd(nullptr, plan.bytes, plan.executor, s);
    WaitFor(s);
  };
  c["frees-what-a-stream-uses"] = [] {
    constexpr size_t kMany = 64 << 20;
    void* p = Malloc(kMany);
    aclrtStream s = Stream();
    Fill(p, kMany, s);
    OK(aclrtFree(p));
    WaitFor(s);
  };
  c["frees-twice"] = [] {
    void* p = Malloc(kBytes);
    OK(aclrtFree(p));
    (void)aclrtFree(p);
  };
  c["fills-beyond-the-end"] = [] {
    void* p = Malloc(1000);
    (void)aclrtMemset(p, 1010, 0, 1010);
    OK(aclrtFree(p));
  };
  c["tensor-larger-than-its-memory"] = [] {
    void* p = Malloc(1000);
    OK(aclrtMemset(p, 1000, 0, 1000));
    aclrtStream s = Stream();
    Add(p, p, p, 252, s);  // 1008 bytes
    WaitFor(s);
    OK(aclrtFree(p));
  };
  const auto custom = [](Fault fault) {
    return [fault] {
      void* x = Malloc(1000);
      void* y = Malloc(1000);
      OK(aclrtMemset(x, 1000, 0, 1000));
      aclrtStream s = Stream();
      CustomScale(x, y, 250, fault, s);
      WaitFor(s);
      OK(aclrtFree(x));
      OK(aclrtFree(y));
    };
  };
  c["custom-kernel-writes-beyond"] = custom(Fault::kWritesBeyond);
  c["custom-kernel-writes-before"] = custom(Fault::kWritesBefore);
  c["custom-kernel-reads-far"] = custom(Fault::kReadsFar);
  c["host-reads-device-memory"] = [] {
    volatile int* p = static_cast<int*>(Malloc(kBytes));
    std::printf("%d\n", p[3]);
  };
  c["host-function-writes-device-memory"] = [] {
    void* p = Malloc(kBytes);
    aclrtStream s = Stream();
    OK(aclrtLaunchHostFunc(s, [](void* at) { *static_cast<volatile int*>(at) = 1; }, p));
    WaitFor(s);
  };
  c["works-on-the-wrong-device"] = [] {
    OK(aclrtSetDevice(1));
    void* p = Malloc(kBytes);
    OK(aclrtSetDevice(0));
    aclrtStream s = Stream();
    Fill(p, kBytes, s);
    WaitFor(s);
    OK(aclrtFree(p));
  };
  c["forgets-to-free"] = [] {
    for (int i = 0; i < 3; ++i) Malloc(kBytes);
  };
  return c;
}

}  // namespace strict_cases

int main(int argc, char** argv) {
  using namespace strict_cases;
  const std::pair<const char*, Cases> groups[] = {{"memory", MemoryCases()}, {"race", RaceCases()}, {"ordered", OrderedCases()}};
  const std::string name = argc > 1 ? argv[1] : "--list";
  for (const auto& [group, cases] : groups) {
    if (name == "--list") {
      for (const auto& [each, run] : cases) std::printf("%s %s\n", group, each.c_str());
    } else if (const auto found = cases.find(name); found != cases.end()) {
      OK(aclInit(nullptr));
      OK(aclrtSetDevice(0));
      found->second();
      return 0;
    }
  }
  return name == "--list" ? 0 : 2;
}
