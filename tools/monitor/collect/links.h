// What a driver takes long to tell: traffic that it watches for a while, and what hccn_tool answers. A thread of its
// own asks round after round, so that a scrape costs no waiting.
//
//   Links links(dcmi, FindPortTool(options.hccn_tool));
//   links.Watch(chips);          // whenever cards were listed; the first call waits for the first round
//   links.Fill(card, problems);  // what the last round found
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/monitor/collect/port.h"
#include "tools/monitor/reading.h"
#include "tools/smi/dcmi.h"
#include "tools/smi/query.h"

namespace npu::monitor {

struct LinkedChip {
  smi::ChipId id;
  int logic = 0, physical = 0;
};

class Links {
 public:
  Links(const smi::Dcmi& dcmi, std::string tool);
  ~Links();
  void Watch(std::vector<LinkedChip> chips);
  void Fill(Card& card, std::vector<std::string>& problems);

 private:
  struct Found {
    PortReading port;
    std::optional<Pcie> pcie;
    std::optional<Hccs> hccs;
  };
  void Run();
  Found Ask(const LinkedChip& chip) const;

  const smi::Dcmi& dcmi_;
  const std::string tool_;
  std::mutex mutex_;  // for what follows; no driver is asked under it
  std::condition_variable changed_;
  std::vector<LinkedChip> chips_;
  std::map<int, Found> found_;  // by logic id
  uint64_t rounds_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace npu::monitor
