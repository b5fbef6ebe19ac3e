#include "tools/monitor/expose/families.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tools/monitor/collect/units.h"
#include "tools/monitor/expose/operators.h"
#include "tools/monitor/expose/source.h"

namespace npu::monitor {
namespace {

using prometheus::MetricFamily;

const MetricFamily& Find(const std::vector<MetricFamily>& families, std::string_view name) {
  for (const MetricFamily& family : families) {
    if (family.name == name) return family;
  }
  ADD_FAILURE() << "no family " << name;
  static const MetricFamily none;
  return none;
}

Card SomeCard(std::mt19937_64& random, int id) {
  const auto share = [&] { return static_cast<double>(random() % 1001) / 1000; };
  Card card{.id = id, .model = "910B4-Ascend-V1", .die_id = "A-B", .bus = "0000:41:00.0"};
  card.power_w = static_cast<double>(random() % 3000) / 10;
  card.temperature_c = static_cast<double>(random() % 100);
  card.core_use = share();
  card.core_mhz = 1650;
  card.hbm_used_bytes = random() % (uint64_t{32} << 30);
  card.hbm_total_bytes = uint64_t{32} << 30;
  card.fragmentation = share();
  card.health = 0;
  card.ecc = EccCounts{true, random() % 100, random() % 100, 1, 2, 3, 4};
  card.processes = {{100 + id, "python", uint64_t{512} << 20, std::string(64, 'c')},
                    {200 + id, "py", uint64_t{300} << 20, ""}};
  return card;
}

// R103: one value, two units, never another factor.
TEST(Families, TwinsOfStockNamesAgree) {
  std::mt19937_64 random(std::random_device{}());
  Reading reading;
  for (int id = 0; id < 16; ++id) reading.cards.push_back(SomeCard(random, id));
  const auto families = CardFamilies(reading);
  const std::tuple<const char*, const char*, double> twins[] = {
      {"npu_chip_info_power", "npu_power_watts", 1},
      {"npu_chip_info_temperature", "npu_temperature_celsius", 1},
      {"npu_chip_info_hbm_used_memory", "npu_memory_used_bytes", kMegabyte},
      {"npu_chip_info_hbm_total_memory", "npu_memory_total_bytes", kMegabyte},
      {"npu_chip_info_utilization", "npu_core_utilization_ratio", 0.01},
      {"npu_chip_info_aicore_current_freq", "npu_core_frequency_hertz", 1e6},
      {"npu_chip_info_hbm_ecc_double_bit_error_cnt", "npu_ecc_double_bit_errors", 1},
      {"npu_chip_info_process_info", "npu_process_memory_bytes", kMegabyte},
      {"container_npu_used_memory", "npu_container_memory_bytes", kMegabyte},
  };
  for (const auto& [stock, own, factor] : twins) {
    const auto& a = Find(families, stock).metric;
    const auto& b = Find(families, own).metric;
    ASSERT_EQ(a.size(), b.size()) << stock;
    ASSERT_FALSE(a.empty()) << stock;
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i].gauge.value * factor, b[i].gauge.value, 1e-9 * std::abs(b[i].gauge.value)) << stock;
  }
}

// R056, R092.
TEST(Families, ProcessesAndContainersHaveTheirMemory) {
  std::mt19937_64 random(std::random_device{}());
  Reading reading;
  reading.cards.push_back(SomeCard(random, 0));
  const auto families = CardFamilies(reading);
  const auto& containers = Find(families, "container_npu_used_memory").metric;
  ASSERT_EQ(containers.size(), 1u);
  EXPECT_EQ(containers[0].gauge.value, 512);
  EXPECT_EQ(Find(families, "container_npu_utilization").metric.size(), 1u);
  const auto& processes = Find(families, "npu_chip_info_process_info").metric;
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[1].gauge.value, 300);
}

// R088, the exporter's side.
TEST(Families, FaultCodesAreValues) {
  Reading reading;
  reading.cards.push_back({.id = 0, .error_codes = {0x80E01801, 0x80C98000}});
  reading.cards.push_back({.id = 1});
  const auto families = CardFamilies(reading);
  const auto& first = Find(families, "npu_chip_info_error_code").metric;
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].gauge.value, double{0x80E01801});
  EXPECT_EQ(first[1].gauge.value, 0);
  EXPECT_EQ(Find(families, "npu_chip_info_error_code_1").metric.size(), 1u);
}

