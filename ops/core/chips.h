// What the chosen chip takes, function by function and parameter by parameter: the rule that parity mode adds to every
// operator. Declared once, in abi/dtypes.tsv; definitions say what our kernels take, which is mostly more.
//
//   const ChipOp* op = FindChipOp("aclnnMatmul");        // null: no page is known
//   TypesOf(*op, Chip::k910b, 0)                         // {f32, f16, bf16}; empty: not stated
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ops/core/op_def.h"
#include "ops/core/plan.h"

namespace npu::ops {

enum class Chip : uint8_t { k910b, k910_93, k310p, k950 };
inline constexpr int kChips = 4;

// By the name of aclrtGetSocName; nothing for chips that the table does not know.
std::optional<Chip> ChipOf(std::string_view soc);

enum class OnChip : uint8_t { kUnknown, kYes, kNo };

struct ChipParam {
  uint8_t index;           // of the function's parameters
  uint64_t types[kChips];  // bits of a TypeSet; 0: not stated
  uint8_t same[kChips];    // the parameter whose type it must have, or 0xff
  uint16_t ranks;          // bit r: rank r is taken; 0: not stated
  uint8_t wishes;          // kContiguous, kNotEmpty
};
// Wishes of a page that a card may or may not enforce.
inline constexpr uint8_t kContiguous = 1, kNotEmpty = 2;

// Types that go together: one row of abi/combinations.tsv.
struct ChipCombination {
  std::string_view op;
  uint8_t chips;  // bit c: holds for Chip c
  uint8_t width, rows;
  uint8_t params[6];
  DType types[8][6];
  std::string_view source;
};

struct ChipOp {
  std::string_view name;
  std::span<const ChipParam> params;
  OnChip on[kChips];
  bool more;  // the page says more about types that depend on each other than was read
  std::string_view source;
};

const ChipOp* FindChipOp(std::string_view name);
// In the order of their names.
std::span<const ChipOp> ChipOps();
std::span<const ChipCombination> ChipCombinations();

namespace rule {
namespace check {
// Of the chip that ThePlatform().chip names. Every parameter that the chip would refuse is a finding.
Status ChipTypes(const Planning&, const Rule&);
}  // namespace check
inline constexpr RuleKind kChipTypes{"chip_types", check::ChipTypes, 0, 0};
}  // namespace rule

}  // namespace npu::ops
