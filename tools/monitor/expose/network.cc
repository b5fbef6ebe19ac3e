#include "tools/monitor/expose/network.h"

#include <fmt/format.h>

#include <algorithm>

namespace npu::monitor {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double kMilli = 1e-3;
constexpr double kMegabytesPerMs = 1e9, kGigabytesPerS = 1e9;  // of 10^6 bytes, as the driver counts on links

// Counters of the port: the stock exporter's name, hccn_tool's name.
constexpr std::pair<const char*, const char*> kPort[] = {
    {"npu_chip_mac_tx_pause_num", "mac_tx_mac_pause_num"},
    {"npu_chip_mac_rx_pause_num", "mac_rx_mac_pause_num"},
    {"npu_chip_mac_tx_pfc_pkt_num", "mac_tx_pfc_pkt_num"},
    {"npu_chip_mac_rx_pfc_pkt_num", "mac_rx_pfc_pkt_num"},
    {"npu_chip_mac_tx_bad_pkt_num", "mac_tx_bad_pkt_num"},
    {"npu_chip_mac_rx_bad_pkt_num", "mac_rx_bad_pkt_num"},
    {"npu_chip_mac_tx_bad_oct_num", "mac_tx_bad_oct_num"},
    {"npu_chip_mac_rx_bad_oct_num", "mac_rx_bad_oct_num"},
    {"npu_chip_roce_tx_all_pkt_num", "roce_tx_all_pkt_num"},
    {"npu_chip_roce_rx_all_pkt_num", "roce_rx_all_pkt_num"},
    {"npu_chip_roce_tx_err_pkt_num", "roce_tx_err_pkt_num"},
    {"npu_chip_roce_rx_err_pkt_num", "roce_rx_err_pkt_num"},
    {"npu_chip_roce_tx_cnp_pkt_num", "roce_tx_cnp_pkt_num"},
    {"npu_chip_roce_rx_cnp_pkt_num", "roce_rx_cnp_pkt_num"},
    {"npu_chip_roce_new_pkt_rty_num", "roce_new_pkt_rty_num"},
    {"npu_chip_roce_unexpected_ack_num", "roce_unexpected_ack_num"},
    {"npu_chip_roce_out_of_order_num", "roce_out_of_order_num"},
    {"npu_chip_roce_verification_err_num", "roce_verification_err_num"},
    {"npu_chip_roce_qp_status_err_num", "roce_qp_status_err_num"},
    {"npu_chip_info_rx_fcs_num", "mac_rx_fcs_err_pkt_num"},
    {"npu_chip_info_rx_ecn_num", "roce_ecn_db_num"},
};

class Adder {
 public:
  Adder(const Reading& reading, std::vector<MetricFamily>& out) : reading_(reading), out_(out) {}

  // `value` gives a number for a card or nothing.
  template <class Value>
  void Gauge(const std::string& name, const std::string& help, const LabelsOf& labels, Value&& value) {
    MetricFamily family{name, help, MetricType::Gauge, {}};
    for (const Card& card : reading_.cards) Sample(family, labels(card), value(card));
    out_.push_back(std::move(family));
  }

  static void Sample(MetricFamily& family, Labels labels, std::optional<double> value) {
    if (!value) return;
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.gauge.value = *value;
    family.metric.push_back(std::move(metric));
  }

