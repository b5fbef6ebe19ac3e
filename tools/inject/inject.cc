#include "tools/inject/inject.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/status/distance.h"
#include "device/faults/faults.h"
#include "device/figures/model.h"
#include "device/figures/read.h"
#include "device/machine/names.h"
#include "device/machine/state_file.h"
#include "tools/inject/call_names.h"

namespace npu::inject {
namespace {

constexpr int kRefused = 1, kUsage = 2;
constexpr uint64_t kMostCounted = 1'000'000'000'000;  // of calls, errors, bytes a second

int Fail(const Status& status, int code) {
  fmt::print(stderr, "{}\n", status.Message());
  return code;
}

int Parse(CLI::App& app, const std::vector<std::string>& words, bool* ended) {
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
    return 0;
  } catch (const CLI::ParseError& e) {
    *ended = true;
    return app.exit(e) == 0 ? 0 : kUsage;
  }
}

// Digits alone: CLI11 reads "-5" and numbers that are too large as some other unsigned number.
CLI::Validator Whole(uint64_t least, uint64_t most) {
  return {[=](const std::string& text) {
            uint64_t value = 0;
            const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
            const bool fits =
                failure == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
            return fits ? std::string() : fmt::format("{} is no whole number from {} to {}", text, least, most);
          },
          std::string()};
}

// The candidates nearest to a word that is none of them, for the error.
template <class Words>
std::string Nearest(const std::string& word, const Words& known) {
  std::string best;
  size_t least = word.size() / 2 + 1;
  for (const auto& name : known) {
    if (const size_t d = EditDistance(word, name); d < least) least = d, best = std::string(name);
  }
  return best;
}

std::vector<std::string_view> FaultNames() {
  std::vector<std::string_view> names;
  for (const device::FaultFacts& facts : device::AllFaultFacts()) names.push_back(facts.name);
  return names;
}

Result<const device::FaultFacts*> FaultNamed(const std::string& name) {
  if (const device::FaultFacts* facts = device::FaultByName(name)) return facts;
  const std::string nearest = Nearest(name, FaultNames());
  return Error(Code::kInvalidParam, "There is no fault {:?}.{}", name.substr(0, 60),
               nearest.empty() ? "" : fmt::format(" Did you mean {}?", nearest))
      .Remedy("anynpu inject --help lists them.");
}

Status CheckCall(const std::string& call) {
  const auto names = CallNames();
  if (std::binary_search(names.begin(), names.end(), std::string_view(call))) return {};
  const std::string nearest = Nearest(call, names);
  return Error(Code::kInvalidParam, "There is no function {:?} that returns a status.{}", call.substr(0, 60),
               nearest.empty() ? "" : fmt::format(" Did you mean {}?", nearest));
}

// "80E01801", "0x80E01801" and "107001", "-8005": codes of the fault list are hexadecimal, results decimal.
std::optional<int32_t> Number(const std::string& text, int base) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, base);
  if (text.empty() || *end != 0 || value < INT32_MIN || value > static_cast<long long>(UINT32_MAX)) return std::nullopt;
  return static_cast<int32_t>(static_cast<uint32_t>(value));
}

Result<device::MachineConfig> Config(const std::string& machine) {
  if (!machine.empty()) setenv("ANYNPU_MACHINE", machine.c_str(), 1);
  auto config = device::ConfigFromEnvironment();
  if (config.ok() && !machine.empty()) NPU_TRY(device::MustExist(machine));
  return config;
}

std::string Table() {
  std::string text = "Faults:\n";
  for (const device::FaultFacts& f : device::AllFaultFacts()) {
    text += fmt::format("  {:<18} {}", f.name, f.help);
    if (!f.amount.empty()) text += fmt::format("; --amount: {} ({})", f.amount, f.usual_amount);
    if (f.dcmi_code != 0) text += fmt::format("; code {:08X}", f.dcmi_code);
    text += '\n';
  }
  return text +
         "Examples:\n  anynpu inject ecc-double --card 1\n  anynpu inject slow --card 2 --factor 3\n"
         "  anynpu inject call --call aclrtMalloc --nth 3 --code 207001\n"
         "  anynpu inject packet-loss --probability 0.2 --seed 7\n";
}

std::string Local(uint64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm tm{};
  localtime_r(&seconds, &tm);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
  return text;
}

std::string OrAll(int number) { return number < 0 ? "all" : std::to_string(number); }

// Nothing was there to end: what there is instead.
int NothingEnded(const device::MachineConfig& config, const std::string& which, const device::FaultChoice& choice) {
  auto figures = device::ReadFigures(config);
  if (!figures.ok()) return Fail(figures.status(), kRefused);
  const size_t cards = figures->cards.size();
  if (choice.card && static_cast<size_t>(*choice.card) >= cards) {
    fmt::print(stderr, "anynpu clear: there is no card {}; machine {} has cards 0 to {}.\n", *choice.card, config.name,
               cards - 1);
    return kUsage;
  }
  std::string there;
  for (const device::FaultFigures& f : figures->faults)
    there += fmt::format("{}{} {} (card {})", there.empty() ? "" : ", ", f.id, f.name, OrAll(f.card));
  fmt::print(stderr, "Machine {} has no fault{}{}{}; it has {}.\n", config.name, which.empty() ? "" : " ", which,
             choice.card ? fmt::format(" that was asked for on card {} alone", *choice.card) : "",
             there.empty() ? "none" : there);
  return kRefused;
}

}  // namespace

