// Host marks of compiled kernels and operator libraries. No session collects them, so they are dropped, as CANN does
// when none runs; ids and the clock are real.
#include <chrono>
#include <string_view>

#include "gen/calls/profapi.h"

namespace npu::calls {

Status MsprofRegisterCallback(uint32_t, ProfCommandHandle) { return {}; }
Status MsprofReportApi(uint32_t, const MsprofApi*) { return {}; }
Status MsprofReportCompactInfo(uint32_t, const void*, uint32_t) { return {}; }
Status MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t) { return {}; }

// FNV-1a: the same text has the same id in every process.
uint64_t MsprofGetHashId(const char* hashInfo, size_t length) {
  if (hashInfo == nullptr) return 0;
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : std::string_view(hashInfo, length))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

uint64_t MsprofSysCycleTime() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

}  // namespace npu::calls
