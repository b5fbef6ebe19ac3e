// Variables, ports and threads.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "tools/doctor/checks/check.h"
#include "tools/doctor/data.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace {

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

constexpr std::string_view kVisible = "ASCEND_RT_VISIBLE_DEVICES";

// The numbers of the visible list; nothing when it is no list of numbers.
std::optional<std::vector<int64_t>> VisibleList(const Portrait& portrait) {
  std::vector<int64_t> numbers;
  const std::string list = portrait.Env(std::string(kVisible));
  for (std::string_view part : Split(list, ',')) {
    const auto number = Number(part);
    if (!number || *number < 0) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::string Ascending(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return fmt::format("{}", fmt::join(numbers, ","));
}

bool IsPorts(std::string_view text) {
  if (text == "auto") return true;
  for (std::string_view part : Split(text, ',')) {
    part = Trim(part);
    const size_t dash = part.find('-');
    const auto low = Number(part.substr(0, dash)), high = dash == part.npos ? low : Number(part.substr(dash + 1));
    if (!low || !high || *low < 1 || *high > 65535 || *low > *high) return false;
  }
  return true;
}

bool IsAddress(const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, text.c_str(), bytes) == 1 || inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

// HCCL_SOCKET_IFNAME: prefixes by commas; a leading ^ excludes, = takes the name exactly.
bool MatchesInterface(std::string_view wanted, const std::vector<std::string>& interfaces) {
  if (wanted.starts_with('^')) return true;
  const bool exact = wanted.starts_with('=');
  if (exact) wanted.remove_prefix(1);
  for (std::string_view name : Split(wanted, ',')) {
    for (const std::string& has : interfaces) {
      if (exact ? has == name : has.starts_with(name)) return true;
    }
  }
  return false;
}

const Listener* ListenerAt(const Portrait& portrait, int64_t port) {
  for (const Listener& listener : portrait.listeners) {
    if (listener.port == port) return &listener;
  }
  return nullptr;
}

}  // namespace

NPU_CHECK(VisibleEmpty, "visible-empty", kError, kEnvironment, "the visible list is not empty") {
  if (!portrait.Has(std::string(kVisible))) return;
  const std::string list = portrait.Env(std::string(kVisible));
  if (!Trim(list).empty() && list != "NoDevFiles") return;
  report.Add(fmt::format("{} is {}: no card is visible. Ray sets it so for tasks and actors that ask for no NPU",
                         kVisible, list.empty() ? "empty" : "\"" + list + "\""),
             "in Ray ask for cards: @ray.remote(resources={\"NPU\": 1}); else: unset ASCEND_RT_VISIBLE_DEVICES",
             {Fix::kUnset, std::string(kVisible), ""});
}

NPU_CHECK(VisibleMalformed, "visible-malformed", kError, kEnvironment,
          "the visible list holds numbers and commas only") {
  const std::string list = portrait.Env(std::string(kVisible));
  if (Trim(list).empty() || list == "NoDevFiles" || VisibleList(portrait)) return;
  report.Add(fmt::format("{}=\"{}\" is no list of numbers: reading stops at the first other character (a blank "
                         "counts), the cards behind it are lost",
                         kVisible, list),
             "write it as 0,1,2 without blanks");
}

NPU_CHECK(VisibleUnordered, "visible-unordered", kError, kEnvironment,
          "the visible list is ascending, without repetitions") {
  const auto numbers = VisibleList(portrait);
  if (!portrait.Has(std::string(kVisible)) || !numbers) return;
  if (std::adjacent_find(numbers->begin(), numbers->end(), [](int64_t a, int64_t b) { return a >= b; }) ==
      numbers->end())
    return;
  const std::string fixed = Ascending(*numbers);
  report.Add(fmt::format(
                 "{}={} is not ascending: AscendCL answers 207004 and torch.npu.is_available() is False without a word",
                 kVisible, portrait.Env(std::string(kVisible))),
             fmt::format("export {}={}", kVisible, fixed), {Fix::kSet, std::string(kVisible), fixed});
}

NPU_CHECK(VisibleBeyond, "visible-beyond-cards", kError, kEnvironment, "the visible list names cards that exist") {
  const auto numbers = VisibleList(portrait);
  const auto cards = portrait.CardCount();
  if (!portrait.Has(std::string(kVisible)) || !numbers || !cards) return;
  for (int64_t number : *numbers) {
    if (number < *cards) continue;
    return report.Add(fmt::format("{}={} names card {}, but this machine has {} (0 to {}): the list is cut there",
                                  kVisible, portrait.Env(std::string(kVisible)), number, *cards, *cards - 1),
                      "npu-smi info -l lists the cards; write physical numbers of this host");
  }
}

NPU_CHECK(CudaVisible, "cuda-visible-only", kWarning, kEnvironment, "cards are not chosen by CUDA_VISIBLE_DEVICES") {
  if (!portrait.Has("CUDA_VISIBLE_DEVICES") || portrait.Has(std::string(kVisible))) return;
  report.Add(fmt::format("CUDA_VISIBLE_DEVICES={} has no effect on NPUs: all cards are visible",
                         portrait.Env("CUDA_VISIBLE_DEVICES")),
             fmt::format("export {}={}", kVisible, portrait.Env("CUDA_VISIBLE_DEVICES")));
}

NPU_CHECK(LocalRank, "local-rank-beyond-cards", kError, kEnvironment, "LOCAL_RANK is the number of a visible card") {
  const auto rank = Number(portrait.Env("LOCAL_RANK"));
  const auto numbers = VisibleList(portrait);
  std::optional<int64_t> cards;
  if (const auto count = portrait.CardCount()) cards = *count;
  if (portrait.Has(std::string(kVisible)) && numbers) cards = static_cast<int64_t>(numbers->size());
  if (!rank || !cards || *rank < *cards || *cards == 0) return;
  report.Add(fmt::format("LOCAL_RANK is {} and {} cards are visible to this process: set_device answers 107001", *rank,
                         *cards),
             fmt::format("torchrun --nproc_per_node={}, or show it more cards by {}", *cards, kVisible));
}

NPU_CHECK(Ranks, "rank-beyond-world", kError, kEnvironment, "RANK is below WORLD_SIZE") {
  const auto rank = Number(portrait.Env("RANK")), world = Number(portrait.Env("WORLD_SIZE"));
  if (portrait.Has("RANK") && portrait.Has("WORLD_SIZE") && (!rank || !world || *rank < 0 || *rank >= *world)) {
    report.Add(fmt::format("RANK={} and WORLD_SIZE={}: ranks run from 0 to WORLD_SIZE-1; the others wait for a rank "
                           "that never comes (EI0015)",
                           portrait.Env("RANK"), portrait.Env("WORLD_SIZE")),
               "let torchrun set both, or count from 0");
  }
}

NPU_CHECK(Settings, "setting-out-of-range", kError, kEnvironment,
          "variables of HCCL, CANN and torch_npu have values in their range") {
  const Table settings(data::settings);
  for (const Row& row : settings.rows()) {
    const std::string name(row["name"]);
    if (!portrait.Has(name)) continue;
    const std::string value = portrait.Env(name);
    const std::string_view kind = row["kind"];
    std::string wanted;
    if (kind == "int") {
      const auto number = Number(value);
      const auto low = Number(row["lowest"]), high = Number(row["highest"]);
      if (!number || (low && *number < *low) || (high && *number > *high))
        wanted = fmt::format("a number from {} to {}", row["lowest"], row["highest"]);
    } else if (kind == "enum") {
      const auto values = Split(row["values"], ',');
      if (std::find(values.begin(), values.end(), value) == values.end())
        wanted = fmt::format("one of {}", row["values"]);
    } else if (kind == "ports" && !IsPorts(value)) {
      wanted = "auto, a port, or ports and ranges by commas such as 60000-60015";
    } else if (kind == "address" && !IsAddress(value)) {
      wanted = "an IPv4 or IPv6 address";
    }
    if (wanted.empty()) continue;
    report.Add(fmt::format("{}={} is out of range; it takes {} ({})", name, value, wanted, row["meaning"]),
               fmt::format("unset {}", name), {Fix::kUnset, name, ""});
  }
}

NPU_CHECK(Interface, "interface-missing", kError, kNetwork,
          "HCCL_SOCKET_IFNAME and HCCL_IF_IP name an interface and an address of this host") {
  const std::string name = portrait.Env("HCCL_SOCKET_IFNAME"), address = portrait.Env("HCCL_IF_IP");
  if (!name.empty() && !MatchesInterface(name, portrait.system.interfaces)) {
    report.Add(fmt::format("HCCL_SOCKET_IFNAME={} fits none of this host's interfaces ({})", name,
                           fmt::join(portrait.system.interfaces, ", ")),
               "unset HCCL_SOCKET_IFNAME, or name the one that reaches the other hosts: ip -brief addr",
               {Fix::kUnset, "HCCL_SOCKET_IFNAME", ""});
  }
  const auto& addresses = portrait.system.addresses;
  if (!address.empty() && IsAddress(address) &&
      std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
    report.Add(fmt::format("HCCL_IF_IP={} is no address of this host", address),
               "unset HCCL_IF_IP, or take one of: ip -brief addr", {Fix::kUnset, "HCCL_IF_IP", ""});
  }
}

NPU_CHECK(Ports, "port-taken", kWarning, kNetwork, "the ports that HCCL listens on are free") {
  const int64_t base = Number(portrait.Env("HCCL_IF_BASE_PORT")).value_or(60000);
  if (!portrait.Has("HCCL_HOST_SOCKET_PORT_RANGE")) {
    for (int64_t port = base; port < base + 16; ++port) {
      const Listener* listener = ListenerAt(portrait, port);
      if (!listener) continue;
      report.Add(fmt::format("port {} is taken by {}; HCCL listens on {} to {} (EI0019)", port,
                             listener->holder.empty() ? "another process" : listener->holder, base, base + 15),
                 fmt::format("end it, or export HCCL_IF_BASE_PORT={}", base == 61000 ? 62000 : 61000));
      break;
    }
  }
  if (portrait.Has("HCCL_NPU_SOCKET_PORT_RANGE")) return;
  if (const Listener* listener = ListenerAt(portrait, 16666)) {
    report.Add(fmt::format("port 16666 is taken by {}; the cards' processes listen on it (EI0020, hcclRet 7)",
                           listener->holder),
               "end it, or export HCCL_NPU_SOCKET_PORT_RANGE=auto", {Fix::kSet, "HCCL_NPU_SOCKET_PORT_RANGE", "auto"});
  }
}

NPU_CHECK(Master, "rendezvous-incomplete", kError, kNetwork,
          "MASTER_ADDR and MASTER_PORT are both set and the port is free") {
  const bool address = portrait.Has("MASTER_ADDR"), port = portrait.Has("MASTER_PORT");
  if (address != port) {
    report.Add(fmt::format("{} is set and {} is not: init_process_group(\"env://\") needs both",
                           address ? "MASTER_ADDR" : "MASTER_PORT", address ? "MASTER_PORT" : "MASTER_ADDR"),
               address ? "export MASTER_PORT=29500" : "export MASTER_ADDR=127.0.0.1");
  }
  const auto number = Number(portrait.Env("MASTER_PORT"));
  if (port && (!number || *number < 1 || *number > 65535))
    report.Add(fmt::format("MASTER_PORT={} is no port", portrait.Env("MASTER_PORT")), "export MASTER_PORT=29500");
  // Only rank 0 listens; a port that is taken is the rendezvous itself for the others.
  const Listener* listener = number ? ListenerAt(portrait, *number) : nullptr;
  if (listener && portrait.Env("RANK") == "0")
    report.Add(fmt::format("MASTER_PORT {} is taken by {}: rank 0 cannot listen on it", *number, listener->holder),
               fmt::format("export MASTER_PORT={}", *number + 1));
}

NPU_CHECK(RankTable, "rank-table-missing", kError, kNetwork, "RANK_TABLE_FILE can be read") {
  const std::string file = portrait.Env("RANK_TABLE_FILE");
  if (file.empty() || access(file.c_str(), R_OK) == 0) return;
  report.Add(fmt::format("RANK_TABLE_FILE is {}, which cannot be read", file),
             "unset RANK_TABLE_FILE: torchrun and HCCL negotiate by themselves", {Fix::kUnset, "RANK_TABLE_FILE", ""});
}

NPU_CHECK(AllocConf, "alloc-conf", kError, kEnvironment, "the allocator's options can be read and go together") {
  const bool both = portrait.Has("PYTORCH_NPU_ALLOC_CONF") && portrait.Has("PYTORCH_ALLOC_CONF");
  if (both)
    report.Add("PYTORCH_NPU_ALLOC_CONF and PYTORCH_ALLOC_CONF are both set; torch_npu refuses that",
               "unset PYTORCH_ALLOC_CONF", {Fix::kUnset, "PYTORCH_ALLOC_CONF", ""});
  const std::string conf = portrait.Env("PYTORCH_NPU_ALLOC_CONF") + "," + portrait.Env("PYTORCH_ALLOC_CONF");
  for (std::string_view option : Split(conf, ',')) {
    option = Trim(option);
    const size_t colon = option.find(':');
    const std::string_view name = Trim(option.substr(0, colon));
    const std::string value(colon == option.npos ? std::string_view() : Trim(option.substr(colon + 1)));
    // A list in brackets holds commas of its own; torch reads it, not we.
    if (option.empty() || Contains(conf, "[")) continue;
    std::string wrong;
    if (value.empty()) wrong = "is no NAME:VALUE";
    if (name == "max_split_size_mb" && Number(value).value_or(0) < 20)
      wrong = "is refused: it takes a number of 20 or more";
    if (name == "expandable_segments" && value != "True" && value != "False")
      wrong = "is refused: it takes True or False";
    if (!wrong.empty())
      report.Add(fmt::format("the allocator's option \"{}\" {}; torch_npu ends at its first call", option, wrong),
                 "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, or unset it");
  }
  if (!Contains(Lower(conf), "expandable_segments:true")) return;
  for (std::string_view other : {"max_split_size_mb", "garbage_collection_threshold"}) {
    if (Contains(conf, other))
      report.Add(fmt::format("expandable_segments:True and {} exclude each other", other),
                 "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True");
  }
}

NPU_CHECK(InfNan, "saturation-refused", kError, kEnvironment,
          "INF_NAN_MODE_ENABLE=0 is not set on a chip that refuses it") {
  if (portrait.Env("INF_NAN_MODE_ENABLE") != "0" || portrait.Env("INF_NAN_MODE_FORCE_DISABLE") == "1") return;
  const std::string soc = !portrait.acl.soc.empty()    ? portrait.acl.soc
                          : portrait.smi.cards.empty() ? std::string()
                                                       : portrait.smi.cards[0].name;
  if (!Contains(soc, "910B") && !Contains(soc, "910_93") && !Contains(soc, "950")) return;
  report.Add(fmt::format("INF_NAN_MODE_ENABLE=0 is refused on {}: saturated results are not supported there", soc),
             "unset INF_NAN_MODE_ENABLE", {Fix::kUnset, "INF_NAN_MODE_ENABLE", ""});
}

NPU_CHECK(LogFolder, "log-folder", kWarning, kEnvironment, "the folder for CANN's logs exists and may be written") {
  const std::string folder = portrait.Env("ASCEND_PROCESS_LOG_PATH");
  if (folder.empty() || access(folder.c_str(), W_OK) == 0) return;
  const bool exists = access(folder.c_str(), F_OK) == 0;
  report.Add(fmt::format("ASCEND_PROCESS_LOG_PATH is {}, which {}: logs are lost", folder,
                         exists ? "may not be written" : "does not exist"),
             exists ? "choose a folder of your own" : fmt::format("mkdir -p {}", folder),
             exists ? Fix{} : Fix{Fix::kMakeFolder, folder, ""});
}

NPU_CHECK(Blocking, "launch-blocking", kWarning, kTuning, "operators are not waited for one by one") {
  if (portrait.Env("ASCEND_LAUNCH_BLOCKING") != "1") return;
  report.Add("ASCEND_LAUNCH_BLOCKING=1 waits for each operator: good for finding a fault, slow for work",
             "unset ASCEND_LAUNCH_BLOCKING", {Fix::kUnset, "ASCEND_LAUNCH_BLOCKING", ""});
}

NPU_CHECK(Verbose, "log-verbose", kWarning, kTuning, "neither debug logs nor operator timing are left on") {
  const std::string level = portrait.Env("ASCEND_GLOBAL_LOG_LEVEL");
  if (level == "0" || level == "1")
    report.Add(
        fmt::format("ASCEND_GLOBAL_LOG_LEVEL={} writes a line for nearly every call: slow, and disks fill up", level),
        "export ASCEND_GLOBAL_LOG_LEVEL=3", {Fix::kSet, "ASCEND_GLOBAL_LOG_LEVEL", "3"});
  if (portrait.Env("PROFILING_MODE") == "true")
    report.Add("PROFILING_MODE=true measures every operator; it was probably left on after a search",
               "unset PROFILING_MODE", {Fix::kUnset, "PROFILING_MODE", ""});
}

NPU_CHECK(Omp, "omp-threads", kWarning, kTuning, "the ranks' CPU threads fit the processors") {
  const auto threads = Number(portrait.Env("OMP_NUM_THREADS"));
  const int64_t ranks = std::max<int64_t>(1, Number(portrait.Env("LOCAL_WORLD_SIZE")).value_or(1));
  if (!threads || *threads < 1 || *threads * ranks <= portrait.system.cores) return;
  const int64_t fitting = std::max<int64_t>(1, portrait.system.cores / ranks);
  if (*threads == fitting) return;
  report.Add(fmt::format("OMP_NUM_THREADS={} with {} rank{} on {} processor{}: threads wait for each other", *threads,
                         ranks, ranks == 1 ? "" : "s", portrait.system.cores, portrait.system.cores == 1 ? "" : "s"),
             fmt::format("export OMP_NUM_THREADS={}", fitting),
             {Fix::kSet, "OMP_NUM_THREADS", fmt::format("{}", fitting)});
}

}  // namespace npu::doctor
