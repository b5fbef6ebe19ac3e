// ASCEND_RT_VISIBLE_DEVICES: which cards of the machine a process sees, and in which order (only the ascending one exists).
//
// Rules, as the real runtime reads it: ids separated by commas; reading stops at the first thing that is not the id of a card
// ("1,3,8" on four cards is 1 and 3, "1, 2,3" is 1); what was read must ascend ("1,0" leaves no card); an empty value or a
// word such as NoDevFiles leaves none.
#pragma once

#include <string>
#include <vector>

#include "base/status/status.h"

namespace npu::rt {

struct Visible {
  std::vector<int> physical;  // by logical id
  bool set = false;
  std::string value;          // of the variable
  std::string stopped_at;     // the element at which reading stopped, empty when all were read
  Status problem;             // why no card is left, when none is

  // Why `logical` is no device, with the way out that fits.
  Status Explain(int logical, const char* function) const;
};

// `value` null: the variable is not set.
Visible ReadVisible(const char* value, int cards);

}  // namespace npu::rt
