#include "tools/smi/change.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>

namespace npu::smi {
namespace {

constexpr int kBadCommand = -9005, kNotPermitted = -8002;

struct Change {
  std::string type;
  ChipId id;
  bool card_given = false, chip_given = false;
  int value = -1;
};

bool Number(const std::string& text, int* value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end && *value >= 0;
}

bool Read(const std::vector<std::string>& words, Change* change) {
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string& option = words[i];
    const std::string& value = words[i + 1];
    if (option == "-t") {
      change->type = value;
    } else if (option == "-i") {
      if (!Number(value, &change->id.card)) return false;
      change->card_given = true;
    } else if (option == "-c") {
      if (!Number(value, &change->id.chip)) return false;
      change->chip_given = true;
    } else if (option == "-d" || option == "-m" || option == "-s" || option == "-f") {
      if (!Number(value, &change->value) && option == "-d") return false;
    } else {
      return false;
    }
  }
  return words.size() % 2 == 0 && !change->type.empty();
}

int Reset(const Dcmi& dcmi, const Change& c) {
  return NPU_DCMI(dcmi, dcmi_set_device_reset, c.id.card, c.id.chip,
                  static_cast<dcmi_reset_channel>(c.value == 0 ? 0 : 1));
}
int Share(const Dcmi& dcmi, const Change& c) {
  if (c.value != 0 && c.value != 1) return kInvalid;
  return NPU_DCMI(dcmi, dcmi_set_device_share_enable, c.id.card, c.id.chip, c.value);
}
int ClearEcc(const Dcmi& dcmi, const Change& c) {
  return NPU_DCMI(dcmi, dcmi_set_device_clear_ecc_statistics_info, c.id.card, c.id.chip);
}

using Changer = int (*)(const Dcmi&, const Change&);
const std::map<std::string, Changer>& Changers() {
  static const std::map<std::string, Changer> kChangers = {
      {"reset", Reset}, {"device-share", Share}, {"clear-ecc-info", ClearEcc}};
  return kChangers;
}

// Accepted by the product; a software card has nothing behind them.
constexpr std::array kNothingBehind = {
    "device-share-cfg-recover", "revocate", "vnpu-mode", "create-vnpu", "destroy-vnpu", "reset-vnpu",
    "vnpu-cfg-recover", "tls-cert", "tls-cert-period", "key-manage", "sys-log-dump", "sys-log-enable",
    "clear-syslog-cfg", "custom-op-secverify-enable", "custom-op-secverify-mode", "custom-op-secverify-cert",
    "op-timeout-cfg",
    // Of other products.
    "ecc-enable", "p2p-mem-cfg", "nve-level", "aicpu-config", "ip", "mac-addr", "cpu-num-cfg", "power-state",
    "boot-select", "pwm-mode", "pwm-duty-ratio", "work-mode", "ssh-enable", "license", "cpu-freq-up", "power-limit",
    "gateway", "p2p-enable", "collect-log", "vrd"};

bool Has(const auto& list, const std::string& type) { return std::find(list.begin(), list.end(), type) != list.end(); }

int NeedRoot() {
  if (geteuid() == 0) return 0;
  std::puts("Operation not permitted: root is needed.");
  return kNotPermitted;
}

int Apply(const Dcmi& dcmi, const Change& change, Changer changer) {
  if (!change.card_given) return kInvalid;
  const int code = changer(dcmi, change);
  if (code == kNotSupported) std::printf("This device does not support setting %s.\n", change.type.c_str());
  if (code == 0) {
    fmt::print("\t{:<30} : {}\n\t{:<30} : {}\n", "Status", "OK", "Message",
               fmt::format("{} of NPU {} chip {} succeeded", change.type, change.id.card, change.id.chip));
  }
  return code;
}

}  // namespace

int Set(const Dcmi& dcmi, const std::vector<std::string>& words) {
  Change change;
  if (!Read(words, &change)) return kBadCommand;
  const auto changer = Changers().find(change.type);
  if (changer == Changers().end() && !Has(kNothingBehind, change.type)) return kBadCommand;
  if (int code = NeedRoot()) return code;
  if (changer != Changers().end()) return Apply(dcmi, change, changer->second);
  std::printf("This device does not support setting %s.\n", change.type.c_str());
  return kNotSupported;
}

int Clear(const Dcmi& dcmi, const std::vector<std::string>& words) {
  Change change;
  if (!Read(words, &change)) return kBadCommand;
  if (!Has(std::array{"ecc-info", "tls-cert-period", "vrd"}, change.type)) return kBadCommand;
  if (int code = NeedRoot()) return code;
  if (change.type == "ecc-info") return Apply(dcmi, change, ClearEcc);
  std::printf("This device does not support clearing %s.\n", change.type.c_str());
  return kNotSupported;
}

int Upgrade(const std::vector<std::string>& words) {
  if (words.empty()) return kBadCommand;
  if (int code = NeedRoot()) return code;
  std::puts("This device does not support upgrading: a software card has no firmware.");
  return kNotSupported;
}

}  // namespace npu::smi
