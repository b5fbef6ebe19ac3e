#include "tools/monitor/collect/links.h"

#include <algorithm>
#include <chrono>

#include "base/os/thread.h"

namespace npu::monitor {
namespace {

constexpr int kWatchMs = 100;  // as long as the stock exporter watches
constexpr auto kBetweenRounds = std::chrono::seconds(5), kFirstRound = std::chrono::seconds(8);
constexpr double kMegabytesPerMs = 1e9, kGigabytesPerS = 1e9;

// The driver gives three values: least, most, mean.
PcieRate RateOf(const unsigned (&values)[3]) {
  return {
      .mean = values[2] * kMegabytesPerMs, .least = values[0] * kMegabytesPerMs, .most = values[1] * kMegabytesPerMs};
}

}  // namespace

Links::Links(const smi::Dcmi& dcmi, std::string tool) : dcmi_(dcmi), tool_(std::move(tool)) {}

Links::~Links() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Links::Watch(std::vector<LinkedChip> chips) {
  std::unique_lock lock(mutex_);
  chips_ = std::move(chips);
  if (thread_.joinable()) return;
  Result<std::thread> started = os::Start("npu-links", [this] { Run(); });
  if (!started.ok()) return;  // the values stay away
  thread_ = std::move(*started);
  changed_.wait_for(lock, kFirstRound, [this] { return rounds_ > 0; });
}

void Links::Fill(Card& card, std::vector<std::string>& problems) {
  const std::lock_guard lock(mutex_);
  const auto at = found_.find(card.id);
  if (at == found_.end()) return;
  const Found& found = at->second;
  card.pcie = found.pcie;
  card.hccs = found.hccs;
  card.port = found.port.counters;
  card.optical = found.port.optical;
  const std::optional<bool> reachable = card.link.reachable;
  card.link = found.port.link;
  card.link.reachable = reachable;
  if (!found.port.problem.empty() && std::find(problems.begin(), problems.end(), found.port.problem) == problems.end())
    problems.push_back(found.port.problem);
}

Links::Found Links::Ask(const LinkedChip& chip) const {
  Found found;
  dcmi_pcie_link_bandwidth_info pcie{};
  pcie.profiling_time = kWatchMs;
  if (NPU_DCMI(dcmi_, dcmi_get_pcie_link_bandwidth_info, chip.id.card, chip.id.chip, &pcie) == 0) {
    found.pcie = Pcie{RateOf(pcie.tx_p_bw), RateOf(pcie.tx_np_bw), RateOf(pcie.tx_cpl_bw),
                      RateOf(pcie.rx_p_bw), RateOf(pcie.rx_np_bw), RateOf(pcie.rx_cpl_bw)};
  }
  dcmi_hccs_bandwidth_info hccs{};
  hccs.profiling_time = kWatchMs;
  if (NPU_DCMI(dcmi_, dcmi_get_hccs_link_bandwidth_info, chip.id.card, chip.id.chip, &hccs) == 0) {
    found.hccs = Hccs{.watched_s = hccs.profiling_time / 1e3,
                      .send_bytes_per_s = hccs.total_txbw * kGigabytesPerS,
                      .receive_bytes_per_s = hccs.total_rxbw * kGigabytesPerS};
    constexpr int kLinks = 8;  // the stock exporter shows 1 to 7
    for (int link = 1; link < kLinks; ++link) {
      found.hccs->lanes.push_back({.number = link,
                                   .send_bytes_per_s = hccs.tx_bandwidth[link] * kGigabytesPerS,
                                   .receive_bytes_per_s = hccs.rx_bandwidth[link] * kGigabytesPerS});
    }
  }
  if (!tool_.empty()) found.port = AskPortTool(tool_, chip.physical);
  return found;
}

void Links::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::vector<LinkedChip> chips = chips_;
    std::map<int, Found> fresh;
    for (const LinkedChip& chip : chips) {
      if (stopping_) return;
      lock.unlock();
      Found found = Ask(chip);
      lock.lock();
      fresh[chip.logic] = std::move(found);
    }
    found_ = std::move(fresh);
    ++rounds_;
    changed_.notify_all();
    changed_.wait_for(lock, kBetweenRounds, [this] { return stopping_; });
  }
}

}  // namespace npu::monitor
