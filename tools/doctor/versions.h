// Which torch_npu, torch, CANN and Python belong together: the tables matrix.tsv and pythons.tsv.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npu::doctor {

struct Combination {
  std::string torch_npu, torch;
  std::vector<std::string> cann;
  bool exact = false;  // the row is that of the very version asked for, not one of the same torch
};

// "2.9.0.post2+gitabc" is 2.9.0.post2; "2.13.0+cpu" is 2.13.0.
std::string Plain(std::string_view version);
// The row of a torch_npu version; without one, all rows of its torch version taken together.
std::optional<Combination> CombinationFor(std::string_view torch_npu);
// Pythons for a torch version; empty when the table does not know it.
std::vector<std::string> PythonsFor(std::string_view torch);
// "9.1.0" and "9.1.0.1.B080", "8.2.RC1" and "8.2.RC1.alpha003", "9.0.0-beta.1" are of one release.
bool SameRelease(std::string_view installed, std::string_view wanted);
// Fields compared as numbers: 9.1 < 10.0.
bool Older(std::string_view a, std::string_view b);

}  // namespace npu::doctor
