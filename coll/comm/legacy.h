// `anynpu run --legacy-hccl-rules`: warnings for programs that are to follow what an article says of HCCL.
#pragma once

#include <cstdint>

namespace npu::coll {

// Once for each rule, on stderr: the rule, what real HCCL does, and where the article says it. Nothing without the
// option.
void LegacyRulesOfCall(const char* function, uint32_t type, uint64_t count);
void LegacyRulesOfStart();

}  // namespace npu::coll
