// The network port of a software card, as its counters and its optical module read: one model for hccn_tool and the
// exporter. Names are those of `hccn_tool -stat -g`.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/extras/card_extras.h"

namespace npu {

inline constexpr uint64_t kPortMegabitsPerS = 200'000;
inline constexpr size_t kOpticalLanes = 4;

struct OpticalModule {
  double temperature_c = 0, supply_mv = 0;
  std::array<double, kOpticalLanes> send_mw{}, receive_mw{};
};

// Packets are bytes over 4 KiB, rounded up; a lost one was out of order and was sent again.
inline std::vector<std::pair<std::string, uint64_t>> PortCounters(const CardExtras& extras) {
  constexpr uint64_t kPacketBytes = 4096;
  const auto packets = [](uint64_t bytes) { return (bytes + kPacketBytes - 1) / kPacketBytes; };
  const uint64_t sent = packets(extras.sent_bytes), received = packets(extras.received_bytes),
                 lost = extras.packets_lost;
  return {
      {"mac_tx_mac_pause_num", 0},
      {"mac_tx_pfc_pkt_num", 0},
      {"mac_tx_total_pkt_num", sent},
      {"mac_tx_total_oct_num", extras.sent_bytes},
      {"mac_tx_bad_pkt_num", 0},
      {"mac_tx_bad_oct_num", 0},
      {"mac_rx_mac_pause_num", 0},
      {"mac_rx_pfc_pkt_num", 0},
      {"mac_rx_total_pkt_num", received},
      {"mac_rx_total_oct_num", extras.received_bytes},
      {"mac_rx_bad_pkt_num", 0},
      {"mac_rx_bad_oct_num", 0},
      {"mac_rx_fcs_err_pkt_num", 0},
      {"roce_rx_all_pkt_num", received},
      {"roce_rx_err_pkt_num", lost},
      {"roce_rx_cnp_pkt_num", 0},
      {"roce_tx_all_pkt_num", sent},
      {"roce_tx_err_pkt_num", 0},
      {"roce_tx_cnp_pkt_num", 0},
      {"roce_unexpected_ack_num", 0},
      {"roce_out_of_order_num", lost},
      {"roce_verification_err_num", 0},
      {"roce_qp_status_err_num", 0},
      {"roce_new_pkt_rty_num", lost},
      {"roce_ecn_db_num", 0},
  };
}

// HCCS links of a card, numbered from 1: one to each other chip, as many as a card has. Its traffic is shared evenly.
inline int HccsLinks(size_t chips) {
  constexpr size_t kMost = 7;
  return static_cast<int>(std::min(std::max<size_t>(chips, 1) - 1, kMost));
}

// It receives no light while the link is down.
inline OpticalModule OpticalModuleOf(const CardExtras& extras) {
  OpticalModule module{.temperature_c = 45, .supply_mv = 3300};
  module.send_mw.fill(0.95);
  module.receive_mw.fill(extras.link_up != 0 ? 0.85 : 0);
  return module;
}

}  // namespace npu
