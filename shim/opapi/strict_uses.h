// What an operator's call reads and writes, for strict memory: the roles of its parameters, but where the old value of a
// written one does not matter.
#pragma once

#include <span>
#include <vector>

#include "device/strict/strict.h"
#include "ops/core/executor.h"

namespace npu::opapi {

class StrictUses {
 public:
  StrictUses(ops::Executor& executor, const std::byte* scratch);
  std::span<const strict::Use> all() const { return uses_; }
  strict::Step::Copy copy() const { return copy_; }

 private:
  std::vector<strict::Use> uses_;
  strict::Step::Copy copy_ = strict::Step::Copy::kNo;
};

}  // namespace npu::opapi
