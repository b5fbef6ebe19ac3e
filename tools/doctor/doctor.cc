#include "tools/doctor/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/doctor/checks/check.h"
#include "tools/doctor/data.h"
#include "tools/doctor/fix.h"
#include "tools/doctor/output.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace fs = std::filesystem;
namespace {

constexpr int kUsage = 64;
constexpr const char* kInside = "ANYNPU_DOCTOR_INSIDE";  // set for the doctor that runs under anynpu run

void PrintChecks(bool json, bool markdown) {
  nlohmann::json list = nlohmann::json::array();
  if (markdown) fmt::print("| check | severity | layer | all is well when |\n|---|---|---|---|\n");
  for (const Check& check : Checks()) {
    if (json)
      list.push_back({{"check", check.name},
                      {"severity", NameOf(check.severity)},
                      {"layer", NameOf(check.layer)},
                      {"asks", check.asks}});
    else if (markdown)
      fmt::print("| {} | {} | {} | {} |\n", check.name, NameOf(check.severity), NameOf(check.layer), check.asks);
    else
      fmt::print("{:<28} {:<8} {:<12} {}\n", check.name, NameOf(check.severity), NameOf(check.layer), check.asks);
  }
  if (json) std::puts(list.dump(2).c_str());
}

void PrintMatrix() {
  const Table matrix(data::matrix), pythons(data::pythons);
  fmt::print("{:<16} {:<10} {:<14} {}\n", "torch_npu", "torch", "CANN", "Python");
  for (const Row& row : matrix.rows()) {
    std::string_view fitting;
    for (const Row& python : pythons.rows()) {
      if (row["torch"].starts_with(std::string(python["torch"]) + ".")) fitting = python["pythons"];
    }
    fmt::print("{:<16} {:<10} {:<14} {}\n", row["torch_npu"], row["torch"], row["cann"], fitting);
  }
  const Table hdk(data::hdk);
  fmt::print("? no public table; ~ tried with software cards only\n\n{:<16} {}\n", "CANN", "drivers (Ascend HDK)");
  for (const Row& row : hdk.rows()) fmt::print("{:<16} {}\n", row["cann"], row["drivers"]);
}

// On a machine without CANN the software cards are what a program will see: the same words again, under `anynpu run`.
bool WantsSoftware(const Portrait& portrait) {
  return portrait.where.root == "/" && !std::getenv(kInside) && portrait.toolkit.home.empty() &&
         portrait.toolkit.toolkit_home.empty() && portrait.toolkit.found.empty() && portrait.driver.folder.empty() &&
         portrait.driver.cards.empty() && portrait.toolkit.ascendcl.empty();
}

void RunUnderSoftware(const std::vector<std::string>& words) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return;
  setenv(kInside, "1", 1);
  std::vector<std::string> command = {self.string(), "run", "--quiet", "--", self.string(), "doctor"};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());  // when it fails the portrait as it is will be shown
}

}  // namespace

int Doctor(const std::vector<std::string>& words) {
  CLI::App app(
      "Examine this environment: what is wrong, why, and what to do. Exit code: 0 all is well, 1 warnings, 2 errors.",
      "anynpu doctor");
  Where where;
  std::string root = "/";
  bool json = false, markdown = false, redact = false, fix = false, quiet = false, list = false, matrix = false,
       as_is = false;
  app.add_option("scripts", where.scripts, "scripts of your own to look at too: train.py, launch.sh")
      ->type_name("FILE");
  CLI::Option* as_json = app.add_flag("--json", json, "as JSON");
  app.add_flag("--markdown", markdown, "as Markdown, for a bug report");
  app.add_flag("--redact", redact, "without host and user names, addresses and secrets");
  app.add_flag("--fix", fix, "do the harmless repairs, after showing them")->excludes(as_json);
  app.add_flag("-q,--quiet", quiet, "findings only: nothing is printed when all is well");
  app.add_option("--python", where.python, "the interpreter to look at (default: python3)")->type_name("PROGRAM");
  app.add_option("--root", root, "look for /proc, /dev, /etc and /usr/local/Ascend below this folder")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  app.add_flag("--as-is", as_is, "do not look at the software cards when there is no CANN");
  app.add_flag("--list", list, "list the checks");
  app.add_flag("--matrix", matrix, "list what belongs together: torch_npu, torch, CANN, Python, driver");
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;
  }
  if (list) return PrintChecks(json, markdown), 0;
  if (matrix) return PrintMatrix(), 0;
  where.root = root;
  const Portrait portrait = Observe(where);
  if (!as_is && WantsSoftware(portrait)) RunUnderSoftware(words);
  const std::vector<Found> found = RunChecks(portrait).Sorted();
  const std::vector<Fact> facts = quiet ? std::vector<Fact>() : Facts(portrait);
  std::string text = json ? AsJson(found, facts) : markdown ? AsMarkdown(found, facts) : AsText(found, facts);
  if (!json && !quiet && found.empty()) text = fmt::format("all is well: {} checks\n\n", Checks().size()) + text;
  if (redact) text = Redact(std::move(text), portrait);
  std::fputs(text.c_str(), stdout);
  if (fix) ApplyFixes(found, fs::current_path());
  return found.empty() ? 0 : static_cast<int>(found.front().check->severity);
}

}  // namespace npu::doctor
