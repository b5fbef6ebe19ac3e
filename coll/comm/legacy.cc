#include "coll/comm/legacy.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "coll/comm/types.h"
#include "coll/net/refusal.h"

namespace npu::coll {
namespace {

enum Rule { kTypes, kCounts, kTorchrun, kRules };

bool Wanted() {
  static const bool wanted = [] {
    const char* text = std::getenv("ANYNPU_LEGACY_HCCL_RULES");
    return text != nullptr && std::string(text) == "1";
  }();
  return wanted;
}

void Once(Rule rule, const std::string& text) {
  static std::atomic<bool> told[kRules];
  if (!told[rule].exchange(true)) Tell("legacy HCCL rule: " + text);
}

}  // namespace

void LegacyRulesOfCall(const char* function, uint32_t type, uint64_t count) {
  if (!Wanted()) return;
  const std::string name(InfoOf(type).name);
  if (name != "fp32" && name != "fp16") {
    Once(kTypes, fmt::format("{} of {}: the article (section 2.2) says that only float32 and float16 are taken. Real "
                             "HCCL on a 910B reduces "
                             "int8, int16, int32, int64, fp16, fp32 and bfp16; the call goes on.",
                             function, name));
  }
  if (count % 128 != 0) {
    Once(kCounts, fmt::format("{} of {} elements: the article (section 2.2) says that counts must be multiples of 128. "
                              "Real HCCL takes any "
                              "count and alignment of the type; the call goes on.",
                              function, count));
  }
}

void LegacyRulesOfStart() {
  if (!Wanted() || std::getenv("TORCHELASTIC_RUN_ID") == nullptr) return;
  Once(kTorchrun,
       "started by torchrun: the article (section 2.1) says that HCCL works under mpirun only. Real HCCL and this one "
       "work under both; the "
       "start goes on.");
}

}  // namespace npu::coll
