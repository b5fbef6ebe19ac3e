// Which torch_npu, torch, CANN, Python and driver belong together: the tables matrix.tsv, pythons.tsv and hdk.tsv.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npu::doctor {

struct Combination {
  std::string torch_npu, torch;
  std::vector<std::string> cann;  // of a public table; empty when there is none ("?", or "~9.1.0": tried here only)
  bool exact = false;             // the row is that of the very version asked for, not one of the same torch
};

// "2.9.0.post2+gitabc" is 2.9.0.post2; "2.13.0+cpu" is 2.13.0.
std::string Plain(std::string_view version);
// The row of a torch_npu version; without one, all rows of its torch version taken together.
std::optional<Combination> CombinationFor(std::string_view torch_npu);
// Pythons for a torch version; empty when the table does not know it.
std::vector<std::string> PythonsFor(std::string_view torch);
// Driver series (Ascend HDK: "25.5") that a CANN release is listed with, oldest first; empty when no table is known.
std::vector<std::string> DriversFor(std::string_view cann);
// "25.5.2" and "24.1.rc3.b999" are of 25.5 and 24.1.
std::string DriverSeries(std::string_view version);
// "[7.0.0,7.7.99]", as a driver states the firmware that it takes; true when the version is inside, or either is
// unreadable.
bool InRange(std::string_view version, std::string_view range);
// "9.1.0" and "9.1.0.1.B080", "8.2.RC1" and "8.2.RC1.alpha003", "9.0.0-beta.1" are of one release.
bool SameRelease(std::string_view installed, std::string_view wanted);
// Fields compared as numbers: 9.1 < 10.0.
bool Older(std::string_view a, std::string_view b);

}  // namespace npu::doctor
