#include "runtime/context/chip_limits.h"

#include "base/parity/parity.h"

namespace npu::rt {
namespace {

struct Limit {
  std::string_view rule;
  int chip;
  uint64_t value;
  std::string_view source;
};
constexpr Limit kLimits[] = {
#define NPU_CHIP_LIMIT(rule, chip, value, source) {rule, chip, value, source},
#include "gen/parity/limits.inc"
#undef NPU_CHIP_LIMIT
};

// The table's chips: 910b, 910_93, 310p, 950.
int ChipOf(std::string_view soc) {
  if (soc.starts_with("Ascend910_93")) return 1;
  if (soc.starts_with("Ascend910B")) return 0;
  if (soc.starts_with("Ascend310P")) return 2;
  return soc.starts_with("Ascend950") ? 3 : -1;
}

// Null when the count is within the limit, or none is known.
const Limit* Beyond(std::string_view rule, std::string_view soc, uint64_t count) {
  for (const Limit& limit : kLimits) {
    if (limit.rule == rule && limit.chip == ChipOf(soc) && count > limit.value) return &limit;
  }
  return nullptr;
}

parity::Finding About(const Limit& limit, std::string_view soc, std::string_view function, Code code) {
  return {code,
          function,
          fmt::format("a device of {} has at most {} {}, and this call makes one more.", soc, limit.value, limit.rule),
          fmt::format("destroy {} that are no longer used, or use fewer in each process", limit.rule),
          "limit",
          limit.source};
}

}  // namespace

Status CheckLimit(std::string_view rule, std::string_view soc, uint64_t count, std::string_view function, Code code) {
  const Limit* limit = Beyond(rule, soc, count);
  return limit == nullptr ? Status() : parity::Judge(About(*limit, soc, function, code));
}

void DoubtLimit(std::string_view rule, std::string_view soc, uint64_t count, std::string_view function, Code code,
                std::string_view why) {
  const Limit* limit = Beyond(rule, soc, count);
  if (limit == nullptr) return;
  parity::Finding finding = About(*limit, soc, function, code);
  finding.what += fmt::format(" {}.", why);
  parity::Doubt(finding);
}

}  // namespace npu::rt
