#include "shim/hccl/rank_table.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "coll/rendezvous/root_info.h"

namespace npu::hccl {
namespace {

// Numbers stand in quotes in most tables, and bare in some.
bool Number(const nlohmann::json& object, const char* key, int64_t* value) {
  const auto at = object.find(key);
  if (at == object.end()) return false;
  if (at->is_number_integer()) {
    *value = at->get<int64_t>();
    return *value >= 0;
  }
  if (!at->is_string()) return false;
  const std::string& text = at->get_ref<const std::string&>();
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  *value = std::stoll(text);
  return true;
}

}  // namespace

Result<RankTable> ParseRankTable(const std::string& text, const std::string& path, const char* function) {
  const auto bad = [&](const std::string& what) {
    return Error(Code::kInternal, "EI0004: {}: rank table {}: {}.", function, path, what)
        .Remedy("Give it a server_list whose servers have a server_id and a device list with device_id and rank_id.");
  };
  const nlohmann::json table = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (table.is_discarded() || !table.is_object()) return bad("no JSON object");
  const auto servers = table.find("server_list");
  if (servers == table.end() || !servers->is_array() || servers->empty()) return bad("no server_list");
  RankTable read;
  std::set<int64_t> ranks;
  uint64_t print = 1469598103934665603ull;
  for (const auto& server : *servers) {
    const auto devices = server.is_object() ? server.find("device") : server.end();
    if (!server.is_object() || devices == server.end() || !devices->is_array())
      return bad("a server without a device list");
    const std::string address = server.value("host_ip", server.value("server_id", std::string()));
    for (const auto& device : *devices) {
      int64_t id = 0, rank = 0;
      if (!device.is_object() || !Number(device, "device_id", &id) || !Number(device, "rank_id", &rank)) {
        return bad("a device without device_id and rank_id");
      }
      if (!ranks.insert(rank).second) return bad(fmt::format("rank {} stands in it twice", rank));
      for (const char c : fmt::format("{}:{}:{};", address, id, rank))
        print = (print ^ static_cast<uint8_t>(c)) * 1099511628211ull;
      if (rank == 0) {
        read.root_device = static_cast<int>(id);
        if (servers->size() > 1) read.root_address = address;
      }
    }
  }
  if (ranks.empty() || *ranks.rbegin() != static_cast<int64_t>(ranks.size()) - 1)
    return bad("its ranks are not 0 to their number");
  read.ranks = static_cast<uint32_t>(ranks.size());
  read.id = fmt::format("table-{:016x}", print);
  // A table is no secret; with this variable, the same on all ranks, strangers cannot take a seat.
  if (const char* token = std::getenv("ANYNPU_HCCL_JOB_TOKEN"); token != nullptr && *token != 0) {
    read.id = coll::DerivedId(token, read.id);
  }
  return read;
}

Result<RankTable> ReadRankTable(const std::string& path, const char* function) {
  std::ifstream in(path);
  if (!in) {
    return Error(Code::kInternal, "EI0004: {}: rank table {} cannot be read.", function, path)
        .Remedy("Check RANK_TABLE_FILE.");
  }
  std::ostringstream text;
  text << in.rdbuf();
  return ParseRankTable(text.str(), path, function);
}

}  // namespace npu::hccl
