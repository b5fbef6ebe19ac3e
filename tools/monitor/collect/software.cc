#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/extras/port.h"
#include "device/figures/read.h"
#include "device/machine/machine.h"
#include "device/meters/read.h"
#include "tools/monitor/collect/collector.h"
#include "tools/monitor/collect/files.h"
#include "tools/monitor/expose/operators.h"

namespace npu::monitor {
namespace {

static_assert(kOperatorBoundsUs.size() == device::kMeterBoundsNs.size());

constexpr double kHccsWindowS = 0.1;  // of the figures' model
constexpr uint64_t kFlitBytes = 64;

// A stable number for a chip of a named machine: what DCMI of the software device answers too (shim/dcmi/identity.cc).
uint32_t DieWord(const std::string& machine, int logic, int word) {
  constexpr int kVDie = 1;
  uint32_t hash = 2166136261u;
  for (const unsigned char c : fmt::format("anynpu/{}/{}/{}/{}", machine, logic, kVDie, word))
    hash = (hash ^ c) * 16777619u;
  return hash;
}

// Sums of operators and steps grow as long as this program runs: what a process had done when it was last seen stays in
// them after it has ended.
class Software final : public Collector {
 public:
  explicit Software(std::string proc) : proc_(std::move(proc)) {}

  Reading Read() override {
    Reading reading;
    reading.source = "software";
    Result<device::MachineConfig> config = device::ConfigFromEnvironment();
    if (!config.ok()) {
      reading.problems.emplace_back(config.status().text());
      return reading;
    }
    Result<device::MachineFigures> figures = device::ReadFigures(*config);
    if (!figures.ok()) {
      reading.problems.emplace_back(figures.status().text());
      return reading;
    }
    reading.driver = figures->driver;
    for (const device::CardFigures& card : figures->cards) reading.cards.push_back(CardOf(*figures, card));
    for (const device::FaultFigures& fault : figures->faults) reading.faults.push_back(fault.name);
    Result<std::vector<device::ProcessReading>> meters = device::ReadMeters(*config);
    if (!meters.ok()) {
      reading.problems.emplace_back(meters.status().text());
      return reading;
    }
    Follow(*meters);
    Queues(*meters, reading);
    for (const auto& [name, op] : operators_) reading.operators.push_back(op);
    for (const auto& [place, rank] : ranks_) reading.ranks.push_back(rank);
    return reading;
  }

 private:
  Card CardOf(const device::MachineFigures& machine, const device::CardFigures& from) const {
    Card card;
    card.id = from.logic;
    card.answers = from.present;
    card.model = fmt::format("{}-Ascend-V1", machine.profile->chip);
    for (int word = 0; word < 5; ++word)
      card.die_id += fmt::format("{}{:08X}", word == 0 ? "" : "-", DieWord(machine.name, from.logic, word));
    card.serial = fmt::format("anynpu-{}-{}", machine.name, from.logic / std::max(1, machine.profile->dies_per_card));
    card.bus = device::BusId(from.logic / std::max(1, machine.profile->dies_per_card));
    if (!from.present) return card;
    card.power_w = from.power_w;
    card.temperature_c = from.chip_c;
    card.hbm_temperature_c = from.hbm_c;
    card.voltage_v = from.voltage_v;
    card.core_mhz = from.core_mhz;
    card.core_use = from.use_core;
    card.vector_use = from.use_vector;
    card.cube_use = from.use_cube;
    card.overall_use = from.use_any;
    card.bandwidth_use = from.use_bandwidth;
    (machine.profile->ddr ? card.ddr_used_bytes : card.hbm_used_bytes) = from.used_bytes;
    (machine.profile->ddr ? card.ddr_total_bytes : card.hbm_total_bytes) = from.total_bytes;
    card.fragmentation = from.fragmentation_ratio;
    card.health = from.health;
    card.error_codes = from.fault_codes;
    card.ecc = EccCounts{from.ecc_enabled,     from.ecc_single,      from.ecc_double,     from.ecc_single_life,
                         from.ecc_double_life, from.isolated_single, from.isolated_double};
    if (!machine.profile->ddr) Links(machine, from, card);
    card.pcie = Pcie{.tx_p = Rate(from, device::Flow::kToHost), .rx_cpl = Rate(from, device::Flow::kToDevice)};
    card.work = WorkOf(from);
    for (const device::CardProcess& process : from.processes)
      card.processes.push_back({process.pid, process.command, process.used_bytes, ContainerOf(proc_, process.pid),
                                process.busy_s[static_cast<size_t>(device::Unit::kCube)] +
                                    process.busy_s[static_cast<size_t>(device::Unit::kVector)]});
    return card;
  }

