// What the cases share: a device, streams, blocks, and calls that must work.
#pragma once

#include <acl/acl.h>
#include <acl/acl_rt.h>
#include <aclnn/acl_meta.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace strict_cases {

#define OK(call)                                                                            \
  do {                                                                                      \
    const auto code_ = (call);                                                              \
    if (code_ != 0) {                                                                       \
      std::fprintf(stderr, "%s: %d %s\n", #call, static_cast<int>(code_), aclGetRecentErrMsg()); \
      std::_Exit(3);                                                                        \
    }                                                                                       \
  } while (false)

inline void* Malloc(size_t bytes) {
  void* p = nullptr;
  OK(aclrtMalloc(&p, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  return p;
}
inline aclrtStream Stream() {
  aclrtStream s = nullptr;
  OK(aclrtCreateStream(&s));
  return s;
}
inline aclrtEvent Event() {
  aclrtEvent e = nullptr;
  OK(aclrtCreateEvent(&e));
  return e;
}
inline void Fill(void* p, size_t bytes, aclrtStream s) { OK(aclrtMemsetAsync(p, bytes, 1, bytes, s)); }
inline void Move(void* to, const void* from, size_t bytes, aclrtStream s) {
  OK(aclrtMemcpyAsync(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, s));
}
inline aclTensor* Floats(void* p, int64_t n) {
  const int64_t stride = 1;
  return aclCreateTensor(&n, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &n, 1, p);
}

// y = 2 x with a kernel of ours, which goes `over` elements beyond the end (below zero: before the start).
enum class Fault { kWritesBeyond, kWritesBefore, kReadsFar, kNone };
void CustomScale(void* x, void* y, int64_t n, Fault fault, aclrtStream stream);

using Cases = std::map<std::string, std::function<void()>>;
Cases MemoryCases();
Cases RaceCases();
Cases OrderedCases();

}  // namespace strict_cases
