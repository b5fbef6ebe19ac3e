// Limits of the chosen chip that parity mode holds a process to: rows of abi/parity.tsv.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status/status.h"

namespace npu::rt {

// A finding when `count` is beyond the chip's limit of that rule ("streams", "events"); ok when no limit is known.
Status CheckLimit(std::string_view rule, std::string_view soc, uint64_t count, std::string_view function, Code code);
// The same where nobody knows whether the limit holds for what is made: a doubt, never a refusal.
void DoubtLimit(std::string_view rule, std::string_view soc, uint64_t count, std::string_view function, Code code,
                std::string_view why);

}  // namespace npu::rt