  static double PerSecond(const device::CardFigures& from, device::Flow flow) {
    return from.bytes_per_s[static_cast<size_t>(flow)];
  }
  // One window is known, so the least and the most of it are its mean.
  static PcieRate Rate(const device::CardFigures& from, device::Flow flow) {
    return {PerSecond(from, flow), PerSecond(from, flow), PerSecond(from, flow)};
  }

  // The network port, HCCS and the link between dies, as DCMI and hccn_tool of the software device tell them too.
  static void Links(const device::MachineFigures& machine, const device::CardFigures& from, Card& card) {
    card.link.up = from.link_up;
    card.link.reachable = from.link_up;
    card.link.speed_bits_per_s = kPortMegabitsPerS * 1e6;
    card.link.times_up = from.link_ups + 1;  // it came up with the machine
    card.link.send_bytes_per_s = PerSecond(from, device::Flow::kLinkSend);
    card.link.receive_bytes_per_s = PerSecond(from, device::Flow::kLinkReceive);
    CardExtras extras;
    extras.link_up = from.link_up ? 1 : 0;
    extras.packets_lost = from.packets_lost;
    extras.sent_bytes = from.bytes[static_cast<size_t>(device::Flow::kLinkSend)];
    extras.received_bytes = from.bytes[static_cast<size_t>(device::Flow::kLinkReceive)];
    card.port = PortCounters(extras);
    const OpticalModule module = OpticalModuleOf(extras);
    card.optical = Optical{.present = true, .temperature_c = module.temperature_c, .supply_v = module.supply_mv / 1e3};
    for (size_t lane = 0; lane < kOpticalLanes; ++lane) {
      card.optical->send_w[lane] = module.send_mw[lane] / 1e3;
      card.optical->receive_w[lane] = module.receive_mw[lane] / 1e3;
    }
    if (machine.profile->dies_per_card > 1) card.die_link_errors = {0, 0};
    card.hccs = HccsOf(extras, from, HccsLinks(machine.cards.size()));
  }

  static Hccs HccsOf(const CardExtras& extras, const device::CardFigures& from, int links) {
    Hccs hccs{.watched_s = kHccsWindowS,
              .send_bytes_per_s = PerSecond(from, device::Flow::kLinkSend),
              .receive_bytes_per_s = PerSecond(from, device::Flow::kLinkReceive)};
    for (int link = 1; link <= links; ++link) {
      const auto share = [&](uint64_t bytes) { return bytes / kFlitBytes / static_cast<unsigned>(links); };
      hccs.lanes.push_back({.number = link,
                            .send_bytes_per_s = hccs.send_bytes_per_s / links,
                            .receive_bytes_per_s = hccs.receive_bytes_per_s / links,
                            .sent_flits = share(extras.sent_bytes),
                            .received_flits = share(extras.received_bytes),
                            .crc_errors = link == 1 ? extras.packets_lost : 0});
    }
    return hccs;
  }

