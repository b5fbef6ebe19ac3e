// Blocks of labelled values, as every type of `npu-smi info -t` prints them.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tools/smi/query.h"

namespace npu::smi {

// What a question is about: a chip, and the chips of its card.
struct Asked {
  const Dcmi& dcmi;
  ChipId id;
  bool chip_given;
  std::vector<ChipId> chips;
};
using Answerer = int (*)(const Asked&, std::string&);

template <class T>
void Line(std::string& out, const char* label, const T& value, int width = 30) {
  fmt::format_to(std::back_inserter(out), "\t{:<{}} : {}\n", label, width, value);
}

template <class T>
void Line(std::string& out, const char* label, const std::optional<T>& value, int width = 30) {
  value ? Line(out, label, *value, width) : Line(out, label, "NA", width);
}

inline void Head(const Asked& a, std::string& out) {
  Line(out, "NPU ID", a.id.card);
  Line(out, "Chip Count", a.chips.size());
  out += '\n';
}

// The types beyond those that every monitor asks for; null for a type that is not among them.
Answerer FindFurther(const std::string& type);
// Types that exist on other products only.
bool IsForeign(const std::string& type);

}  // namespace npu::smi
