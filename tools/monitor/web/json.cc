#include "tools/monitor/web/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace npu::monitor {
namespace {

using Json = nlohmann::json;

template <class T>
Json Or(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json CardJson(const Card& card) {
  Json processes = Json::array();
  for (const Process& p : card.processes)
    processes.push_back({{"pid", p.pid},
                         {"name", p.name},
                         {"bytes", p.memory_bytes},
                         {"core_s", Or(p.core_s)},
                         {"container", p.container_id.substr(0, 12)}});
  const auto& used = card.hbm_used_bytes ? card.hbm_used_bytes : card.ddr_used_bytes;
  const auto& total = card.hbm_total_bytes ? card.hbm_total_bytes : card.ddr_total_bytes;
  return {{"id", card.id},
          {"answers", card.answers},
          {"model", card.model},
          {"bus", card.bus},
          {"health", Or(card.health)},
          {"codes", card.error_codes},
          {"power_w", Or(card.power_w)},
          {"temperature_c", Or(card.temperature_c)},
          {"core_mhz", Or(card.core_mhz)},
          {"core_use", Or(card.core_use)},
          {"vector_use", Or(card.vector_use)},
          {"bandwidth_use", Or(card.bandwidth_use)},
          {"used_bytes", Or(used)},
          {"total_bytes", Or(total)},
          {"fragmentation", Or(card.fragmentation)},
          {"ecc_single", card.ecc ? Json(card.ecc->single_bit) : Json(nullptr)},
          {"ecc_double", card.ecc ? Json(card.ecc->double_bit) : Json(nullptr)},
          {"link_up", Or(card.link.up)},
          {"send_bytes_per_s", Or(card.link.send_bytes_per_s)},
          {"receive_bytes_per_s", Or(card.link.receive_bytes_per_s)},
          {"send_queue", Or(card.send_queue)},
          {"receive_queue", Or(card.receive_queue)},
          {"processes", std::move(processes)}};
}

}  // namespace

std::string JsonOf(const Reading& reading) {
  Json out = {{"source", reading.source},
              {"driver", reading.driver},
              {"faults", reading.faults},
              {"problems", reading.problems}};
  Json& cards = out["cards"] = Json::array();
  for (const Card& card : reading.cards) cards.push_back(CardJson(card));
  Json& operators = out["operators"] = Json::array();
  for (const Operator& op : reading.operators) {
    uint64_t count = 0;
    for (const uint64_t c : op.counts) count += c;
    operators.push_back({{"name", op.name}, {"count", count}, {"sum_us", op.sum_us}});
  }
  Json& ranks = out["ranks"] = Json::array();
  for (const Rank& rank : reading.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"card", rank.card},
                     {"ranks", rank.ranks},
                     {"steps", rank.steps},
                     {"own_s", rank.own_s},
                     {"wall_s", rank.wall_s}});
  }
  // Texts of other programs may be no UTF-8.
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace npu::monitor