  static Work WorkOf(const device::CardFigures& from) {
    constexpr std::array<const char*, device::kUnits> kUnitNames = {"cube", "vector", "copy", "link"};
    constexpr std::array<const char*, device::kFlows> kFlowNames = {"kernel",  "to_device", "to_host",     "on_device",
                                                                    "to_peer", "link_send", "link_receive"};
    Work work;
    for (size_t unit = 0; unit < device::kUnits; ++unit) {
      work.busy_s.push_back({kUnitNames[unit], from.busy_s[unit]});
      work.tasks.push_back({kUnitNames[unit], static_cast<double>(from.tasks[unit])});
    }
    for (size_t flow = 0; flow < device::kFlows; ++flow)
      work.bytes.push_back({kFlowNames[flow], static_cast<double>(from.bytes[flow])});
    return work;
  }

  static uint64_t Grown(uint64_t now, uint64_t before) { return now >= before ? now - before : now; }

  void Follow(const std::vector<device::ProcessReading>& processes) {
    std::map<uint32_t, device::ProcessReading> now;
    for (const device::ProcessReading& process : processes) {
      const auto before = last_.find(process.slot);
      const bool known = before != last_.end() && before->second.pid == process.pid;
      for (size_t i = 0; i < process.ops.size(); ++i) {
        const device::OpReading& op = process.ops[i];
        const bool same = known && i < before->second.ops.size() && before->second.ops[i].name == op.name;
        const device::OpReading* old = same ? &before->second.ops[i] : nullptr;
        Operator& sum = operators_[OperatorName(op.name)];
        if (sum.name.empty()) sum.name = OperatorName(op.name);
        sum.sum_us += static_cast<double>(Grown(op.sum_ns, old != nullptr ? old->sum_ns : 0)) / 1e3;
        for (size_t b = 0; b < op.buckets.size(); ++b)
          sum.counts[b] += Grown(op.buckets[b], old != nullptr ? old->buckets[b] : 0);
      }
      for (const device::RankReading& rank : process.ranks) {
        const device::RankReading* old = nullptr;
        if (known) {
          for (const device::RankReading& r : before->second.ranks) {
            if (r.card == rank.card) old = &r;
          }
        }
        AddSteps(rank, old);
      }
      now[process.slot] = process;
    }
    last_ = std::move(now);
  }

  void AddSteps(const device::RankReading& rank, const device::RankReading* old) {
    Rank& sum = ranks_[{static_cast<int>(rank.rank), rank.card}];
    sum.card = rank.card;
    sum.rank = static_cast<int>(rank.rank);
    sum.ranks = std::max(1, static_cast<int>(rank.ranks));  // 0: it belongs to no communicator
    sum.steps += Grown(rank.steps, old != nullptr ? old->steps : 0);
    sum.own_s += static_cast<double>(Grown(rank.own_ns, old != nullptr ? old->own_ns : 0)) / 1e9;
    sum.wall_s += static_cast<double>(Grown(rank.wall_ns, old != nullptr ? old->wall_ns : 0)) / 1e9;
    sum.recent_own_s.clear();
    sum.recent_wall_s.clear();
    for (const uint32_t us : rank.recent_own_us) sum.recent_own_s.push_back(us / 1e6);
    for (const uint32_t us : rank.recent_wall_us) sum.recent_wall_s.push_back(us / 1e6);
  }

  static void Queues(const std::vector<device::ProcessReading>& processes, Reading& reading) {
    for (Card& card : reading.cards) {
      if (!card.answers) continue;
      uint64_t send = 0, receive = 0;
      for (const device::ProcessReading& process : processes) {
        for (const device::RankReading& rank : process.ranks) {
          if (rank.card != card.id) continue;
          send += rank.issued - rank.completed;
          receive += rank.issued - rank.received;
        }
      }
      card.send_queue = send;
      card.receive_queue = receive;
    }
  }

  const std::string proc_;
  std::map<uint32_t, device::ProcessReading> last_;  // by slot
  std::map<std::string, Operator> operators_;
  std::map<std::pair<int, int>, Rank> ranks_;  // by rank and card
};

}  // namespace

std::unique_ptr<Collector> SoftwareCollector(const CollectorOptions& options) {
  return std::make_unique<Software>(options.proc);
}

}  // namespace npu::monitor
