#include "tools/smi/cli.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tools/smi/change.h"
#include "tools/smi/details.h"
#include "tools/smi/memory_json.h"
#include "tools/smi/query.h"

namespace npu::smi {
namespace {

constexpr int kNoArguments = -9001, kBadCommand = -9005, kUnsupported = -9255;

constexpr const char* kHelp =
    "Usage: npu-smi info                            all chips and their processes\n"
    "       npu-smi info -l                         cards\n"
    "       npu-smi info -m                         card, chip and logic ids\n"
    "       npu-smi info -t TYPE -i CARD [-c CHIP]  board, common, memory, usages, temp, power, volt, health, ecc, "
    "product,\n"
    "                                               proc-mem, flash, ecc-enable, pcie-err, device-share, sensors, "
    "sys-time,\n"
    "                                               info-vnpu, vnpu-mode, template-info, hccs, hccs-bw, op-timeout, "
    "...;\n"
    "                                               topo needs no card, phyid-remap needs -p PHYSICAL_ID\n"
    "       npu-smi info watch [-i CARD] [-c CHIP] [-d SECONDS] [-s COLUMNS]\n"
    "                                               columns: p power, t temperature, a AI core, i AI CPU, c control "
    "CPU,\n"
    "                                               m memory, b memory bandwidth, n NPU, u AI cube\n"
    "       npu-smi set -t TYPE -i CARD [-c CHIP] [-d VALUE]    reset, device-share, clear-ecc-info, ... (root)\n"
    "       npu-smi clear -t ecc-info -i CARD -c CHIP           (root)\n"
    "       npu-smi upgrade ...\n"
    "       npu-smi -q -d DEVICE --showmem          memory of a device as JSON\n"
    "       npu-smi -v | -h\n";

// The shell sees the low byte. Errors of DCMI appear one thousand lower than the library gives them.
int Exit(int code, const char* command = "info") {
  if (code <= -8001 && code >= -8255) {
    const int shown = code - 1000;
    if (shown == kUnsupported) return shown & 0xff;
    std::printf("Failed to execute npu-smi %s. ret is %d.\n", command, shown);
    return shown & 0xff;
  }
  return code & 0xff;
}

int BadCommand() {
  std::printf("Command or option is not found.\n%s", kHelp);
  return Exit(kBadCommand);
}

// Columns of watch, as letters of -s, in the order in which they are printed.
constexpr std::string_view kAllColumns = "ptaicmbnu";

struct Arguments {
  bool list = false, map = false, watch = false;
  int interval_s = 1;
  std::string columns = std::string(kAllColumns);
  Question question;
};

bool Number(const char* text, std::optional<int>& value) {
  int parsed = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, parsed);
  if (error != std::errc() || stop != end || parsed < 0) return false;
  value = parsed;
  return true;
}

bool Parse(int argc, char** argv, Arguments& a) {
  for (int i = 2; i < argc; ++i) {
    const std::string option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (option == "-l") {
      a.list = true;
    } else if (option == "-m") {
      a.map = true;
    } else if (option == "watch" && i == 2) {
      a.watch = true;
    } else if (!value) {
      return false;
    } else if (option == "-t") {
      a.question.type = value, ++i;
    } else if (option == "-i") {
      if (!Number(value, a.question.card)) return false;
      ++i;
    } else if (option == "-c") {
      if (!Number(value, a.question.chip)) return false;
      ++i;
    } else if (option == "-d") {
      std::optional<int> seconds;
      if (!Number(value, seconds) || *seconds < 1 || *seconds > 100) return false;
      a.interval_s = *seconds, ++i;
    } else if (option == "-p") {
      if (!Number(value, a.question.phy)) return false;
      ++i;
    } else if (option == "-s" && a.watch) {
      a.columns = value, ++i;
      if (a.columns.empty() || a.columns.find_first_not_of(kAllColumns) != std::string::npos) return false;
    } else {
      return false;
    }
  }
  return true;
}

std::string Cell(const std::string& text) { return fmt::format("{:<12}", text); }
template <class T>
std::string Cell(const std::optional<T>& value) {
  return Cell(value ? fmt::format("{}", *value) : std::string("NA"));
}

const char* ColumnTitle(char column) {
  switch (column) {
    case 'p':
      return "Pwr(W)";
    case 't':
      return "Temp(C)";
    case 'a':
      return "AI Core(%)";
    case 'i':
      return "AI Cpu(%)";
    case 'c':
      return "Ctrl Cpu(%)";
    case 'm':
      return "Memory(%)";
    case 'b':
      return "Memory BW(%)";
    case 'n':
      return "NPU Util(%)";
    default:
      return "AI Cube(%)";
  }
}

std::string ColumnValue(const Dcmi& dcmi, const Chip& chip, char column) {
  enum { kAiCpu = 3, kControlCpu = 4, kHbmBandwidth = 10, kNpu = 13, kCube = 14 };
  const ChipId id{chip.card, chip.chip};
  std::optional<double> watts;
  std::optional<uint64_t> memory;
  switch (column) {
    case 'p':
      if (chip.power_dw) watts = *chip.power_dw / 10.0;
      return Cell(watts);
    case 't':
      return Cell(chip.temperature_c);
    case 'a':
      return Cell(chip.aicore_percent);
    case 'i':
      return Cell(Utilization(dcmi, id, kAiCpu));
    case 'c':
      return Cell(Utilization(dcmi, id, kControlCpu));
    case 'm':
      if (chip.hbm_used_mb && chip.hbm_total_mb.value_or(0)) memory = *chip.hbm_used_mb * 100 / *chip.hbm_total_mb;
      return Cell(memory);
    case 'b':
      return Cell(Utilization(dcmi, id, kHbmBandwidth));
    case 'n':
      return Cell(Utilization(dcmi, id, kNpu));
    default:
      return Cell(Utilization(dcmi, id, kCube));
  }
}

// One line a chip and interval until the process is ended.
int Watch(const Dcmi& dcmi, const Arguments& a) {
  std::string header = Cell("NpuID(Idx)") + Cell("ChipId(Idx)");
  for (const char column : kAllColumns) {
    if (a.columns.find(column) != std::string::npos) header += Cell(ColumnTitle(column));
  }
  bool first = true;
  for (;;) {
    std::vector<ChipId> all, chips;
    if (int code = ListChips(dcmi, all)) return code;
    for (const ChipId& id : all) {
      if ((!a.question.card || *a.question.card == id.card) && (!a.question.chip || *a.question.chip == id.chip))
        chips.push_back(id);
    }
    if (chips.empty()) return kInvalid;
    if (first) std::puts(header.c_str());
    first = false;
    for (const ChipId& id : chips) {
      const Chip chip = ReadChip(dcmi, id);
      std::string row = Cell(std::to_string(id.card)) + Cell(std::to_string(id.chip));
      for (const char column : kAllColumns) {
        if (a.columns.find(column) != std::string::npos) row += ColumnValue(dcmi, chip, column);
      }
      std::puts(row.c_str());
    }
    if (std::fflush(stdout) != 0) return 1;  // nobody reads any more
    std::this_thread::sleep_for(std::chrono::seconds(a.interval_s));
  }
}

// Loads the library; its code, told, when that fails.
int Open(Dcmi& dcmi) {
  const int code = dcmi.Open();
  if (code != 0) std::printf("dcmi module initialize failed. ret is %d\n", code);
  return code;
}

// Below the box, on hosts where an installation of the driver has begun and not ended.
std::string InstallWarning() {
  std::ifstream info("/etc/ascend_install.info");
  if (!info || std::filesystem::exists("/.dockerenv")) return "";
  for (std::string line; std::getline(info, line);) {
    if (line == "Driver_Install_Status=complete") return "";
  }
  return "WARNING: the installation of the driver is not complete.\n";
}

int Info(const Arguments& a) {
  Dcmi dcmi;
  if (int code = Open(dcmi)) return code & 0xff;
  std::string out;
  int code = 0;
  if (a.watch) {
    code = Watch(dcmi, a);
  } else if (a.list) {
    code = ListCards(dcmi, out);
  } else if (a.map) {
    code = MapChips(dcmi, out);
  } else if (!a.question.type.empty()) {
    code = Answer(dcmi, a.question, out);
    if (code == kUnknownType) return BadCommand();
    if (code == kNotSupported) std::printf("This device does not support querying %s.\n", a.question.type.c_str());
  } else {
    Snapshot snapshot;
    code = ReadSnapshot(dcmi, snapshot);
    if (code == 0) out = RenderInfo(snapshot) + InstallWarning();
  }
  if (code == kNoDevice) std::puts("There is no NPU card on this server.");
  if (code == 0) std::fputs(out.c_str(), stdout);
  return code == 0 ? 0 : Exit(code);
}

int Query(int argc, char** argv) {
  std::optional<int> device;
  bool memory = false;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "-d") == 0 && i + 1 < argc) {
      if (!Number(argv[++i], device)) return BadCommand();
    } else if (std::strcmp(argv[i], "--showmem") == 0) {
      memory = true;
    } else {
      return BadCommand();
    }
  }
  if (!device || !memory) return BadCommand();
  Dcmi dcmi;
  if (int code = Open(dcmi)) return code & 0xff;
  std::string out;
  if (int code = MemoryJson(dcmi, *device, out)) return Exit(code, "-q");
  std::fputs(out.c_str(), stdout);
  return 0;
}

int Changes(const std::string& command, int argc, char** argv) {
  Dcmi dcmi;
  const std::vector<std::string> words(argv + 2, argv + argc);
  if (command != "upgrade") {
    if (int code = Open(dcmi)) return code & 0xff;
  }
  const int code = command == "set" ? Set(dcmi, words) : command == "clear" ? Clear(dcmi, words) : Upgrade(words);
  if (code == kBadCommand) return BadCommand();
  return code == 0 ? 0 : Exit(code, command.c_str());
}

int Version() {
  Dcmi dcmi;
  const int code = dcmi.Open();
  std::printf("npu-smi version: %s\n", code == 0 ? DriverVersion(dcmi).c_str() : "NA");
  return 0;
}

}  // namespace

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs(kHelp, stdout);
    return Exit(kNoArguments);
  }
  const std::string command = argv[1];
  if (command == "-h" || command == "--help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (command == "-v") return Version();
  if (command == "-q") return Query(argc, argv);
  if (command == "set" || command == "clear" || command == "upgrade") return Changes(command, argc, argv);
  Arguments arguments;
  if (command != "info" || !Parse(argc, argv, arguments)) return BadCommand();
  return Info(arguments);
}

}  // namespace npu::smi