 private:
  const Reading& reading_;
  std::vector<MetricFamily>& out_;
};

Labels With(Labels labels, const char* name, std::string value) {
  labels.push_back({name, std::move(value)});
  return labels;
}

std::optional<double> Times(const std::optional<double>& value, double factor) {
  return value ? std::optional<double>(*value * factor) : std::nullopt;
}

void AddPort(Adder& add, const LabelsOf& stock) {
  for (const auto& [name, counter] : kPort) {
    add.Gauge(name, fmt::format("hccn_tool's {}", counter), stock, [&](const Card& card) -> std::optional<double> {
      for (const auto& [there, value] : card.port) {
        if (there == counter) return static_cast<double>(value);
      }
      return std::nullopt;
    });
  }
}

void AddOptical(Adder& add, const Reading& reading, const LabelsOf& stock, const LabelsOf& own,
                std::vector<MetricFamily>& out) {
  const auto from = [](auto get) {
    return [get](const Card& card) { return card.optical ? get(*card.optical) : std::nullopt; };
  };
  add.Gauge("npu_chip_optical_state", "1 while an optical module is in the port", stock,
            from([](const Optical& o) -> std::optional<double> {
              return o.present ? std::optional<double>(*o.present ? 1 : 0) : std::nullopt;
            }));
  add.Gauge("npu_chip_optical_temp", "Temperature of the optical module, degrees Celsius", stock,
            from([](const Optical& o) { return o.temperature_c; }));
  add.Gauge("npu_chip_optical_vcc", "Supply of the optical module, mV", stock,
            from([](const Optical& o) { return Times(o.supply_v, 1e3); }));
  add.Gauge("npu_optical_temperature_celsius", "Temperature of the optical module", own,
            from([](const Optical& o) { return o.temperature_c; }));
  add.Gauge("npu_optical_supply_volts", "Supply of the optical module", own,
            from([](const Optical& o) { return o.supply_v; }));
  for (const bool send : {true, false}) {
    const auto lanes = [send](const Optical& o) -> const auto& { return send ? o.send_w : o.receive_w; };
    MetricFamily watts{send ? "npu_optical_send_watts" : "npu_optical_receive_watts",
                       send ? "Light that a lane sends" : "Light that a lane receives",
                       MetricType::Gauge,
                       {}};
    for (size_t lane = 0; lane < Optical().send_w.size(); ++lane) {
      add.Gauge(fmt::format("npu_chip_optical_{}_power_{}", send ? "tx" : "rx", lane),
                fmt::format("Light that lane {} {}, mW", lane, send ? "sends" : "receives"), stock,
                from([&](const Optical& o) { return Times(lanes(o)[lane], 1 / kMilli); }));
      for (const Card& card : reading.cards) {
        if (card.optical)
          Adder::Sample(watts, With(own(card), "lane", fmt::format("{}", lane)), lanes(*card.optical)[lane]);
      }
    }
    out.push_back(std::move(watts));
  }
}

void AddPcie(const Reading& reading, const LabelsOf& stock, const LabelsOf& own, std::vector<MetricFamily>& out) {
  constexpr struct {
    const char* name;
    const char* help;
    PcieRate Pcie::*rate;
  } kRates[] = {
      {"tx_p", "sent: posted writes", &Pcie::tx_p},          {"tx_np", "sent: requests to read", &Pcie::tx_np},
      {"tx_cpl", "sent: completions", &Pcie::tx_cpl},        {"rx_p", "received: posted writes", &Pcie::rx_p},
      {"rx_np", "received: requests to read", &Pcie::rx_np}, {"rx_cpl", "received: completions", &Pcie::rx_cpl}};
  MetricFamily twin{"npu_pcie_bytes_per_second", "PCIe traffic by direction and kind", MetricType::Gauge, {}};
  for (const auto& row : kRates) {
    MetricFamily family{fmt::format("npu_chip_info_pcie_{}_bw", row.name),
                        fmt::format("PCIe traffic {}, MB/ms", row.help),
                        MetricType::Gauge,
                        {}};
    for (const Card& card : reading.cards) {
      if (!card.pcie) continue;
      const PcieRate& rate = (*card.pcie).*row.rate;
      const std::pair<const char*, double> kinds[] = {
          {"avgPcieBw", rate.mean}, {"minPcieBw", rate.least}, {"maxPcieBw", rate.most}};
      for (const auto& [kind, value] : kinds)
        Adder::Sample(family, With(stock(card), "pcie_bw_type", kind), value / kMegabytesPerMs);
      Adder::Sample(twin, With(own(card), "kind", row.name), rate.mean);
    }
    out.push_back(std::move(family));
  }
  out.push_back(std::move(twin));
}

void AddHccs(Adder& add, const Reading& reading, const LabelsOf& stock, const LabelsOf& own,
             std::vector<MetricFamily>& out) {
  const auto from = [](double Hccs::*field, double factor) {
    return [=](const Card& card) {
      return card.hccs ? std::optional<double>((*card.hccs).*field * factor) : std::nullopt;
    };
  };
  const std::string bandwidth = "npu_chip_info_hccs_bandwidth_info_", statistic = "npu_chip_info_hccs_statistic_info_";
  add.Gauge(bandwidth + "profiling_time", "How long HCCS traffic was watched, ms", stock, from(&Hccs::watched_s, 1e3));
  add.Gauge(bandwidth + "total_tx", "Sent on all HCCS links, GB/s", stock,
            from(&Hccs::send_bytes_per_s, 1 / kGigabytesPerS));
  add.Gauge(bandwidth + "total_rx", "Received on all HCCS links, GB/s", stock,
            from(&Hccs::receive_bytes_per_s, 1 / kGigabytesPerS));
  using Value = std::optional<double> (*)(const HccsLane&);
  const auto whole = [](const std::optional<uint64_t>& value) {
    return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
  };
  static const auto kWhole = whole;
  const struct {
    std::string name;
    const char* help;
    Value value;
  } rows[] = {
      {bandwidth + "tx_", "Sent on HCCS link {}, GB/s",
       [](const HccsLane& l) -> std::optional<double> { return l.send_bytes_per_s / kGigabytesPerS; }},
      {bandwidth + "rx_", "Received on HCCS link {}, GB/s",
       [](const HccsLane& l) -> std::optional<double> { return l.receive_bytes_per_s / kGigabytesPerS; }},
      {statistic + "tx_cnt_", "Sent on HCCS link {}, flits", [](const HccsLane& l) { return kWhole(l.sent_flits); }},
      {statistic + "rx_cnt_", "Received on HCCS link {}, flits",
       [](const HccsLane& l) { return kWhole(l.received_flits); }},
      {statistic + "crc_err_cnt_", "Checksum errors on HCCS link {}",
       [](const HccsLane& l) { return kWhole(l.crc_errors); }},
  };
  int most = -1;
  for (const Card& card : reading.cards) {
    if (!card.hccs) continue;
    for (const HccsLane& lane : card.hccs->lanes) most = std::max(most, lane.number);
  }
  for (const auto& row : rows) {
    for (int number = 0; number <= most; ++number) {
      add.Gauge(fmt::format("{}{}", row.name, number), fmt::format(fmt::runtime(row.help), number), stock,
                [&](const Card& card) -> std::optional<double> {
                  if (!card.hccs) return std::nullopt;
                  for (const HccsLane& lane : card.hccs->lanes) {
                    if (lane.number == number) return row.value(lane);
                  }
                  return std::nullopt;
                });
    }
  }
  for (const bool send : {true, false}) {
    MetricFamily twin{send ? "npu_hccs_send_bytes_per_second" : "npu_hccs_receive_bytes_per_second",
                      send ? "Sent on an HCCS link" : "Received on an HCCS link",
                      MetricType::Gauge,
                      {}};
    for (const Card& card : reading.cards) {
      if (!card.hccs) continue;
      for (const HccsLane& lane : card.hccs->lanes) {
        Adder::Sample(twin, With(own(card), "link", fmt::format("{}", lane.number)),
                      send ? lane.send_bytes_per_s : lane.receive_bytes_per_s);
      }
    }
    out.push_back(std::move(twin));
  }
}

}  // namespace

void AddNetwork(const Reading& reading, const LabelsOf& stock, const LabelsOf& own, std::vector<MetricFamily>& out) {
  Adder add(reading, out);
  AddPort(add, stock);
  AddOptical(add, reading, stock, own, out);
  AddPcie(reading, stock, own, out);
  AddHccs(add, reading, stock, own, out);
  for (const bool send : {true, false}) {
    add.Gauge(send ? "npu_chip_info_sio_crc_tx_err_cnt" : "npu_chip_info_sio_crc_rx_err_cnt",
              send ? "Errors of sending between the dies of a card" : "Errors of receiving between the dies of a card",
              stock, [send](const Card& card) -> std::optional<double> {
                if (!card.die_link_errors) return std::nullopt;
                return static_cast<double>(send ? card.die_link_errors->first : card.die_link_errors->second);
              });
  }
}

}  // namespace npu::monitor