int Inject(const std::vector<std::string>& words) {
  CLI::App app("Let a card, a link or a call fail. The fault stays with the machine until anynpu clear.",
               "anynpu inject");
  std::string name, machine, code;
  device::FaultSpec spec;
  uint64_t nth = 0;
  app.add_option("fault", name, "which")->required()->type_name("FAULT");
  app.add_option("--card", spec.card, "number of the device (default: all)")
      ->type_name("N")
      ->check(CLI::Range(0, device::kMaxCards - 1));
  app.add_option("--rank", spec.rank, "only in processes of this rank (RANK)")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--after", spec.after, "let so many pieces of work (calls) pass first")
      ->type_name("N")
      ->check(Whole(0, kMostCounted));
  auto* times =
      app.add_option("--times", spec.times, "act so often (default: once for ECC and call, else until cleared)")
          ->type_name("N")
          ->check(Whole(0, kMostCounted));
  app.add_option("--probability", spec.chance, "of each match, 0.000001 to 1")->type_name("P");
  app.add_option("--seed", spec.seed, "of the probability")->type_name("N")->check(Whole(0, UINT64_MAX));
  app.add_option("--factor", spec.factor, "of slow")->type_name("F");
  app.add_option("--amount", spec.amount, "see the list below")->type_name("N")->check(Whole(1, kMostCounted));
  app.add_option("--period", spec.period_ms, "of link-flapping, in ms")->type_name("MS")->check(Whole(20, 86'400'000));
  app.add_option("--call", spec.call, "of call: the function, e.g. aclrtMalloc or aclnnAddGetWorkspaceSize")
      ->type_name("NAME");
  auto* nth_option = app.add_option("--nth", nth, "of call: the number of the call that fails, from 1")
                         ->type_name("N")
                         ->check(Whole(1, kMostCounted));
  app.add_option("--code", code, "of call: what it returns (decimal); of error-code: the code (hexadecimal)")
      ->type_name("CODE");
  app.add_option("--machine", machine, "which machine (default: default)")->type_name("NAME");
  app.footer(Table());
  bool ended = false;
  if (const int status = Parse(app, words, &ended); ended) return status;

  auto facts = FaultNamed(name);
  if (!facts.ok()) return Fail(facts.status(), kUsage);
  spec.kind = (*facts)->kind;
  const bool call = spec.kind == device::FaultKind::kCallFails, coded = spec.kind == device::FaultKind::kErrorCode;
  const auto refuse = [&](std::string_view what) {
    fmt::print(stderr, "{}: {}.\n", name, what);
    return kUsage;
  };
  if (!call && (!spec.call.empty() || nth_option->count() > 0))
    return refuse("--call and --nth belong to the fault call");
  if (!call && !coded && !code.empty()) return refuse("--code belongs to the faults call and error-code");
  if (spec.kind != device::FaultKind::kSlow && app.count("--factor") > 0)
    return refuse("--factor belongs to the fault slow");
  if ((*facts)->amount.empty() && app.count("--amount") > 0) return refuse("it takes no --amount");
  if (spec.kind != device::FaultKind::kLinkFlapping && app.count("--period") > 0)
    return refuse("--period belongs to the fault link-flapping");
  // The machine counts chances in millionths.
  if (spec.chance > 0 && spec.chance < 1e-6) return refuse("the probability must be at least 0.000001");
  if (call) {
    if (spec.call.empty()) return refuse("--call is needed: the function that fails");
    if (Status known = CheckCall(spec.call); !known.ok()) return Fail(known, kUsage);
    if (spec.card >= 0) return refuse("calls belong to no card; use --rank");
    if (nth > 0) spec.after = nth - 1;
    if (times->count() == 0) spec.times = spec.chance < 1 ? 0 : 1;
  }
  if (call || coded) {
    const auto number = Number(code, coded ? 16 : 10);
    if (!number || *number == 0)
      return refuse(code.empty() ? "--code is needed" : fmt::format("--code {} is no code", code));
    spec.code = *number;
  }
  auto config = Config(machine);
  if (!config.ok()) return Fail(config.status(), kUsage);
  Result<uint32_t> id = device::AddFault(*config, spec);
  if (!id.ok()) return Fail(id.status(), kRefused);
  fmt::print("fault {}: {}{} on machine {}\n", *id, name, spec.card < 0 ? "" : fmt::format(" on card {}", spec.card),
             config->name);
  return 0;
}

