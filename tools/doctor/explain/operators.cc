#include "tools/doctor/explain/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/doctor/data.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace {

constexpr std::array<std::string_view, 16> kPrefixes = {"torch.nn.functional.",
                                                        "torch.nn.",
                                                        "torch.Tensor.",
                                                        "torch.ops.aten.",
                                                        "torch.ops.npu.",
                                                        "torch_npu.",
                                                        "torch.npu.",
                                                        "torch.special.",
                                                        "torch.linalg.",
                                                        "torch.fft.",
                                                        "torch.",
                                                        "aten::",
                                                        "aten.",
                                                        "npu::",
                                                        "nn.",
                                                        "F."};

struct Tables {
  Table aliases{data::aliases}, torch{data::torch_operators}, functions{data::functions}, dtypes{data::dtypes};
  static const Tables& Get() {
    static const Tables tables;
    return tables;
  }
};

std::string_view Base(std::string_view overload) { return overload.substr(0, overload.find('.')); }

std::string KernelOf(std::string_view name) {
  for (const Row& row : Tables::Get().torch.rows()) {
    if (row["name"] == name) return std::string(row["kernel"]);
  }
  return {};
}

Function FunctionOf(const Row& row) {
  Function function{std::string(row["name"]), row["defined"] == "yes", {}};
  for (const Row& type : Tables::Get().dtypes.rows()) {
    if (type["name"] != row["name"] || type["parameter"] == "*") continue;
    const auto text = [&](std::string_view column) {
      return type[column].empty() ? std::string("-") : std::string(type[column]);
    };
    if (type["dtypes_910b"].empty() && type["dtypes_310p"].empty() && type["dtypes_950"].empty()) continue;
    function.parameters.push_back({std::string(type["parameter"]), text("dtypes_910b"), text("dtypes_a3"),
                                   text("dtypes_310p"), text("dtypes_950")});
  }
  return function;
}

std::vector<Function> FunctionsOf(std::string_view name) {
  std::vector<Function> found;
  for (const Row& row : Tables::Get().functions.rows()) {
    bool serves = row["name"] == name;
    for (std::string_view overload : Split(row["torch"], ',')) serves |= Base(overload) == name;
    if (serves) found.push_back(FunctionOf(row));
  }
  return found;
}

Operator Named(std::string_view asked, std::string name) {
  Operator result{std::string(asked), name, KernelOf(name), FunctionsOf(name), {}};
  if (result.kernel.empty() && name.size() > 1 && name.ends_with('_') && !name.ends_with("__")) {
    const std::string plain = name.substr(0, name.size() - 1);  // add_ is listed as add or as add_
    if (!KernelOf(plain).empty()) return Named(asked, plain);
  }
  if (result.kernel.empty() && KernelOf("linalg_" + name) == "npu") return Named(asked, "linalg_" + name);
  if (result.kernel.empty() && KernelOf("special_" + name) == "npu") return Named(asked, "special_" + name);
  return result;
}

}  // namespace

std::string Operator::State() const {
  if (name.starts_with("aclnn")) return functions.empty() ? "unknown" : functions[0].defined ? "native" : "refused";
  if (!parts.empty()) {
    std::string worst = "composed";
    for (const Operator& part : parts) {
      const std::string state = part.State();
      if (state == "refused" || state == "cpu") worst = state;
    }
    return worst;
  }
  if (kernel == "npu") {
    // torch_npu picks one of several functions; one that is there serves the common case.
    const bool any = functions.empty() ||
                     std::any_of(functions.begin(), functions.end(), [](const Function& f) { return f.defined; });
    return any ? "native" : "refused";
  }
  return kernel.empty() ? "unknown" : kernel;
}

bool LooksLikeOperator(std::string_view name) {
  if (name.empty() || name.find_first_of(" /\t\n") != name.npos) return false;
  if (name.starts_with("aclnn") || name.starts_with("aten")) return true;
  for (std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  for (const Row& row : Tables::Get().aliases.rows()) {
    if (row["name"] == name) return true;
  }
  return !KernelOf(name).empty();
}

Operator Describe(std::string_view asked) {
  std::string_view name = asked;
  for (std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
      break;
    }
  }
  if (name.starts_with("aclnn")) return {std::string(asked), std::string(name), "", FunctionsOf(name), {}};
  name = Base(name);
  // torch.fft.fft is fft_fft, torch.linalg.norm linalg_norm, torch.special.erf special_erf.
  std::string within;
  for (std::string_view space : {"fft", "linalg", "special"}) {
    const std::string full = fmt::format("{}_{}", space, name);
    if (asked.starts_with(fmt::format("torch.{}.", space)) && !KernelOf(full).empty() && KernelOf(name) != "npu")
      name = within = full;
  }
  if (KernelOf(name) != "npu") {
    for (const Row& row : Tables::Get().aliases.rows()) {
      if (row["name"] != name) continue;
      Operator result{std::string(asked), std::string(name), "composed", {}, {}};
      for (std::string_view part : Split(row["operators"], ',')) result.parts.push_back(Named(part, std::string(part)));
      if (result.parts.size() == 1 && Lower(name) == result.parts[0].name) {
        result.parts[0].asked = asked;
        return result.parts[0];  // torch.nn.GELU is gelu
      }
      return result;
    }
  }
  return Named(asked, std::string(name));
}

}  // namespace npu::doctor
