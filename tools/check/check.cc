#include "tools/check/check.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

namespace npu::check {

int SelfCheck(const std::vector<std::string>& words) {
  CLI::App app(
      "A short self-test of the installation in this environment: devices, memory, operators, collectives, monitor, "
      "exporter.",
      "anynpu check");
  bool json = false;
  int seconds = 120, port = 8082;
  unsigned seed = std::random_device()() % 1'000'000;
  std::vector<std::string> only;
  app.add_flag("--json", json, "for programs");
  app.add_option("--timeout", seconds, "longest time of a part, in seconds (120)")
      ->check(CLI::Range(1, 86400))
      ->type_name("S");
  app.add_option("--seed", seed, "of the values (drawn, and printed)")->type_name("N");
  app.add_option("--exporter-port", port, "where the exporter listens (8082)")
      ->check(CLI::Range(1, 65535))
      ->type_name("PORT");
  app.add_option("--only", only, "only this part")->type_name("PART");
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  const std::pair<const char*, std::function<void(Sink&)>> bodies[] = {
      {"devices", CheckDevices},
      {"memory", CheckMemory},
      {"operators", [seed](Sink& sink) { CheckOperators(sink, seed); }},
      {"collectives", [seed](Sink& sink) { CheckCollectives(sink, seed); }},
      {"monitor", CheckMonitor},
      {"exporter", [port](Sink& sink) { CheckExporter(sink, port); }},
  };
  for (const std::string& wanted : only) {
    if (std::none_of(std::begin(bodies), std::end(bodies), [&](const auto& b) { return wanted == b.first; })) {
      fmt::print(
          stderr,
          "anynpu check: there is no part {}. Parts: devices, memory, operators, collectives, monitor, exporter\n",
          wanted);
      return 2;
    }
  }
  std::vector<Part> parts;
  for (const auto& [name, body] : bodies) {
    if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) continue;
    parts.push_back(RunPart(name, std::chrono::seconds(seconds), body));
  }
  if (!json) fmt::print("seed {}\n", seed);
  std::fputs((json ? Json(parts) : Table(parts)).c_str(), stdout);
  bool failed = false;
  for (const Part& part : parts) failed = failed || part.Count(Verdict::kFailed) > 0;
  return failed ? 1 : 0;
}

}  // namespace npu::check
