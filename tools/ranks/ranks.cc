#include "tools/ranks/ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/os/process.h"

namespace npu::ranks {
namespace {

using device::ranks::Call;
using device::ranks::Doing;
using device::ranks::Member;
using device::ranks::Seen;

// Ranks of one communicator: name and members are the same for all of them.
struct Communicator {
  const Seen* first = nullptr;
  std::map<uint32_t, const Seen*> ranks;
};

std::vector<Communicator> Grouped(const std::vector<Seen>& seen, const std::string& machine) {
  std::map<std::string, Communicator> found;
  for (const Seen& one : seen) {
    std::string key = one.name;
    for (const Member& m : one.members) key += fmt::format("/{}:{}:{}", m.host_id, m.pid, m.card);
    Communicator& communicator = found[key];
    if (communicator.first == nullptr) communicator.first = &one;
    communicator.ranks[one.rank] = &one;
  }
  std::vector<Communicator> all;
  for (auto& [key, one] : found) {
    const bool here = machine.empty() || std::any_of(one.ranks.begin(), one.ranks.end(),
                                                     [&](const auto& rank) { return rank.second->machine == machine; });
    if (here) all.push_back(std::move(one));
  }
  return all;
}

std::string CallText(const Call& call) {
  if (call.op[0] == 0) return "none yet";
  std::string text = call.op;
  if (call.type[0] != 0) text += fmt::format(" {} x {}", call.count, call.type);
  if (call.reduce[0] != 0) text += fmt::format(" {}", call.reduce);
  if (call.has_root != 0) text += fmt::format(" root {}", call.root);
  return text + fmt::format(" (call {})", call.number);
}

std::string StateText(const Seen& one) {
  if (one.process_state == 'T') return "stopped";
  if (one.process_state == 't') return "in a debugger";
  switch (one.doing) {
    case Doing::kIdle:
      return "idle";
    case Doing::kBusy:
      return "busy";
    case Doing::kWaits:
      return fmt::format("waits {:.1f} s", static_cast<double>(one.waits_ms) / 1000);
    case Doing::kBroken:
      return "broken";
  }
  return "unknown";
}

std::string BytesText(uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string Waited(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size() && i < 6; ++i) text += fmt::format("{}{}", i == 0 ? "rank " : ", ", ranks[i]);
  if (ranks.size() > 6) text += fmt::format(" and {} more", ranks.size() - 6);
  return text;
}

// A member whose process shows no board here.
std::string Absent(const Member& member, const Seen& from) {
  const bool same_host = from.rank < from.members.size() && from.members[from.rank].host_id == member.host_id;
  if (!same_host) return "on another host";
  return device::ranks::StateOf(member.pid) == 0 ? "dead" : "has left";
}

}  // namespace

std::string Table(const std::vector<Seen>& seen, const std::string& machine) {
  std::string text;
  for (const Communicator& one : Grouped(seen, machine)) {
    const Seen& first = *one.first;
    text += fmt::format("communicator {}, {} {}\n", first.name, first.size, first.size == 1 ? "rank" : "ranks");
    text += fmt::format("  {:>4} {:>8} {:<16} {:>4} {:<16} {:<14} {:>10} {:>9}  {:<48} {}\n", "rank", "pid", "host",
                        "card", "machine", "state", "calls", "bytes", "last call", "waits for");
    for (uint32_t r = 0; r < first.size; ++r) {
      const Member& member = first.members[r];
      const auto at = one.ranks.find(r);
      if (at == one.ranks.end()) {
        text += fmt::format("  {:>4} {:>8} {:<16} {:>4} {:<16} {}\n", r, member.pid, member.address, member.card, "",
                            Absent(member, first));
        continue;
      }
      const Seen& rank = *at->second;
      text += fmt::format("  {:>4} {:>8} {:<16} {:>4} {:<16} {:<14} {:>10} {:>9}  {:<48} {}\n", r, rank.pid,
                          member.address, rank.card, rank.machine, StateText(rank), rank.ended, BytesText(rank.bytes),
                          CallText(rank.call), Waited(rank.waits_for));
      if (!rank.why.empty()) text += fmt::format("       {}\n", rank.why);
    }
  }
  return text.empty() ? "no communicator is in use on this host\n" : text;
}

std::string Json(const std::vector<Seen>& seen, const std::string& machine) {
  nlohmann::json all = nlohmann::json::array();
  for (const Communicator& one : Grouped(seen, machine)) {
    nlohmann::json ranks = nlohmann::json::array();
    for (uint32_t r = 0; r < one.first->size; ++r) {
      const Member& member = one.first->members[r];
      nlohmann::json row = {{"rank", r}, {"pid", member.pid}, {"host", member.address}, {"card", member.card}};
      const auto at = one.ranks.find(r);
      if (at == one.ranks.end()) {
        row["state"] = Absent(member, *one.first);
      } else {
        const Seen& rank = *at->second;
        row.update({{"machine", rank.machine},
                    {"state", StateText(rank)},
                    {"calls", rank.ended},
                    {"bytes", rank.bytes},
                    {"last_call", CallText(rank.call)},
                    {"waits_for", rank.waits_for},
                    {"waits_ms", rank.waits_ms},
                    {"why", rank.why}});
      }
      ranks.push_back(std::move(row));
    }
    all.push_back({{"communicator", one.first->name}, {"size", one.first->size}, {"ranks", std::move(ranks)}});
  }
  return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int Main(const std::vector<std::string>& words) {
  CLI::App app(
      "The communicators in use on this host: each rank's process, card, last call, state, bytes, and whom it waits "
      "for.",
      "anynpu ranks");
  std::string machine;
  double every_s = 0;
  bool json = false;
  app.add_option("--machine", machine, "only communicators with a rank on this machine")->type_name("NAME");
  app.add_option("--watch", every_s, "look again every so many seconds (1) until interrupted")
      ->type_name("SECONDS")
      ->expected(0, 1)
      ->default_str("1")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_flag("--json", json, "for programs");
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  const bool watch = app.count("--watch") > 0;
  if (watch && every_s <= 0) every_s = 1;
  do {
    const auto seen = device::ranks::ReadAll();
    const std::string text = json ? Json(seen, machine) : Table(seen, machine);
    fmt::print("{}{}", watch && !json && ::isatty(STDOUT_FILENO) != 0 ? "\x1b[H\x1b[2J" : "", text);
    std::fflush(stdout);
    if (watch) std::this_thread::sleep_for(std::chrono::duration<double>(every_s));
  } while (watch);
  return 0;
}

}  // namespace npu::ranks
