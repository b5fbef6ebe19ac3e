#include "tools/monitor/collect/port.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

namespace npu::monitor {
namespace {

TEST(Port, AnswersAreReadAsTheyArePrinted) {
  EXPECT_EQ(LinkIn("link status: UP\n"), true);
  EXPECT_EQ(LinkIn("link status:\n DOWN\n"), false);
  EXPECT_EQ(SpeedIn("Speed: 200000 Mb/s\n"), 200000e6);
  EXPECT_EQ(TimesUpIn("[device 0]current time : Mon\n[device 0]link up count : 3\n[device 0]link down count : 2\n"),
            3u);
  Link link;
  BandwidthIn("Bandwidth TX: 1.50 MB/sec\nBandwidth RX: 0.25 MB/sec\n", link);
  EXPECT_EQ(link.send_bytes_per_s, 1.5e6);
  EXPECT_EQ(link.receive_bytes_per_s, 0.25e6);
  using Counter = std::pair<std::string, uint64_t>;
  EXPECT_THAT(CountersIn("packet statistics:\nmac_tx_mac_pause_num:7\nroce_rx_all_pkt_num:12\n"),
              ::testing::ElementsAre(Counter("mac_tx_mac_pause_num", 7), Counter("roce_rx_all_pkt_num", 12)));
  const auto optical = OpticalIn(
      "optical info:\npresent : present\ntemperature : 45 C\nVcc : 3245.10 mV\nTx_Power0 : 0.9095 mW\nRx_Power3 : "
      "0.8466 mW\n");
  ASSERT_TRUE(optical);
  EXPECT_EQ(optical->present, true);
  EXPECT_EQ(optical->temperature_c, 45);
  EXPECT_NEAR(*optical->supply_v, 3.2451, 1e-9);
  EXPECT_NEAR(*optical->send_w[0], 0.9095e-3, 1e-12);
  EXPECT_NEAR(*optical->receive_w[3], 0.8466e-3, 1e-12);
  EXPECT_FALSE(optical->send_w[1]);
  EXPECT_EQ(OpticalIn("present : not present\n")->present, false);
}

TEST(Port, WhatIsNoAnswerGivesNothing) {
  for (const char* text :
       {"", "link status: SIDEWAYS\n", "link status\n", "Speed: Unknown!\n", "Speed: -5 Mb/s\n", "Speed: 7 Gb/s\n",
        "[device 0]link up count : many\n", "Bandwidth TX: nan MB/sec\n", "Bandwidth TX: 5 GB/sec\n", "mac:-1\n",
        "a b:5\n", "mac_tx: x\n", ":5\n", "temperature : 45 C\n"}) {
    Link link;
    BandwidthIn(text, link);
    EXPECT_FALSE(LinkIn(text) || SpeedIn(text) || TimesUpIn(text) || link.send_bytes_per_s || OpticalIn(text)) << text;
    EXPECT_TRUE(CountersIn(text).empty()) << text;
  }
  const auto odd = OpticalIn("present : present\ntemperature : hot\nVcc : 3 mW\nTx_Power0 : 1e400 mW\nRx_Power0 :\n");
  ASSERT_TRUE(odd);
  EXPECT_FALSE(odd->temperature_c || odd->supply_v || odd->send_w[0] || odd->receive_w[0]);
}

TEST(Port, RandomTextDoesNoHarm) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string letters = "linkstaupBdwhTRX: 0123456789.\nMB/secmV_\xff\t:";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t i = random() % 120; i > 0; --i) text += letters[random() % letters.size()];
    Link link;
    BandwidthIn(text, link);
    LinkIn(text), SpeedIn(text), TimesUpIn(text), CountersIn(text), OpticalIn(text);
  }
}

TEST(Port, ToolsThatRefuseAreNoProblemAndThoseThatDoNotStartAre) {
  const PortReading refused = AskPortTool("/bin/false", 0);
  EXPECT_EQ(refused.problem, "");
  EXPECT_FALSE(refused.link.up);
  EXPECT_THAT(AskPortTool("/nonexistent/hccn_tool", 0).problem, ::testing::HasSubstr("/nonexistent/hccn_tool"));
  EXPECT_EQ(FindPortTool("off"), "");
  EXPECT_EQ(FindPortTool("/bin/true"), "/bin/true");
}

TEST(Port, EachQuestionIsAProgramOfItsOwn) {
  char folder[] = "/tmp/anynpu-port-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string tool = std::string(folder) + "/hccn_tool";
  std::ofstream(tool)
      << "#!/bin/sh\n[ \"$1 $2 $4\" = '-i 3 -g' ] || exit 9\n"
         "case $3 in -link) echo link status: DOWN;; -stat) echo roce_ecn_db_num:5;; *) exit 1;; esac\n";
  chmod(tool.c_str(), 0755);
  const PortReading port = AskPortTool(tool, 3);
  EXPECT_EQ(port.link.up, false);
  ASSERT_EQ(port.counters.size(), 1u);
  EXPECT_EQ(port.counters[0].second, 5u);
  EXPECT_FALSE(port.optical || port.link.speed_bits_per_s);
  EXPECT_EQ(port.problem, "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace npu::monitor
