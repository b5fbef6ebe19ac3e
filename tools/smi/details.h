// `npu-smi info -t TYPE`: blocks of labelled values, one function a type.
#pragma once

#include <optional>
#include <string>

#include "tools/smi/query.h"

namespace npu::smi {

struct Question {
  std::string type;
  std::optional<int> card, chip, phy;
};

// Appends the answer to `out`; a DCMI code when it cannot be given, kUnknownType for a type that npu-smi does not know.
inline constexpr int kUnknownType = 1;
int Answer(const Dcmi& dcmi, const Question& question, std::string& out);

// `info -l` and `info -m`.
int ListCards(const Dcmi& dcmi, std::string& out);
int MapChips(const Dcmi& dcmi, std::string& out);

}  // namespace npu::smi