int Clear(const std::vector<std::string>& words) {
  CLI::App app("End faults that were injected.", "anynpu clear");
  std::string which, machine;
  device::FaultChoice choice;
  bool all = false;
  int card = -1;
  app.add_option("fault", which, "its number, or the name of its kind")->type_name("FAULT");
  app.add_flag("--all", all, "all faults");
  app.add_option("--card", card, "only those of this card")
      ->type_name("N")
      ->check(CLI::Range(0, device::kMaxCards - 1));
  app.add_option("--machine", machine, "which machine (default: default)")->type_name("NAME");
  bool ended = false;
  if (const int status = Parse(app, words, &ended); ended) return status;
  if (which.empty() && !all && card < 0) {
    fmt::print(stderr, "anynpu clear: say which: a number, a name, --card N or --all.\n");
    return kUsage;
  }
  if (all && (!which.empty() || card >= 0)) {
    fmt::print(stderr, "anynpu clear: --all ends every fault; leave out {}.\n", which.empty() ? "--card" : which);
    return kUsage;
  }
  if (card >= 0) choice.card = card;
  if (!which.empty()) {
    if (const auto number = Number(which, 10)) {
      choice.id = static_cast<uint32_t>(*number);
    } else {
      auto facts = FaultNamed(which);
      if (!facts.ok()) return Fail(facts.status(), kUsage);
      choice.kind = (*facts)->kind;
    }
  }
  auto config = Config(machine);
  if (!config.ok()) return Fail(config.status(), kUsage);
  Result<int> cleared = device::ClearFaults(*config, choice);
  if (!cleared.ok()) return Fail(cleared.status(), kRefused);
  if (*cleared == 0 && !all) return NothingEnded(*config, which, choice);
  fmt::print("{} {} ended on machine {}\n", *cleared, *cleared == 1 ? "fault" : "faults", config->name);
  return 0;
}

int Faults(const std::vector<std::string>& words) {
  CLI::App app("List the faults of a machine.", "anynpu faults");
  std::string machine;
  app.add_option("--machine", machine, "which machine (default: default)")->type_name("NAME");
  app.footer(Table());
  bool ended = false;
  if (const int status = Parse(app, words, &ended); ended) return status;
  auto config = Config(machine);
  if (!config.ok()) return Fail(config.status(), kUsage);
  auto figures = device::ReadFigures(*config);
  if (!figures.ok()) return Fail(figures.status(), kRefused);
  if (figures->faults.empty()) {
    fmt::print("machine {} has no faults\n", config->name);
    return 0;
  }
  fmt::print("{:<5} {:<18} {:<5} {:<5} {:<7} {:<10} {:<10} {:<20} {}\n", "ID", "FAULT", "CARD", "RANK", "ACTIVE",
             "SEEN", "ACTED", "SINCE", "CALL");
  for (const device::FaultFigures& f : figures->faults) {
    fmt::print("{:<5} {:<18} {:<5} {:<5} {:<7} {:<10} {:<10} {:<20} {}\n", f.id, f.name, OrAll(f.card), OrAll(f.rank),
               f.active ? "yes" : "no", f.seen, f.acted, Local(f.since_unix_ms), f.call);
  }
  return 0;
}

int Clock(const std::vector<std::string>& words) {
  CLI::App app(
      "Deterministic mode: hold the clock of a machine's power, temperature and use figures, and move it by hand. "
      "While it is held, "
      "work counts with the time it was planned to take.",
      "anynpu clock");
  std::string machine;
  double seconds = 0;
  app.require_subcommand(1);
  app.add_option("--machine", machine, "which machine (default: default)")->type_name("NAME");
  CLI::App* hold = app.add_subcommand("hold", "stop the clock");
  CLI::App* advance = app.add_subcommand("advance", "move it on");
  advance->add_option("seconds", seconds, "by how much")->required()->check(CLI::Range(0.0, 1e6));
  CLI::App* run = app.add_subcommand("run", "let it run again");
  for (CLI::App* command : {hold, advance, run}) command->fallthrough();  // --machine behind them too
  bool ended = false;
  if (const int status = Parse(app, words, &ended); ended) return status;
  auto config = Config(machine);
  if (!config.ok()) return Fail(config.status(), kUsage);
  auto file = device::OpenSettled(*config);
  if (!file.ok()) return Fail(file.status(), kRefused);
  device::StateLayout& layout = (*file)->layout();
  device::Clock& clock = layout.figures.clock;
  if (*hold) {
    clock.ns.store(device::MonotonicNs(), std::memory_order_relaxed);
    for (uint32_t card = 0; card < layout.header.cards; ++card) device::MoveModel(layout, card, clock.ns.load());
    clock.held.store(1, std::memory_order_release);
  } else if (*advance) {
    if (clock.held.load() == 0) {
      fmt::print(stderr, "The clock of machine {} runs; hold it first.\n", config->name);
      return kRefused;
    }
    const uint64_t now = clock.ns.fetch_add(static_cast<uint64_t>(std::llround(seconds * 1e9))) +
                         static_cast<uint64_t>(std::llround(seconds * 1e9));
    for (uint32_t card = 0; card < layout.header.cards; ++card) device::MoveModel(layout, card, now);
  } else if (*run) {
    clock.held.store(0, std::memory_order_release);
  }
  return 0;
}

}  // namespace npu::inject
