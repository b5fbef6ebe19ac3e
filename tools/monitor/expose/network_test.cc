#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tools/monitor/expose/families.h"

namespace npu::monitor {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

struct Shown {
  std::map<std::string, std::map<std::string, double>> by_family;  // then by the labels that are not the card's
  std::set<std::string> names;

  explicit Shown(const Reading& reading) {
    for (const MetricFamily& family : CardFamilies(reading)) {
      EXPECT_TRUE(names.insert(family.name).second) << family.name << " comes twice";
      for (const ClientMetric& metric : family.metric) {
        std::string rest;
        for (const auto& label : metric.label) {
          if (label.name == "pcie_bw_type" || label.name == "lane" || label.name == "link" || label.name == "kind")
            rest += label.value;
        }
        by_family[family.name][rest] = metric.gauge.value;
      }
    }
  }
  double At(const std::string& family, const std::string& rest = "") const {
    const auto at = by_family.find(family);
    if (at == by_family.end() || !at->second.contains(rest)) {
      ADD_FAILURE() << "no " << family << " " << rest;
      return -1;
    }
    return at->second.at(rest);
  }
};

TEST(Network, StockUnitsAndTheirTwinsAgree) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto some = [&] { return 1 + static_cast<double>(random() % 100'000); };
  Card card{.id = 0};
  card.port = {{"mac_tx_mac_pause_num", random()}, {"roce_rx_all_pkt_num", random()}, {"mac_rx_fcs_err_pkt_num", 3}};
  card.optical = Optical{.present = true, .temperature_c = 45, .supply_v = some() / 1e4};
  card.optical->send_w[2] = some() / 1e8;
  card.pcie = Pcie{.tx_p = {some() * 1e6, some() * 1e6, some() * 1e6}};
  card.hccs = Hccs{.watched_s = 0.1, .send_bytes_per_s = some() * 1e6, .receive_bytes_per_s = some() * 1e6};
  card.hccs->lanes.push_back({.number = 1, .send_bytes_per_s = some() * 1e6, .sent_flits = random(), .crc_errors = 0});
  card.die_link_errors = {4, 5};
  Reading reading;
  reading.cards.push_back(card);
  const Shown shown(reading);
  EXPECT_EQ(shown.At("npu_chip_mac_tx_pause_num"), static_cast<double>(card.port[0].second));
  EXPECT_EQ(shown.At("npu_chip_roce_rx_all_pkt_num"), static_cast<double>(card.port[1].second));
  EXPECT_EQ(shown.At("npu_chip_info_rx_fcs_num"), 3);
  EXPECT_EQ(shown.At("npu_chip_optical_state"), 1);
  EXPECT_DOUBLE_EQ(shown.At("npu_chip_optical_vcc"), shown.At("npu_optical_supply_volts") * 1e3);
  EXPECT_DOUBLE_EQ(shown.At("npu_chip_optical_tx_power_2"), shown.At("npu_optical_send_watts", "2") * 1e3);
  EXPECT_DOUBLE_EQ(shown.At("npu_chip_info_pcie_tx_p_bw", "avgPcieBw") * 1e9,
                   shown.At("npu_pcie_bytes_per_second", "tx_p"));
  EXPECT_DOUBLE_EQ(shown.At("npu_chip_info_pcie_tx_p_bw", "minPcieBw") * 1e9, card.pcie->tx_p.least);
  EXPECT_DOUBLE_EQ(shown.At("npu_chip_info_pcie_tx_p_bw", "maxPcieBw") * 1e9, card.pcie->tx_p.most);
  EXPECT_DOUBLE_EQ(shown.At("npu_chip_info_hccs_bandwidth_info_profiling_time"), 100);
  EXPECT_DOUBLE_EQ(shown.At("npu_chip_info_hccs_bandwidth_info_total_tx") * 1e9, card.hccs->send_bytes_per_s);
  EXPECT_DOUBLE_EQ(shown.At("npu_chip_info_hccs_bandwidth_info_tx_1") * 1e9,
                   shown.At("npu_hccs_send_bytes_per_second", "1"));
  EXPECT_EQ(shown.At("npu_chip_info_hccs_statistic_info_tx_cnt_1"),
            static_cast<double>(*card.hccs->lanes[0].sent_flits));
  EXPECT_EQ(shown.At("npu_chip_info_hccs_statistic_info_crc_err_cnt_1"), 0);
  EXPECT_EQ(shown.At("npu_chip_info_sio_crc_rx_err_cnt"), 5);
  // What was not told is not shown as 0.
  for (const char* absent :
       {"npu_chip_mac_rx_pause_num", "npu_chip_optical_tx_power_1", "npu_chip_info_hccs_statistic_info_rx_cnt_1"})
    EXPECT_FALSE(shown.by_family.contains(absent)) << absent;
}

TEST(Network, ACardWithoutLinksHasNoneOfThem) {
  Reading reading;
  reading.cards.push_back(Card{.id = 0});
  for (const auto& [name, samples] : Shown(reading).by_family) {
    for (const char* part : {"_mac_", "_roce_", "_optical_", "_pcie_", "_hccs_", "_sio_"})
      EXPECT_EQ(name.find(part), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace npu::monitor
