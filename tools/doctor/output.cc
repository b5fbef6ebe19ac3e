#include "tools/doctor/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/doctor/observe/elf.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace {

using nlohmann::json;

constexpr std::string_view kShownVariables[] = {
    "ASCEND",       "HCCL", "P2P_HCCL",     "ANYNPU",         "ACL_",        "TORCH_",      "PYTORCH_",
    "RANK_TABLE",   "OMP_", "MASTER_",      "PER_STREAM",     "STREAMS_PER", "TASK_QUEUE",  "INF_NAN",
    "MULTI_STREAM", "NPU_", "CPU_AFFINITY", "PROFILING_MODE", "ATB_",        "SOC_VERSION", "TOOLCHAIN_HOME"};
constexpr std::string_view kShownNames[] = {
    "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH",      "CUDA_VISIBLE_DEVICES", "RANK",
    "LOCAL_RANK",      "WORLD_SIZE", "LOCAL_WORLD_SIZE"};
constexpr std::string_view kSecret[] = {"TOKEN", "SECRET", "PASSW", "CREDENTIAL", "_KEY"};

bool IsShown(std::string_view name) {
  for (std::string_view shown : kShownNames) {
    if (name == shown) return true;
  }
  for (std::string_view shown : kShownVariables) {
    if (name.starts_with(shown)) return true;
  }
  return false;
}

bool IsSecret(std::string_view name) {
  for (std::string_view secret : kSecret) {
    if (Contains(name, secret)) return true;
  }
  return false;
}

std::string Libraries(const std::vector<Library>& libraries) {
  std::string text;
  for (const Library& library : libraries)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", library.path.string(), MachineName(library.machine));
  return text.empty() ? "not found" : text;
}

std::string Packages(const std::vector<Package>& packages) {
  std::string text;
  for (const Package& p : packages) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", p.version, p.folder);
  return text.empty() ? "not installed" : text;
}

std::string OrNone(const std::string& text) { return text.empty() ? "-" : text; }

void ReplaceAll(std::string& text, const std::string& from, std::string_view to) {
  if (from.size() < 3) return;  // too short to be told from other words
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
}

// One line, whatever a path or a variable holds: control characters would let a file name write lines of its own.
std::string Clean(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return text;
}

std::string Dump(const json& value) { return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n"; }

}  // namespace

