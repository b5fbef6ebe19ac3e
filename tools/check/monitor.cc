// What monitors see: DCMI and npu-smi, compared with what AscendCL says and with what this process does.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "tools/check/check.h"

namespace npu::check {
namespace {

constexpr int kNotSupported = -8255, kOldNotSupported = -99998;
constexpr size_t kHeld = 256 << 20;
constexpr auto kPatience = std::chrono::seconds(5);

// The public layout of dcmi_get_device_hbm_info.
struct HbmInfo {
  unsigned long long memory_size;  // MB
  unsigned int frequency;
  unsigned long long memory_usage;  // MB
  int temperature;
  unsigned int bandwidth_use;
};

struct Chip {
  int card, device;
};

std::string Dcmi(int code, const char* function) {
  return code == 0 ? std::string() : fmt::format("{} answers {}", function, code);
}

std::string Output(const char* command, int* status) {
  std::string text;
  FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return {};
  char chunk[4096];
  for (size_t n; (n = std::fread(chunk, 1, sizeof chunk, pipe)) > 0;) text.append(chunk, n);
  *status = pclose(pipe);
  return text;
}

// HBM use of the chip in MB; negative when it is not told.
long long Used(const Client& client, const Chip& chip) {
  auto* ask = client.Call<int(int, int, HbmInfo*)>("dcmi_get_device_hbm_info");
  HbmInfo info{};
  return ask != nullptr && ask(chip.card, chip.device, &info) == 0 ? static_cast<long long>(info.memory_usage) : -1;
}

// 256 MiB on device 0: what the first visible chip reports must rise by that much.
std::string MemoryShows(const Client& client, const std::vector<Chip>& chips) {
  std::vector<long long> before;
  for (const Chip& chip : chips) before.push_back(Used(client, chip));
  void* data = nullptr;
  std::string why = client.Do("aclrtSetDevice", int32_t{0});
  if (why.empty()) why = client.Do("aclrtMalloc", &data, kHeld, 0);
  if (!why.empty()) return why;
  bool rose = false;
  for (const auto end = std::chrono::steady_clock::now() + kPatience;
       !rose && std::chrono::steady_clock::now() < end;) {
    for (size_t i = 0; i < chips.size(); ++i)
      rose = rose || (before[i] >= 0 && Used(client, chips[i]) >= before[i] + 200);
    if (!rose) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  client.Do("aclrtFree", data);
  return rose
             ? std::string()
             : fmt::format("256 MiB were allocated on device 0, and no chip's use rose within {} s", kPatience.count());
}

}  // namespace

void CheckMonitor(Sink& sink) {
  Client client;
  const auto tell = [&](const std::string& name, const std::string& why) {
    if (why.empty())
      sink.Passed(name);
    else
      sink.Failed(name, why);
  };
  std::string why = Begin(&client, /*operators=*/false);
  if (!why.empty()) return sink.Failed("aclInit", why);
  uint32_t count = 0;
  tell("aclrtGetDeviceCount", client.Do("aclrtGetDeviceCount", &count));
  why = client.Load("libdcmi.so",
                    {"/usr/local/Ascend/driver/lib64/driver", "/usr/local/Ascend/driver/lib64", "/usr/local/dcmi"});
  if (!why.empty()) return sink.Failed("libdcmi.so", why);
  auto* init = client.Call<int()>("dcmi_init");
  auto* list = client.Call<int(int*, int*, int)>("dcmi_get_card_list");
  auto* chips_of = client.Call<int(int, int*)>("dcmi_get_device_num_in_card");
  if (init == nullptr || list == nullptr || chips_of == nullptr)
    return sink.Failed("libdcmi.so", "it lacks dcmi_init, dcmi_get_card_list or dcmi_get_device_num_in_card");
  why = Dcmi(init(), "dcmi_init");
  tell("dcmi_init", why);
  if (!why.empty()) return;
  int cards = 0, ids[64] = {};
  tell("dcmi_get_card_list", Dcmi(list(&cards, ids, 64), "dcmi_get_card_list"));
  std::vector<Chip> chips;
  for (int i = 0; i < cards && i < 64; ++i) {
    int n = 0;
    if (const int code = chips_of(ids[i], &n); code != 0)
      tell("dcmi_get_device_num_in_card", Dcmi(code, "dcmi_get_device_num_in_card"));
    for (int device = 0; device < n; ++device) chips.push_back({ids[i], device});
  }
  // A visible list hides cards from AscendCL, not from monitors.
  tell("DCMI has all devices of AscendCL",
       chips.size() >= count ? std::string()
                             : fmt::format("DCMI lists {} chips, AscendCL {} devices", chips.size(), count));
  sink.Note(fmt::format("{} chips", chips.size()));
  for (const Chip& chip : chips) {
    const auto ask = [&](const char* function, auto* value) {
      const std::string name = fmt::format("card {} chip {}: {}", chip.card, chip.device, function);
      auto* call = client.Call<int(int, int, decltype(value))>(function);
      const int code = call != nullptr ? call(chip.card, chip.device, value) : kNotSupported;
      if (code == kNotSupported || code == kOldNotSupported)
        sink.LeftOut(name, "not offered here");
      else
        tell(name, Dcmi(code, function));
      return code == 0;
    };
    unsigned health = 0;
    int temperature = 0, power = 0;
    HbmInfo hbm{};
    if (ask("dcmi_get_device_health", &health) && health != 0)
      sink.Failed(
          fmt::format("card {} chip {}: healthy", chip.card, chip.device),
          fmt::format("health is {} (1 minor, 2 major, 3 critical); npu-smi info -t health tells more", health));
    if (ask("dcmi_get_device_temperature", &temperature) && (temperature < -40 || temperature > 130))
      sink.Failed(fmt::format("card {} chip {}: a possible temperature", chip.card, chip.device),
                  fmt::format("{} degrees", temperature));
    ask("dcmi_get_device_power_info", &power);
    if (ask("dcmi_get_device_hbm_info", &hbm) && hbm.memory_usage > hbm.memory_size)
      sink.Failed(fmt::format("card {} chip {}: memory", chip.card, chip.device),
                  fmt::format("{} of {} MB used", hbm.memory_usage, hbm.memory_size));
  }
  bool told = false;
  for (const Chip& chip : chips) told = told || Used(client, chip) >= 0;
  if (told)
    tell("memory of a program shows", MemoryShows(client, chips));
  else
    sink.LeftOut("memory of a program shows", "no chip tells the use of its HBM");
  int status = 0;
  const std::string smi = Output("npu-smi info 2>&1", &status);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    sink.Failed("npu-smi info", "npu-smi is not on PATH");
  else
    tell("npu-smi info", status == 0 && smi.find("npu-smi") != std::string::npos
                             ? std::string()
                             : "it ends with an error: " + smi.substr(0, 200));
  client.Do("aclFinalize");
}

}  // namespace npu::check
