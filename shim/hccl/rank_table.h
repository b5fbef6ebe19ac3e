// The rank table file: which device of which server has which rank.
#pragma once

#include <cstdint>
#include <string>

#include "base/status/status.h"

namespace npu::hccl {

struct RankTable {
  uint32_t ranks = 0;
  std::string root_address;  // of rank 0's server; empty when there is only one server
  int root_device = 0;
  std::string id;  // equal on all ranks that read the same table
};

// Unreadable or malformed: HCCL's code 4, with the place in the text.
Result<RankTable> ReadRankTable(const std::string& path, const char* function);
Result<RankTable> ParseRankTable(const std::string& text, const std::string& path, const char* function);

}  // namespace npu::hccl