std::vector<Fact> Facts(const Portrait& portrait) {
  std::vector<Fact> facts;
  const auto add = [&](const char* section, std::string name, std::string value) {
    facts.push_back({section, std::move(name), std::move(value)});
  };
  const System& system = portrait.system;
  add("machine", "host", system.host);
  add("machine", "system",
      fmt::format("{}, kernel {}, {}, {}", OrNone(system.os), system.kernel, system.machine, system.libc));
  add("machine", "processors", fmt::format("{}", system.cores));
  add("machine", "container", system.in_container ? "yes" : "no");
  add("machine", "user", fmt::format("{}{}", system.user, system.is_root ? " (root)" : ""));
  add("machine", "/dev/shm", system.shm_bytes ? fmt::format("{} MiB", *system.shm_bytes >> 20) : "unknown");
  add("machine", "open files", system.open_files ? fmt::format("{}", *system.open_files) : "unlimited or unknown");
  add("machine", "processes", system.processes ? fmt::format("{}", *system.processes) : "unlimited or unknown");
  const Driver& driver = portrait.driver;
  add("driver", "driver",
      driver.folder.empty() ? "none (software cards need none)"
                            : fmt::format("{} in {}", OrNone(driver.version), driver.folder.string()));
  add("driver", "firmware", OrNone(driver.firmware));
  const auto usable =
      std::count_if(driver.cards.begin(), driver.cards.end(), [](const Node& node) { return node.usable; });
  add("driver", "card nodes",
      driver.cards.empty() ? "0" : fmt::format("{}, of which this user may open {}", driver.cards.size(), usable));
  add("driver", "libascend_hal.so", Libraries(portrait.toolkit.hal));
  add("driver", "libdcmi.so", Libraries(portrait.toolkit.dcmi));
  add("driver", "npu-smi", portrait.smi.present ? OrNone(portrait.smi.version) : "not found");
  const Toolkit& toolkit = portrait.toolkit;
  add("toolkit", "CANN", fmt::format("{}{}", OrNone(toolkit.version), toolkit.software ? " (software: AnyNPU)" : ""));
  add("toolkit", "home", OrNone(toolkit.home));
  add("toolkit", "libascendcl.so", Libraries(toolkit.ascendcl));
  add("toolkit", "SoC", OrNone(portrait.acl.soc));
  add("toolkit", "cards by AscendCL",
      portrait.acl.asked ? fmt::format("{} (code {})", portrait.acl.count, portrait.acl.code) : "not asked");
  add("toolkit", "visible cards",
      portrait.Has("ASCEND_RT_VISIBLE_DEVICES") ? "\"" + portrait.Env("ASCEND_RT_VISIBLE_DEVICES") + "\"" : "all");
  for (const Card& card : portrait.smi.cards) {
    add("cards", fmt::format("card {}", card.id),
        fmt::format("{}, {}, HBM {} of {} MB, {} processes", card.name, card.health, card.hbm_used_mb,
                    card.hbm_total_mb, card.processes.size()));
  }
  const Python& python = portrait.python;
  add("python", "python", fmt::format("{} {}", python.program, python.error.empty() ? python.version : python.error));
  add("python", "torch", Packages(python.torch));
  add("python", "torch_npu", Packages(python.torch_npu));
  for (const char* name : {"numpy", "accelerate", "transformers", "ray", "deepspeed", "vllm", "vllm_ascend"}) {
    const auto found = python.packages.find(name);
    if (found != python.packages.end()) add("python", name, found->second);
  }
  for (const auto& [name, value] : portrait.environment) {
    if (IsShown(name)) add("environment", name, IsSecret(name) ? "***" : value);
  }
  for (const int port : {60000, 16666}) {  // HCCL's first port, and a device's own
    const bool taken = std::any_of(portrait.listeners.begin(), portrait.listeners.end(),
                                   [&](const Listener& l) { return l.port == port; });
    if (!taken) add("ports", fmt::format("{}", port), "free");
  }
  for (const Listener& listener : portrait.listeners) {
    if (!listener.holder.empty()) add("ports", fmt::format("{}", listener.port), listener.holder);
  }
  return facts;
}

std::string AsText(const std::vector<Found>& found, const std::vector<Fact>& facts) {
  std::string out;
  for (const Found& f : found)
    out += fmt::format("{}: {}: {}\n  fix: {}\n", NameOf(f.check->severity), f.check->name, Clean(f.cause),
                       Clean(f.remedy));
  std::string_view section;
  for (const Fact& fact : facts) {
    if (fact.section != section) out += fmt::format("{}{}\n", out.empty() ? "" : "\n", fact.section);
    section = fact.section;
    out += fmt::format("  {:<24} {}\n", Clean(fact.name), Clean(fact.value));
  }
  return out;
}

std::string AsMarkdown(const std::vector<Found>& found, const std::vector<Fact>& facts) {
  const auto cell = [](std::string text) {
    text = Clean(std::move(text));
    for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, "\\");
    return text;
  };
  std::string out;
  if (!found.empty()) out += "| severity | check | cause | fix |\n|---|---|---|---|\n";
  for (const Found& f : found)
    out +=
        fmt::format("| {} | {} | {} | {} |\n", NameOf(f.check->severity), f.check->name, cell(f.cause), cell(f.remedy));
  if (!found.empty() && !facts.empty()) out += "\n";
  if (!facts.empty()) out += "| | | |\n|---|---|---|\n";
  for (const Fact& fact : facts)
    out += fmt::format("| {} | {} | {} |\n", fact.section, cell(fact.name), cell(fact.value));
  return out;
}

