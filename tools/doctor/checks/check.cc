#include "tools/doctor/checks/check.h"

#include <algorithm>

namespace npu::doctor {
namespace {

std::vector<Check>& Registry() {
  static std::vector<Check> registry;
  return registry;
}

}  // namespace

std::string_view NameOf(Severity severity) {
  return severity == Severity::kError ? "error" : severity == Severity::kWarning ? "warning" : "note";
}

std::string_view NameOf(Layer layer) {
  constexpr std::string_view kNames[] = {"machine",     "driver",  "toolkit", "python", "cards",
                                         "environment", "network", "tuning",  "script"};
  return kNames[static_cast<size_t>(layer)];
}

Registration::Registration(const Check& check) { Registry().push_back(check); }

const std::vector<Check>& Checks() {
  // The order in which files register is the linker's; ours is that of layers and names.
  static const std::vector<Check> sorted = [] {
    std::vector<Check> checks = Registry();
    std::sort(checks.begin(), checks.end(),
              [](const Check& a, const Check& b) { return a.layer != b.layer ? a.layer < b.layer : a.name < b.name; });
    return checks;
  }();
  return sorted;
}

bool Report::Has(std::string_view check) const {
  return std::any_of(found_.begin(), found_.end(), [&](const Found& f) { return f.check->name == check; });
}

std::vector<Found> Report::Sorted() const {
  std::vector<Found> sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Found& a, const Found& b) { return a.check->severity > b.check->severity; });
  return sorted;
}

Report RunChecks(const Portrait& portrait) {
  Report report;
  for (const Check& check : Checks()) {
    report.current_ = &check;
    check.run(portrait, report);
  }
  return report;
}

}  // namespace npu::doctor