// R091: whatever comes and goes, a family has one set of label keys.
TEST(Families, LabelKeysNeverChange) {
  std::mt19937_64 random(std::random_device{}());
  std::map<std::string, std::set<std::string>> keys;
  for (int round = 0; round < 200; ++round) {
    Reading reading;
    for (int id = 0; id < static_cast<int>(random() % 5); ++id) {
      Card card = SomeCard(random, id);
      if (random() % 2) card.processes.clear();
      if (random() % 2) card.model.clear(), card.bus.clear(), card.die_id.clear();
      if (random() % 3 == 0) card.processes.push_back({1, "\xff\"\\\n", 5, "lxc-\xff"});
      reading.cards.push_back(card);
    }
    for (const MetricFamily& family : CardFamilies(reading)) {
      for (const auto& metric : family.metric) {
        std::set<std::string> names;
        for (const auto& label : metric.label) EXPECT_TRUE(names.insert(label.name).second) << family.name;
        const auto [at, fresh] = keys.emplace(family.name, names);
        EXPECT_EQ(at->second, names) << family.name;
      }
    }
  }
  EXPECT_THAT(keys.at("npu_chip_info_power"), ::testing::ElementsAre("container_name", "id", "model_name", "namespace",
                                                                     "pcie_bus_info", "pod_name", "vdie_id"));
}

TEST(Families, HistogramsAreCumulativeAndTheirTwinIsInSeconds) {
  Reading reading;
  Operator op{.name = "MatMul", .sum_us = 5000};
  op.counts[3] = 4;
  op.counts[9] = 6;
  op.counts.back() = 1;
  reading.operators.push_back(op);
  const auto families = CardFamilies(reading);
  const auto& micro = Find(families, "acl_op_execute_time").metric.at(0).histogram;
  const auto& seconds = Find(families, "acl_op_execute_time_seconds").metric.at(0).histogram;
  EXPECT_EQ(micro.sample_count, 11u);
  EXPECT_EQ(micro.bucket[3].cumulative_count, 4u);
  EXPECT_EQ(micro.bucket.back().cumulative_count, 10u);
  EXPECT_DOUBLE_EQ(seconds.sample_sum, 0.005);
  EXPECT_DOUBLE_EQ(seconds.bucket[9].upper_bound, micro.bucket[9].upper_bound * 1e-6);
}

TEST(Families, NamesAreTheProfilersNames) {
  EXPECT_EQ(OperatorName("aclnnMm"), "MatMul");
  EXPECT_EQ(OperatorName("aclnnAddmm"), "MatMul");
  EXPECT_EQ(OperatorName("aclnnSoftmax"), "Softmax");
  EXPECT_EQ(OperatorName("aclnnLayerNormBackward"), "LayerNormGrad");
  EXPECT_EQ(OperatorName("aclnnInplaceAdd"), "Add");
  EXPECT_EQ(OperatorName("HcclAllReduce"), "HcclAllReduce");
}

struct Scripted final : Collector {
  std::vector<Reading> readings;
  int reads = 0;
  Reading Read() override { return readings[std::min<size_t>(static_cast<size_t>(reads++), readings.size() - 1)]; }
};

TEST(Source, ALostCardStaysAndSaysSo) {
  auto scripted = std::make_unique<Scripted>();
  Reading both, one;
  both.cards = {{.id = 0}, {.id = 1, .power_w = 5.0}};
  one.cards = {{.id = 0}};
  scripted->readings = {both, one};
  Source source(std::move(scripted));
  ASSERT_EQ(source.Now()->cards.size(), 2u);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  const auto after = source.Now();
  ASSERT_EQ(after->cards.size(), 2u);
  EXPECT_FALSE(after->cards[1].answers);
  EXPECT_FALSE(after->cards[1].power_w);
  EXPECT_THAT(*source.Cards(), ::testing::HasSubstr("npu_card_up{device=\"npu1\"} 0"));
}

TEST(Source, AStormOfRequestsReadsOnce) {
  auto scripted = std::make_unique<Scripted>();
  Scripted* raw = scripted.get();
  scripted->readings = {Reading{}};
  Source source(std::move(scripted));
  for (int i = 0; i < 50; ++i) source.Cards();
  EXPECT_LE(raw->reads, 3);
}

}  // namespace
}  // namespace npu::monitor
