#include "tools/monitor/expose/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tools/monitor/collect/units.h"
#include "tools/monitor/expose/network.h"

namespace npu::monitor {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr size_t kMostErrorCodes = 10;  // npu_chip_info_error_code, _1 … _9
constexpr double kMicro = 1e-6;

struct Families {
  std::vector<MetricFamily> all;

  MetricFamily& Add(const char* name, const char* help, MetricType type = MetricType::Gauge) {
    all.push_back({name, help, type, {}});
    return all.back();
  }
};

void Gauge(MetricFamily& family, const Labels& labels, double value) {
  ClientMetric metric;
  metric.label = labels;
  metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

// Label values are texts of other programs: what is no UTF-8 letter of ASCII becomes '?'.
std::string Clean(const std::string& text) {
  std::string out = text.substr(0, 128);
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

std::string Device(const Card& card) { return fmt::format("npu{}", card.id); }

// Memory by container on one card.
std::map<std::string, uint64_t> ContainersOf(const Card& card) {
  std::map<std::string, uint64_t> containers;
  for (const Process& process : card.processes) {
    if (!process.container_id.empty()) containers[process.container_id] += process.memory_bytes;
  }
  return containers;
}
// How the container is called: without a cluster's own tables its id, shortened as container tools do.
std::string ContainerName(const std::string& id) { return Clean(id.substr(0, 12)); }

// The seven labels of a card in the stock exporter. Namespace and pod are a cluster's words; they stay empty.
Labels StockLabels(const Card& card, const std::string& container) {
  return {{"container_name", ContainerName(container)},
          {"id", fmt::format("{}", card.id)},
          {"model_name", Clean(card.model)},
          {"namespace", ""},
          {"pcie_bus_info", Clean(card.bus)},
          {"pod_name", ""},
          {"vdie_id", Clean(card.die_id)}};
}
Labels StockLabels(const Card& card) {
  const auto containers = ContainersOf(card);
  return StockLabels(card, containers.empty() ? std::string() : containers.begin()->first);
}
Labels With(Labels labels, const char* name, std::string value) {
  labels.push_back({name, std::move(value)});
  return labels;
}

using Value = std::optional<double> (*)(const Card&);

template <class T>
std::optional<double> Scaled(const std::optional<T>& value, double factor) {
  return value ? std::optional<double>(static_cast<double>(*value) * factor) : std::nullopt;
}
template <class T>
std::optional<double> Same(const std::optional<T>& value) {
  return Scaled(value, 1);
}
std::optional<double> Used(const Card& c) {
  return c.answers ? Same(c.hbm_used_bytes ? c.hbm_used_bytes : c.ddr_used_bytes) : std::nullopt;
}
std::optional<double> Total(const Card& c) { return Same(c.hbm_total_bytes ? c.hbm_total_bytes : c.ddr_total_bytes); }
template <uint64_t EccCounts::*field>
std::optional<double> Ecc(const Card& c) {
  return c.ecc ? std::optional<double>(static_cast<double>((*c.ecc).*field)) : std::nullopt;
}

struct Row {
  const char* name;
  const char* help;
  Value value;
};

// Stock names; the unit is the stock one, as the help says.
constexpr Row kStock[] = {
    {"npu_chip_info_utilization", "AI core use, percent", [](const Card& c) { return Scaled(c.core_use, 100); }},
    {"npu_chip_info_vector_utilization", "Vector core use, percent",
     [](const Card& c) { return Scaled(c.vector_use, 100); }},
    {"npu_chip_info_cube_utilization", "Cube core use, percent", [](const Card& c) { return Scaled(c.cube_use, 100); }},
    {"npu_chip_info_overall_utilization", "Use of the whole chip, percent",
     [](const Card& c) { return Scaled(c.overall_use, 100); }},
    {"npu_chip_info_temperature", "Chip temperature, degrees Celsius",
     [](const Card& c) { return Same(c.temperature_c); }},
    {"npu_chip_info_power", "Power, W", [](const Card& c) { return Same(c.power_w); }},
    {"npu_chip_info_voltage", "Voltage, V", [](const Card& c) { return Same(c.voltage_v); }},
    {"npu_chip_info_aicore_current_freq", "Present AI core clock, MHz", [](const Card& c) { return Same(c.core_mhz); }},
    {"npu_chip_info_health_status", "1 healthy, 0 not",
     [](const Card& c) -> std::optional<double> {
       if (!c.answers) return 0;
       return c.health ? std::optional<double>(*c.health == 0 ? 1 : 0) : std::nullopt;
     }},
    {"npu_chip_info_hbm_used_memory", "HBM in use, MB",
     [](const Card& c) { return Scaled(c.hbm_used_bytes, 1 / kMegabyte); }},
    {"npu_chip_info_hbm_total_memory", "HBM, MB",
     [](const Card& c) { return Scaled(c.hbm_total_bytes, 1 / kMegabyte); }},
    {"npu_chip_info_hbm_utilization", "HBM in use, percent",
     [](const Card& c) -> std::optional<double> {
       if (!c.hbm_used_bytes || !c.hbm_total_bytes || *c.hbm_total_bytes == 0) return std::nullopt;
       return 100.0 * static_cast<double>(*c.hbm_used_bytes) / static_cast<double>(*c.hbm_total_bytes);
     }},
    {"npu_chip_info_hbm_temperature", "HBM temperature, degrees Celsius",
     [](const Card& c) { return Same(c.hbm_temperature_c); }},
    {"npu_chip_info_hbm_bandwidth_utilization", "HBM bandwidth in use, percent",
     [](const Card& c) { return Scaled(c.bandwidth_use, 100); }},
    {"npu_chip_info_hbm_ecc_enable_flag", "Whether HBM ECC is on",
     [](const Card& c) { return c.ecc ? std::optional<double>(c.ecc->enabled ? 1 : 0) : std::nullopt; }},
    {"npu_chip_info_hbm_ecc_single_bit_error_cnt", "HBM single bit errors", Ecc<&EccCounts::single_bit>},
    {"npu_chip_info_hbm_ecc_double_bit_error_cnt", "HBM double bit errors", Ecc<&EccCounts::double_bit>},
    {"npu_chip_info_hbm_ecc_total_single_bit_error_cnt", "HBM single bit errors of the card's life",
     Ecc<&EccCounts::single_bit_total>},
    {"npu_chip_info_hbm_ecc_total_double_bit_error_cnt", "HBM double bit errors of the card's life",
     Ecc<&EccCounts::double_bit_total>},
    {"npu_chip_info_hbm_ecc_single_bit_isolated_pages_cnt", "HBM pages isolated for single bit errors",
     Ecc<&EccCounts::single_bit_pages>},
    {"npu_chip_info_hbm_ecc_double_bit_isolated_pages_cnt", "HBM pages isolated for double bit errors",
     Ecc<&EccCounts::double_bit_pages>},
    {"npu_chip_info_used_memory", "DDR in use, MB",
     [](const Card& c) { return Scaled(c.ddr_used_bytes, 1 / kMegabyte); }},
    {"npu_chip_info_total_memory", "DDR, MB", [](const Card& c) { return Scaled(c.ddr_total_bytes, 1 / kMegabyte); }},
    {"npu_chip_info_network_status", "1 reachable, 0 not", [](const Card& c) { return Same(c.link.reachable); }},
    {"npu_chip_info_link_status", "1 up, 0 down", [](const Card& c) { return Same(c.link.up); }},
    {"npu_chip_link_speed", "Speed of the network port, Mb/s",
     [](const Card& c) { return Scaled(c.link.speed_bits_per_s, 1e-6); }},
    {"npu_chip_link_up_num", "How often the network port came up", [](const Card& c) { return Same(c.link.times_up); }},
    {"npu_chip_info_bandwidth_tx", "Sent through the network port, MB/s",
     [](const Card& c) { return Scaled(c.link.send_bytes_per_s, 1e-6); }},
    {"npu_chip_info_bandwidth_rx", "Received through the network port, MB/s",
     [](const Card& c) { return Scaled(c.link.receive_bytes_per_s, 1e-6); }},
    {"npu_chip_info_process_info_num", "Processes that use the card",
     [](const Card& c) { return std::optional<double>(static_cast<double>(c.processes.size())); }},
};

// The same in base units, and what only we have. One label: device.
constexpr Row kOwn[] = {
    {"npu_card_up", "1 while the card answers, 0 once it is lost",
     [](const Card& c) { return std::optional<double>(c.answers ? 1 : 0); }},
    {"npu_power_watts", "Power", [](const Card& c) { return Same(c.power_w); }},
    {"npu_temperature_celsius", "Chip temperature", [](const Card& c) { return Same(c.temperature_c); }},
    {"npu_hbm_temperature_celsius", "HBM temperature", [](const Card& c) { return Same(c.hbm_temperature_c); }},
    {"npu_voltage_volts", "Voltage", [](const Card& c) { return Same(c.voltage_v); }},
    {"npu_core_frequency_hertz", "Present AI core clock", [](const Card& c) { return Scaled(c.core_mhz, 1e6); }},
    {"npu_core_utilization_ratio", "AI core use", [](const Card& c) { return Same(c.core_use); }},
    {"npu_vector_utilization_ratio", "Vector core use", [](const Card& c) { return Same(c.vector_use); }},
    {"npu_cube_utilization_ratio", "Cube core use", [](const Card& c) { return Same(c.cube_use); }},
    {"npu_overall_utilization_ratio", "Use of the whole chip", [](const Card& c) { return Same(c.overall_use); }},
    {"npu_memory_bandwidth_utilization_ratio", "Memory bandwidth in use",
     [](const Card& c) { return Same(c.bandwidth_use); }},
    {"npu_memory_used_bytes", "Device memory in use", Used},
    {"npu_memory_total_bytes", "Device memory", Total},
    {"npu_memory_fragmentation_ratio", "1 - largest free range / free memory",
     [](const Card& c) { return Same(c.fragmentation); }},
    {"npu_health_level", "0 good, 1 minor, 2 major, 3 critical alarm", [](const Card& c) { return Same(c.health); }},
    {"npu_ecc_single_bit_errors", "HBM single bit errors", Ecc<&EccCounts::single_bit>},
    {"npu_ecc_double_bit_errors", "HBM double bit errors", Ecc<&EccCounts::double_bit>},
    {"npu_link_up", "1 while the network port is up", [](const Card& c) { return Same(c.link.up); }},
    {"npu_link_send_bytes_per_second", "Sent through the network port",
     [](const Card& c) { return Same(c.link.send_bytes_per_s); }},
    {"npu_link_receive_bytes_per_second", "Received through the network port",
     [](const Card& c) { return Same(c.link.receive_bytes_per_s); }},
    {"hccl_send_queue_length", "Collectives that were called and are not over",
     [](const Card& c) { return Same(c.send_queue); }},
    {"hccl_recv_queue_length", "Collectives that were called and have not got the data of all peers",
     [](const Card& c) { return Same(c.receive_queue); }},
};

void AddProcesses(Families& out, const Reading& reading) {
  MetricFamily stock{"npu_chip_info_process_info", "Memory of a process on the card, MB", MetricType::Gauge, {}};
  MetricFamily own{"npu_process_memory_bytes", "Memory of a process on the card", MetricType::Gauge, {}};
  for (const Card& card : reading.cards) {
    std::set<int> seen;  // a series must not come twice
    for (const Process& process : card.processes) {
      if (!seen.insert(process.pid).second) continue;
      Labels labels = StockLabels(card, process.container_id);
      labels.push_back({"container_id", Clean(process.container_id)});
      labels.push_back({"process_id", fmt::format("{}", process.pid)});
      Gauge(stock, labels, static_cast<double>(process.memory_bytes) / kMegabyte);
      Gauge(own, {{"device", Device(card)}, {"pid", fmt::format("{}", process.pid)}, {"process", Clean(process.name)}},
            static_cast<double>(process.memory_bytes));
    }
  }
  out.all.push_back(std::move(stock));
  out.all.push_back(std::move(own));
}

void AddContainers(Families& out, const Reading& reading) {
  MetricFamily info{"npu_container", "A container that uses the card", MetricType::Gauge, {}};
  MetricFamily use{"container_npu_utilization", "AI core use of the container's card, percent", MetricType::Gauge, {}};
  MetricFamily total{"container_npu_total_memory", "Memory of the container's card, MB", MetricType::Gauge, {}};
  MetricFamily used{"container_npu_used_memory", "Memory of the container on the card, MB", MetricType::Gauge, {}};
  MetricFamily own{"npu_container_memory_bytes", "Memory of the container on the card", MetricType::Gauge, {}};
  for (const Card& card : reading.cards) {
    for (const auto& [id, bytes] : ContainersOf(card)) {
      const Labels labels = StockLabels(card, id);
      Gauge(info, With(labels, "container_id", Clean(id)), 1);
      if (card.core_use) Gauge(use, labels, *card.core_use * 100);
      if (card.hbm_total_bytes) Gauge(total, labels, static_cast<double>(*card.hbm_total_bytes) / kMegabyte);
      Gauge(used, labels, static_cast<double>(bytes) / kMegabyte);
      Gauge(own, {{"container", Clean(id)}, {"device", Device(card)}}, static_cast<double>(bytes));
    }
  }
  for (MetricFamily* family : {&info, &use, &total, &used, &own}) out.all.push_back(std::move(*family));
}

void AddNames(Families& out, const Reading& reading) {
  Gauge(out.Add("machine_npu_nums", "NPUs of this machine"), {}, static_cast<double>(reading.cards.size()));
  Gauge(out.Add("npu_exporter_build_info", "The exporter and where its figures come from"),
        {{"driver", Clean(reading.driver)}, {"source", reading.source}, {"version", NPU_VERSION}}, 1);
  MetricFamily& names = out.Add("npu_chip_info_name", "The card's name");
  for (const Card& card : reading.cards) {
    Labels labels = StockLabels(card);
    for (auto& label : labels) {
      if (label.name == "model_name") label.name = "name";
    }
    Gauge(names, labels, 1);
  }
  MetricFamily& serials = out.Add("npu_chip_info_serial_number", "The card's serial number");
  for (const Card& card : reading.cards) {
    if (!card.serial.empty()) Gauge(serials, With(StockLabels(card), "serial_number", Clean(card.serial)), 1);
  }
}

// The first code in npu_chip_info_error_code, 0 when there is none; the others in _1 to _9.
void AddErrorCodes(Families& out, const Reading& reading) {
  for (size_t i = 0; i < kMostErrorCodes; ++i) {
    const std::string name = i == 0 ? "npu_chip_info_error_code" : fmt::format("npu_chip_info_error_code_{}", i);
    MetricFamily& family = out.Add(name.c_str(), "A fault code that is present; 0 when there is none");
    for (const Card& card : reading.cards) {
      if (i < card.error_codes.size()) {
        Gauge(family, StockLabels(card), card.error_codes[i]);
      } else if (i == 0) {
        Gauge(family, StockLabels(card), 0);
      }
    }
  }
}

// What a card did since its machine was made.
void AddWork(Families& out, const Reading& reading) {
  constexpr struct {
    const char* name;
    const char* help;
    const char* label;
    std::vector<Done> Work::*sums;
  } kSums[] = {{"npu_busy_seconds_total", "Time in which a part of the card worked", "unit", &Work::busy_s},
               {"npu_tasks_total", "Tasks that a part of the card ran to their end", "unit", &Work::tasks},
               {"npu_moved_bytes_total", "Bytes that kernels, copies and collectives moved", "flow", &Work::bytes}};
  for (const auto& row : kSums) {
    MetricFamily& family = out.Add(row.name, row.help, MetricType::Counter);
    for (const Card& card : reading.cards) {
      if (!card.work) continue;
      for (const Done& done : (*card.work).*row.sums) {
        ClientMetric metric;
        metric.label = {{"device", Device(card)}, {row.label, done.name}};
        metric.counter.value = done.value;
        family.metric.push_back(std::move(metric));
      }
    }
  }
}

void AddOperators(Families& out, const Reading& reading) {
  MetricFamily micro{"acl_op_execute_time", "Run time of operators, microseconds", MetricType::Histogram, {}};
  MetricFamily seconds{"acl_op_execute_time_seconds", "Run time of operators", MetricType::Histogram, {}};
  for (const Operator& op : reading.operators) {
    ClientMetric metric;
    metric.label = {{"op_name", Clean(op.name)}};
    uint64_t below = 0;
    for (size_t i = 0; i < op.counts.size(); ++i) {
      below += op.counts[i];
      if (i < kOperatorBoundsUs.size()) metric.histogram.bucket.push_back({below, kOperatorBoundsUs[i]});
    }
    metric.histogram.sample_count = below;
    metric.histogram.sample_sum = op.sum_us;
    ClientMetric twin = metric;
    twin.histogram.sample_sum *= kMicro;
    for (auto& bucket : twin.histogram.bucket) bucket.upper_bound *= kMicro;
    micro.metric.push_back(std::move(metric));
    seconds.metric.push_back(std::move(twin));
  }
  out.all.push_back(std::move(micro));
  out.all.push_back(std::move(seconds));
}

void AddOwn(Families& out, const Reading& reading) {
  MetricFamily& faults = out.Add("npu_injected_faults", "Faults that were asked for with anynpu inject");
  std::map<std::string, int> by_name;
  for (const std::string& fault : reading.faults) ++by_name[fault];
  for (const auto& [name, count] : by_name) Gauge(faults, {{"fault", Clean(name)}}, count);
  Gauge(out.Add("npu_collector_problems", "Things the last reading could not read"), {},
        static_cast<double>(reading.problems.size()));
}

ClientMetric::Summary SummaryOf(uint64_t count, double sum, std::vector<double> recent) {
  ClientMetric::Summary summary;
  summary.sample_count = count;
  summary.sample_sum = sum;
  if (recent.empty()) return summary;
  std::sort(recent.begin(), recent.end());
  for (const double q : {0.5, 0.9, 0.99}) {
    summary.quantile.push_back(
        {q, recent[std::min(recent.size() - 1, static_cast<size_t>(q * static_cast<double>(recent.size())))]});
  }
  return summary;
}

}  // namespace

std::vector<MetricFamily> CardFamilies(const Reading& reading) {
  Families out;
  AddNames(out, reading);
  for (const Row& row : kStock) {
    MetricFamily& family = out.Add(row.name, row.help);
    for (const Card& card : reading.cards) {
      const std::optional<double> value = row.value(card);
      if (value) Gauge(family, StockLabels(card), *value);
    }
  }
  AddErrorCodes(out, reading);
  AddNetwork(
      reading, [](const Card& card) { return StockLabels(card); },
      [](const Card& card) {
        return Labels{{"device", Device(card)}};
      },
      out.all);
  AddProcesses(out, reading);
  AddContainers(out, reading);
  for (const Row& row : kOwn) {
    MetricFamily& family = out.Add(row.name, row.help);
    for (const Card& card : reading.cards) {
      const std::optional<double> value = row.value(card);
      if (value) Gauge(family, {{"device", Device(card)}}, *value);
    }
  }
  AddWork(out, reading);
  AddOperators(out, reading);
  AddOwn(out, reading);
  return std::move(out.all);
}

std::vector<MetricFamily> RankFamilies(const Reading& reading) {
  MetricFamily own{
      "npu_step_time_seconds", "A step's own work: wall time without waiting for peers", MetricType::Summary, {}};
  MetricFamily wall{"npu_step_wall_time_seconds", "A step's wall time", MetricType::Summary, {}};
  std::set<std::pair<int, int>> seen;
  for (const Rank& rank : reading.ranks) {
    if (!seen.insert({rank.rank, rank.card}).second) continue;
    ClientMetric metric;
    metric.label = {{"device", fmt::format("npu{}", rank.card)},
                    {"rank", fmt::format("{}", rank.rank)},
                    {"ranks", fmt::format("{}", rank.ranks)}};
    metric.summary = SummaryOf(rank.steps, rank.own_s, rank.recent_own_s);
    own.metric.push_back(metric);
    metric.summary = SummaryOf(rank.steps, rank.wall_s, rank.recent_wall_s);
    wall.metric.push_back(std::move(metric));
  }
  return {std::move(own), std::move(wall)};
}

}  // namespace npu::monitor
