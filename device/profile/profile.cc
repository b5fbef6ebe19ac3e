#include "device/profile/profile.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace npu::device {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

// The second generation with split cores; its members differ in number of cores, clock, L2 and memory.
constexpr Profile Split(std::string_view soc, int cubes, int mhz, uint64_t l2_mb, uint64_t hbm_mb) {
  Profile p;
  p.soc = soc;
  p.chip = soc.substr(6);
  p.short_soc = "Ascend910B";
  p.hbm_mb = hbm_mb;
  p.system_hbm_mb = hbm_mb > 32768 ? 3424 : 2922;
  p.ai_cores = p.cube_cores = cubes;
  p.vector_cores = 2 * cubes;
  p.ai_cpus = 6;
  p.cube_mhz = mhz;
  p.hbm_mhz = 1600;
  p.npu_arch = 2201;
  p.aic_version = "AIC-C-220";
  p.l2_bytes = l2_mb * kMiB;
  p.l1_bytes = 512 * kKiB;
  p.ub_bytes = 192 * kKiB;
  p.l0a_bytes = p.l0b_bytes = 64 * kKiB;
  p.l0c_bytes = 128 * kKiB;
  p.bt_bytes = 1 * kKiB;
  p.max_streams = 2048;
  p.max_events = 65536;
  p.max_notifies = 8192;
  p.stream_depth = 2048;
  p.bf16 = true;
  p.idle_power_dw = 899;
  p.busy_power_dw = 3100;
  p.idle_temp_c = 39;
  p.busy_temp_c = 58;
  return p;
}

constexpr Profile TwoDies(std::string_view soc) {
  Profile p = Split(soc, 24, 1800, 192, 65536);
  p.short_soc = "Ascend910_93";
  p.dies_per_card = 2;
  p.idle_power_dw = 1680;
  return p;
}

constexpr Profile Inference310P() {
  Profile p = Split("Ascend310P3", 8, 1080, 16, 21534);
  p.short_soc = "Ascend310P";
  p.ddr = true;
  p.system_hbm_mb = 1074;
  p.cube_cores = 8;
  p.vector_cores = 7;
  p.ai_cpus = 7;
  p.hbm_mhz = 0;
  p.npu_arch = 2002;
  p.aic_version = "AIC-M-200";
  p.l1_bytes = 1024 * kKiB;
  p.ub_bytes = 256 * kKiB;
  p.l0c_bytes = 256 * kKiB;
  p.bt_bytes = 0;
  p.max_streams = 1024;
  p.max_events = 1024;
  p.max_notifies = 1024;
  p.bf16 = false;
  p.idle_power_dw = 158;
  p.busy_power_dw = 720;
  p.idle_temp_c = 42;
  return p;
}

// Of the 950 little is public: its driver's interface is, and that is what this profile is for. Cores and clocks are those of
// its sister with two dies.
constexpr Profile Next950() {
  Profile p = Split("Ascend950PR_9579", 32, 1650, 192, 114688);
  p.chip = "Ascend950PR";
  p.short_soc = "Ascend950";
  p.dcmi_v2 = true;
  return p;
}

constexpr std::array kProfiles = {
    Split("Ascend910B4", 20, 1650, 96, 32768),
    Split("Ascend910B4-1", 20, 1650, 168, 65536),
    Split("Ascend910B1", 24, 1850, 192, 65536),
    Split("Ascend910B2", 24, 1800, 192, 65536),
    Split("Ascend910B2C", 24, 1800, 192, 65536),
    Split("Ascend910B3", 20, 1800, 192, 65536),
    TwoDies("Ascend910_9391"),
    TwoDies("Ascend910_9381"),
    TwoDies("Ascend910_9372"),
    TwoDies("Ascend910_9362"),
    Inference310P(),
    Next950(),
};

constexpr std::array<std::string_view, 4> kCann = {"7.0.RC1", "8.1.RC1", "8.5.0", "9.1.0"};

bool SameLetters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

std::span<const Profile> Profiles() { return kProfiles; }

const Profile* FindProfile(std::string_view name) {
  for (const Profile& p : kProfiles) {
    if (SameLetters(p.soc, name) || SameLetters(p.chip, name)) return &p;
  }
  return nullptr;
}

std::span<const std::string_view> CannVersions() { return kCann; }

PciAddress PciOf(int card) {
  // The article's machine has its cards at buses 41 and 42; a further host bridge begins with each eighth card.
  const uint32_t n = static_cast<uint32_t>(std::clamp(card, 0, kMaxCards - 1));
  return {n / 32, 0x41 + (n % 32 / 8) * 0x20 + n % 8, 0, 0};
}

std::string BusId(int card) {
  const PciAddress pci = PciOf(card);
  char text[24];
  std::snprintf(text, sizeof text, "%04X:%02X:%02X.%X", pci.domain, pci.bus, pci.device, pci.function);
  return text;
}

std::optional<uint64_t> ParseBytes(std::string_view text) {
  const std::string copy(text);
  if (copy.empty() || !std::isdigit(static_cast<unsigned char>(copy[0]))) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  std::string_view unit(end);
  double factor = 1;
  if (!unit.empty()) {
    constexpr std::string_view kUnits = "kmgt";
    const size_t power = kUnits.find(static_cast<char>(std::tolower(static_cast<unsigned char>(unit[0]))));
    if (power != std::string_view::npos) {
      for (size_t i = 0; i <= power; ++i) factor *= 1024;
      unit.remove_prefix(1);
      if (SameLetters(unit, "ib") || SameLetters(unit, "b")) unit = {};
    } else if (SameLetters(unit, "b")) {
      unit = {};
    }
  }
  const double bytes = number * factor;
  if (!unit.empty() || !std::isfinite(bytes) || bytes < 1 || bytes > static_cast<double>(uint64_t{1} << 50))
    return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

}  // namespace npu::device
