#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tools/doctor/observe/elf.h"
#include "tools/doctor/observe/portrait.h"
#include "tools/doctor/observe/run.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace fs = std::filesystem;
namespace {

constexpr int kLibraryLimitMs = 20'000, kSmiLimitMs = 10'000;
constexpr size_t kMostBoards = 16;  // cards whose board is asked for

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

template <class Number>
Number NumberAt(std::string_view text) {
  Number value = 0;
  text = Trim(text);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<Library> FindAll(const std::vector<fs::path>& folders, const char* name) {
  std::vector<Library> found;
  for (const fs::path& folder : folders) {
    const fs::path path = folder / name;
    std::error_code error;
    if (!Exists(path)) continue;
    const bool again =
        std::any_of(found.begin(), found.end(), [&](const Library& l) { return fs::equivalent(l.path, path, error); });
    if (!again) found.push_back({path, ElfMachine(path)});
  }
  return found;
}

std::string VersionOf(const fs::path& home) {
  for (const char* file :
       {"share/info/runtime/version.info", "runtime/version.info", "version.info", "compiler/version.info"}) {
    const std::string version = ValueOf(ReadText(home / file), "Version");
    if (!version.empty()) return version;
  }
  std::error_code error;
  for (fs::directory_iterator at(home, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with("ascend_") && name.ends_with("_install.info")) {
      const std::string version = ValueOf(ReadText(at->path()), "version");
      if (!version.empty()) return version;
    }
  }
  for (const char* machine : {"x86_64-linux", "aarch64-linux"}) {
    const std::string version = ValueOf(ReadText(home / machine / "ascend_toolkit_install.info"), "version");
    if (!version.empty()) return version;
  }
  return {};
}

// "| 0     910B4               | OK            | 89.9 ..." -> cells without the frame.
std::vector<std::string_view> Cells(std::string_view line) {
  std::vector<std::string_view> cells;
  if (!line.starts_with('|')) return cells;
  for (std::string_view cell : Split(line.substr(1), '|')) cells.push_back(Trim(cell));
  if (!cells.empty() && cells.back().empty()) cells.pop_back();
  return cells;
}

std::string Word(std::string_view text, size_t index) {
  for (;; --index) {
    text = Trim(text);
    const size_t end = std::min(text.find_first_of(" \t"), text.size());
    if (index == 0 || text.empty()) return std::string(text.substr(0, end));
    text.remove_prefix(end);
  }
}

bool IsNumber(const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }

}  // namespace

std::vector<fs::path> LoaderPath(const Portrait& portrait) {
  std::vector<fs::path> folders;
  const std::string list = portrait.Env("LD_LIBRARY_PATH");
  if (!list.empty()) {
    for (std::string_view folder : Split(list, ':')) folders.emplace_back(folder.empty() ? "." : folder);
  }
  for (const char* folder : {"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu",
                             "usr/lib/aarch64-linux-gnu", "lib64", "usr/lib64", "lib", "usr/lib"}) {
    folders.push_back(portrait.where.root / folder);
  }
  for (const char* file : {"ascend.conf", "ascend_driver_so.conf", "Ascend.conf"}) {
    const std::string text = ReadText(portrait.where.root / "etc/ld.so.conf.d" / file);
    for (std::string_view line : Split(text, '\n')) {
      if (!Trim(line).empty()) folders.emplace_back(Trim(line));
    }
  }
  return folders;
}

Driver ObserveDriver(const Where& where) {
  Driver driver;
  const std::string install = ReadText(where.root / "etc/ascend_install.info");
  std::string prefix = ValueOf(install, "Driver_Install_Path_Param");
  driver.status = ValueOf(install, "Driver_Install_Status");
  const fs::path folder = prefix.empty() ? where.root / "usr/local/Ascend/driver"
                                         : where.root / fs::path(prefix).relative_path() / "driver";
  if (Exists(folder / "version.info") || Exists(folder / "lib64")) {
    driver.folder = folder;
    const std::string info = ReadText(folder / "version.info");
    driver.version = ValueOf(info, "Version");
    driver.firmware_range = ValueOf(info, "compatible_version_fw");
    driver.firmware = ValueOf(ReadText(folder.parent_path() / "firmware" / "version.info"), "Version");
  }
  std::error_code error;
  for (fs::directory_iterator at(where.root / "dev", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with("davinci") && IsNumber(name.substr(7))) {
      driver.cards.push_back({at->path(), access(at->path().c_str(), R_OK | W_OK) == 0});
    }
  }
  std::sort(driver.cards.begin(), driver.cards.end(), [](const Node& a, const Node& b) {
    return a.path.size() != b.path.size() ? a.path.size() < b.path.size() : a.path < b.path;
  });
  if (!driver.cards.empty()) {
    for (const char* name : {"davinci_manager", "devmm_svm", "hisi_hdc"}) {
      if (!Exists(where.root / "dev" / name)) driver.missing_nodes.push_back(fmt::format("/dev/{}", name));
    }
  }
  return driver;
}

Toolkit ObserveToolkit(const Portrait& portrait) {
  Toolkit toolkit;
  toolkit.home = portrait.Env("ASCEND_HOME_PATH");
  toolkit.toolkit_home = portrait.Env("ASCEND_TOOLKIT_HOME");
  toolkit.opp = portrait.Env("ASCEND_OPP_PATH");
  for (const char* place : {"usr/local/Ascend/ascend-toolkit/latest", "usr/local/Ascend/cann",
                            "usr/local/Ascend/latest", "root/Ascend/ascend-toolkit/latest"}) {
    const fs::path folder = portrait.where.root / place;
    if (Exists(folder / "lib64") || Exists(folder / "runtime")) toolkit.found.push_back(folder);
  }
  const fs::path home = toolkit.home.empty() ? toolkit.toolkit_home : toolkit.home;
  if (!home.empty()) {
    toolkit.software = Exists(home / "anynpu") || Exists(home / "lib64" / ".." / "anynpu");
    toolkit.version = VersionOf(home);
  }
  const std::vector<fs::path> folders = LoaderPath(portrait);
  toolkit.ascendcl = FindAll(folders, "libascendcl.so");
  toolkit.hal = FindAll(folders, "libascend_hal.so");
  std::vector<fs::path> with_driver = folders;
  for (const char* folder : {"lib64/driver", "lib64", "lib64/common"})
    with_driver.push_back(portrait.driver.folder / folder);
  with_driver.push_back(portrait.where.root / "usr/local/dcmi");
  if (portrait.driver.folder.empty()) with_driver = folders;
  toolkit.dcmi = FindAll(with_driver, "libdcmi.so");
  return toolkit;
}

namespace {

Answered FromChild(const Ran& ran) {
  Answered answer;
  answer.asked = true;
  answer.timed_out = ran.timed_out;
  answer.signal = ran.timed_out ? 0 : ran.signal;
  const auto parsed = nlohmann::json::parse(ran.out, nullptr, false);
  if (!parsed.is_object()) return answer;
  answer.load_error = parsed.value("load", "");
  answer.code = parsed.value("code", 0);
  answer.count = parsed.value("count", 0);
  answer.soc = parsed.value("soc", "");
  answer.message = parsed.value("message", "");
  return answer;
}

std::string Dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Answered AskAscendCl(const fs::path& library) {
  return FromChild(RunInChild(
      [&] {
        void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
        if (!handle) return Dump({{"load", dlerror()}});
        const auto count = reinterpret_cast<int (*)(uint32_t*)>(dlsym(handle, "aclrtGetDeviceCount"));
        const auto soc = reinterpret_cast<const char* (*)()>(dlsym(handle, "aclrtGetSocName"));
        const auto message = reinterpret_cast<const char* (*)()>(dlsym(handle, "aclGetRecentErrMsg"));
        if (!count) return Dump({{"load", "aclrtGetDeviceCount is not in it"}});
        uint32_t cards = 0;
        nlohmann::json out;
        out["code"] = count(&cards);
        out["count"] = cards;
        if (out["code"] == 0 && cards > 0 && soc && soc()) out["soc"] = soc();
        const char* text = out["code"] != 0 && message ? message() : nullptr;
        if (text) out["message"] = text;
        return Dump(out);
      },
      kLibraryLimitMs));
}

Answered AskDcmi(const fs::path& library) {
  return FromChild(RunInChild(
      [&] {
        void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) return Dump({{"load", dlerror()}});
        const auto init = reinterpret_cast<int (*)()>(dlsym(handle, "dcmi_init"));
        if (!init) return Dump({{"load", "dcmi_init is not in it"}});
        return Dump({{"code", init()}});
      },
      kLibraryLimitMs));
}

Smi ObserveSmi() {
  const Ran ran = RunProgram({"npu-smi", "info"}, kSmiLimitMs);
  if (!ran.started) return {};
  Smi smi = ParseSmi(ran.out);
  smi.present = true;
  smi.timed_out = ran.timed_out;
  smi.code = ran.code;
  // A tool that hangs once is not asked again for each card.
  for (size_t i = 0; i < smi.cards.size() && i < kMostBoards && !smi.timed_out && smi.code == 0; ++i) {
    Card& card = smi.cards[i];
    const Ran board = RunProgram({"npu-smi", "info", "-t", "board", "-i", fmt::format("{}", card.id)}, kSmiLimitMs);
    for (std::string_view line : Split(board.out, '\n')) {
      const size_t colon = line.find(':');
      if (colon != line.npos && Trim(line.substr(0, colon)) == "Compatibility" && card.compatibility.empty())
        card.compatibility = Trim(line.substr(colon + 1));
    }
    if (board.timed_out) break;
  }
  return smi;
}

// The table of `npu-smi info`: two lines a chip, then the processes. Layouts differ between releases; what is not
// understood is left out.
Smi ParseSmi(const std::string& text) {
  Smi smi;
  bool processes = false;
  for (std::string_view line : Split(text, '\n')) {
    if (smi.first_line.empty()) smi.first_line = Trim(line);
    const size_t version = line.find("Version: ");
    if (version != line.npos && smi.version.empty()) smi.version = Word(line.substr(version + 9), 0);
    const auto cells = Cells(line);
    if (Contains(line, "Process id")) processes = true;
    if (cells.empty()) continue;
    const std::string first = Word(cells[0], 0), second = Word(cells[0], 1);
    if (!IsNumber(first)) continue;
    if (processes) {
      if (cells.size() < 3 || !IsNumber(Word(cells[1], 0))) continue;
      for (Card& card : smi.cards) {
        if (card.id == NumberAt<int>(first)) card.processes.push_back(fmt::format("{} (pid {})", cells[2], cells[1]));
      }
    } else if (cells.size() >= 3 && !second.empty() && !IsNumber(second)) {
      smi.cards.push_back({NumberAt<int>(first), second, std::string(cells[1]), 0, 0, {}, {}});
    } else if (cells.size() >= 3 && !smi.cards.empty()) {
      const size_t slash = cells[2].rfind('/');  // the last pair is HBM
      if (slash == cells[2].npos) continue;
      const std::string_view before = Trim(cells[2].substr(0, slash));
      const size_t space = before.find_last_of(' ');
      smi.cards.back().hbm_used_mb = NumberAt<uint64_t>(space == before.npos ? before : before.substr(space + 1));
      smi.cards.back().hbm_total_mb = NumberAt<uint64_t>(cells[2].substr(slash + 1));
    }
  }
  return smi;
}

}  // namespace npu::doctor