std::string AsJson(const std::vector<Found>& found, const std::vector<Fact>& facts) {
  json out = {{"findings", json::array()}, {"portrait", json::object()}};
  for (const Found& f : found) {
    out["findings"].push_back({{"check", f.check->name},
                               {"severity", NameOf(f.check->severity)},
                               {"layer", NameOf(f.check->layer)},
                               {"cause", f.cause},
                               {"fix", f.remedy},
                               {"harmless_fix", f.fix.kind != Fix::kNone}});
  }
  for (const Fact& fact : facts) out["portrait"][fact.section][fact.name] = fact.value;
  return Dump(out);
}

namespace {

// Any IPv4 address but loopback, wherever it stands. Four small numbers that begin below 10 are a version (9.1.0.1).
std::string WithoutAddresses(const std::string& text) {
  std::string out;
  const auto digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    int fields = 0;
    bool small = true;
    if (digit(at) &&
        (at == 0 || (!digit(at - 1) && text[at - 1] != '.' && !isalpha(static_cast<unsigned char>(text[at - 1]))))) {
      for (;;) {
        const size_t start = end;
        int value = 0;
        while (digit(end) && end - start < 4) value = value * 10 + (text[end++] - '0');
        if (end == start) break;
        ++fields;
        small = small && value < 256;
        if (end >= text.size() || text[end] != '.' || !digit(end + 1)) break;
        ++end;
      }
    }
    const std::string_view found = std::string_view(text).substr(at, end - at);
    const bool address = fields == 4 && small && !digit(end) && !found.starts_with("127.") && found.find('.') > 1;
    if (end == at) end = at + 1;
    if (address)
      out += "ADDRESS";
    else
      out.append(text, at, end - at);
    at = end;
  }
  return out;
}

// Names of one or two letters are replaced too, but only where they stand as a word: "vm" is not "vmlinuz".
void ReplaceWord(std::string& text, std::string_view word, std::string_view with) {
  const auto part = [&](size_t i) {
    return i < text.size() && (isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  for (size_t at = 0; !word.empty() && (at = text.find(word, at)) != text.npos;) {
    if ((at > 0 && part(at - 1)) || part(at + word.size())) {
      at += word.size();
    } else {
      text.replace(at, word.size(), with);
      at += with.size();
    }
  }
}

// Folders of other users: /home/NAME, /Users/NAME.
void HideHomes(std::string& text) {
  for (std::string_view above : {"/home/", "/Users/"}) {
    for (size_t at = 0; (at = text.find(above, at)) != text.npos;) {
      at += above.size();
      size_t end = at;
      while (end < text.size() && (isalnum(static_cast<unsigned char>(text[end])) || std::strchr("._-", text[end])))
        ++end;
      if (end > at) text.replace(at, end - at, "USER");
    }
  }
}

}  // namespace

std::string Redact(std::string text, const Portrait& portrait) {
  for (const std::string& host : {portrait.system.host, portrait.Env("HOSTNAME")}) {
    if (host.size() > 2)
      ReplaceAll(text, host, "HOST");
    else
      ReplaceWord(text, host, "HOST");
  }
  const std::string home = portrait.Env("HOME");
  if (home != "/") ReplaceAll(text, home, "~");
  HideHomes(text);
  if (portrait.system.user != "root" && !portrait.system.user.starts_with("uid "))
    ReplaceAll(text, portrait.system.user, "USER");
  for (const std::string& address : portrait.system.addresses) {
    if (address != "127.0.0.1" && address != "::1") ReplaceAll(text, address, "ADDRESS");
  }
  for (const char* name : {"MASTER_ADDR", "HCCL_IF_IP", "HOST_IP", "NODE_NAME"}) {
    const std::string value = portrait.Env(name);
    if (value != "127.0.0.1" && value != "localhost") ReplaceAll(text, value, "ADDRESS");
  }
  for (const auto& [name, value] : portrait.environment) {
    if (IsSecret(name)) ReplaceAll(text, value, "***");
  }
  return WithoutAddresses(text);
}

}  // namespace npu::doctor
