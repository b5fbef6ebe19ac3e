// A check: one question about the portrait, declared once. The command, its list, the tests and the docs all read the
// registry.
//
//   NPU_CHECK(TorchMissing, "torch-missing", kError, kPython, "torch is installed") {
//     if (portrait.python.error.empty() && portrait.python.torch.empty()) report.Add("torch is not installed ...", "pip
//     install ...");
//   }
//
// A check adds a finding for each fault it sees, or none. It looks at the portrait only, so it can be tested with a
// made-up one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/doctor/observe/portrait.h"

namespace npu::doctor {

enum class Severity { kNote, kWarning, kError };
std::string_view NameOf(Severity severity);

// From the ground up: of two errors the one in the lower layer is named first, since the upper ones often follow from
// it.
enum class Layer { kMachine, kDriver, kToolkit, kPython, kCards, kEnvironment, kNetwork, kTuning, kScript };
std::string_view NameOf(Layer layer);

// What --fix may do: nothing but these, and only after it was shown.
struct Fix {
  enum Kind { kNone, kSet, kUnset, kMakeFolder } kind = kNone;
  std::string name, value;  // a variable and its value; for kMakeFolder the folder
};

class Report;

struct Check {
  std::string_view name;
  Severity severity;
  Layer layer;
  std::string_view asks;  // what is true when all is well
  void (*run)(const Portrait& portrait, Report& report);
};

struct Found {
  const Check* check;
  std::string cause, remedy;
  Fix fix;
};

class Report {
 public:
  void Add(std::string cause, std::string remedy, Fix fix = {}) {
    found_.push_back({current_, std::move(cause), std::move(remedy), std::move(fix)});
  }
  bool Has(std::string_view check) const;
  // The worst first; of one severity the lowest layer first.
  std::vector<Found> Sorted() const;

 private:
  friend Report RunChecks(const Portrait& portrait);
  const Check* current_ = nullptr;
  std::vector<Found> found_;
};

// All checks, in the order of layers and names.
const std::vector<Check>& Checks();
Report RunChecks(const Portrait& portrait);

struct Registration {
  explicit Registration(const Check& check);
};

#define NPU_CHECK(Ident, name, severity, layer, asks)                                                         \
  static void Check##Ident(const Portrait& portrait, Report& report);                                         \
  static const Registration registered##Ident({name, Severity::severity, Layer::layer, asks, &Check##Ident}); \
  static void Check##Ident([[maybe_unused]] const Portrait& portrait, [[maybe_unused]] Report& report)

}  // namespace npu::doctor
