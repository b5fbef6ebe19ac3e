#include "tools/smi/cli.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "tools/smi/details.h"
#include "tools/smi/query.h"

namespace npu::smi {
namespace {

constexpr int kNoArguments = -9001, kBadCommand = -9005, kUnsupported = -9255;

constexpr const char* kHelp =
    "Usage: npu-smi info                            all chips and their processes\n"
    "       npu-smi info -l                         cards\n"
    "       npu-smi info -m                         card, chip and logic ids\n"
    "       npu-smi info -t TYPE -i CARD [-c CHIP]  board, common, memory, usages, temp, power, volt, health, ecc,\n"
    "                                               product, proc-mem; topo needs no card\n"
    "       npu-smi info watch [-i CARD] [-d SECONDS]\n"
    "       npu-smi -v | -h\n";

// The shell sees the low byte. Errors of DCMI appear one thousand lower than the library gives them.
int Exit(int code) {
  if (code <= -8001 && code >= -8255) {
    const int shown = code - 1000;
    if (shown == kUnsupported) return shown & 0xff;
    std::printf("Failed to execute npu-smi info. ret is %d.\n", shown);
    return shown & 0xff;
  }
  return code & 0xff;
}

int BadCommand() {
  std::printf("Command or option is not found.\n%s", kHelp);
  return Exit(kBadCommand);
}

struct Arguments {
  bool list = false, map = false, watch = false;
  int interval_s = 1;
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
    } else {
      return false;
    }
  }
  return true;
}

// One line a chip and second until the process is ended.
[[noreturn]] void Watch(const Dcmi& dcmi, const Arguments& a) {
  std::string header;
  for (const char* column :
       {"NpuID(Idx)", "ChipId(Idx)", "Pwr(W)", "Temp(C)", "AI Core(%)", "Memory(%)", "NPU Util(%)"}) {
    header += fmt::format("{:<12}", column);
  }
  std::puts(header.c_str());
  for (;;) {
    std::vector<ChipId> chips;
    ListChips(dcmi, chips);
    for (const ChipId& id : chips) {
      if ((a.question.card && *a.question.card != id.card) || (a.question.chip && *a.question.chip != id.chip))
        continue;
      const Chip chip = ReadChip(dcmi, id);
      const auto cell = [](const auto& value) {
        return fmt::format("{:<12}", value ? fmt::format("{}", *value) : "NA");
      };
      std::optional<uint64_t> memory;
      if (chip.hbm_used_mb && chip.hbm_total_mb.value_or(0)) memory = *chip.hbm_used_mb * 100 / *chip.hbm_total_mb;
      std::optional<double> watts;
      if (chip.power_dw) watts = *chip.power_dw / 10.0;
      fmt::print("{:<12}{:<12}{}{}{}{}{}\n", id.card, id.chip, cell(watts), cell(chip.temperature_c),
                 cell(chip.aicore_percent), cell(memory), cell(Utilization(dcmi, id, 13)));
    }
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::seconds(a.interval_s));
  }
}

int Info(const Arguments& a) {
  Dcmi dcmi;
  if (int code = dcmi.Open()) {
    std::printf("dcmi module initialize failed. ret is %d\n", code);
    return code & 0xff;
  }
  if (a.watch) Watch(dcmi, a);
  std::string out;
  int code = 0;
  if (a.list) {
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
    if (code == 0) out = RenderInfo(snapshot);
  }
  if (code == kNoDevice) std::puts("There is no NPU card on this server.");
  if (code == 0) std::fputs(out.c_str(), stdout);
  return code == 0 ? 0 : Exit(code);
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
  Arguments arguments;
  if (command != "info" || !Parse(argc, argv, arguments)) return BadCommand();
  return Info(arguments);
}

}  // namespace npu::smi
