// A client of libdcmi.so: ids, limits, refusals. Expected figures come from the environment set here.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "dcmi_interface_api.h"

namespace {

constexpr int kInvalid = -8001, kInner = -8005, kNotSupported = -8255;

// Each test is a process of its own under ctest; the machine has a name that nobody else uses and three cards.
class Dcmi : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("ANYNPU_MACHINE", ("dcmi-test-" + std::to_string(getpid())).c_str(), 1);
    setenv("ANYNPU_CARDS", "3", 1);
    setenv("ANYNPU_SOC", "Ascend910B3", 1);
    setenv("ANYNPU_HBM", "5G", 1);
  }
};

TEST_F(Dcmi, ListsAreRefusedBeforeInit) {
  int count = 0, cards[64];
  EXPECT_EQ(dcmi_get_card_list(&count, cards, 64), kInner);
}

TEST_F(Dcmi, ListsCards) {
  ASSERT_EQ(dcmi_init(), 0);
  ASSERT_EQ(dcmi_init(), 0);
  int count = 0, cards[64], chips = 0;
  ASSERT_EQ(dcmi_get_card_list(&count, cards, 64), 0);
  ASSERT_EQ(count, 3);
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(cards[i], i);
    int logic = -1;
    EXPECT_EQ(dcmi_get_device_logic_id(&logic, i, 0), 0);
    EXPECT_EQ(logic, i);
    EXPECT_EQ(dcmi_get_device_num_in_card(i, &chips), 0);
    EXPECT_EQ(chips, 1);
  }
  EXPECT_EQ(dcmi_get_card_list(&count, cards, 2), kInvalid);
  EXPECT_EQ(dcmi_get_card_list(nullptr, cards, 64), kInvalid);
  EXPECT_EQ(dcmi_get_device_num_in_card(3, &chips), kInvalid);
  EXPECT_EQ(dcmi_get_device_num_in_card(-1, &chips), kInvalid);
}

TEST_F(Dcmi, TellsWhatAChipIs) {
  ASSERT_EQ(dcmi_init(), 0);
  dcmi_chip_info info;
  std::memset(&info, 0xff, sizeof info);
  ASSERT_EQ(dcmi_get_device_chip_info(1, 0, &info), 0);
  EXPECT_STREQ(reinterpret_cast<char*>(info.chip_name), "910B3");
  EXPECT_STREQ(reinterpret_cast<char*>(info.chip_type), "Ascend");
  EXPECT_EQ(dcmi_get_device_chip_info(1, 1, &info), kInvalid);
  EXPECT_EQ(dcmi_get_device_chip_info(1, 0, nullptr), kInvalid);
  dcmi_pcie_info_all first{}, second{};
  ASSERT_EQ(dcmi_get_device_pcie_info_v2(0, 0, &first), 0);
  ASSERT_EQ(dcmi_get_device_pcie_info_v2(1, 0, &second), 0);
  EXPECT_NE(first.bdf_busid, second.bdf_busid);
  EXPECT_EQ(first.venderid, 0x19e5u);
  dcmi_die_id die0{}, die1{};
  ASSERT_EQ(dcmi_get_device_die_v2(0, 0, VDIE, &die0), 0);
  ASSERT_EQ(dcmi_get_device_die_v2(1, 0, VDIE, &die1), 0);
  EXPECT_NE(std::memcmp(&die0, &die1, sizeof die0), 0);
}

TEST_F(Dcmi, AnIdleCardHoldsOnlyTheSystemsMemory) {
  ASSERT_EQ(dcmi_init(), 0);
  dcmi_hbm_info hbm{};
  ASSERT_EQ(dcmi_get_device_hbm_info(2, 0, &hbm), 0);
  EXPECT_EQ(hbm.memory_size, 5u * 1024);
  EXPECT_LT(hbm.memory_usage, hbm.memory_size);
  dcmi_proc_mem_info processes[64];
  int count = -1;
  ASSERT_EQ(dcmi_get_device_resource_info(2, 0, processes, &count), 0);
  EXPECT_EQ(count, 0);
  unsigned percent = 99;
  ASSERT_EQ(dcmi_get_device_utilization_rate(2, 0, 2, &percent), 0);
  EXPECT_EQ(percent, 0u);
  EXPECT_EQ(dcmi_get_device_utilization_rate(2, 0, 8, &percent), kNotSupported);
}

TEST_F(Dcmi, RefusesWhatTheCardDoesNotHave) {
  ASSERT_EQ(dcmi_init(), 0);
  char text[64];
  EXPECT_EQ(dcmi_get_product_type(0, 0, text, sizeof text), kNotSupported);
  char tiny[2];
  EXPECT_EQ(dcmi_get_driver_version(tiny, sizeof tiny), kInvalid);
  ASSERT_EQ(dcmi_get_driver_version(text, sizeof text), 0);
  EXPECT_STREQ(text, "25.5.2");
}

TEST_F(Dcmi, JoinsCardsByHccs) {
  ASSERT_EQ(dcmi_init(), 0);
  int link = -1;
  ASSERT_EQ(dcmi_get_topo_info_by_device_id(0, 0, 0, 0, &link), 0);
  EXPECT_EQ(link, 0);
  ASSERT_EQ(dcmi_get_topo_info_by_device_id(0, 0, 2, 0, &link), 0);
  EXPECT_EQ(link, 3);
}

}  // namespace
