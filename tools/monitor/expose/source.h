// One reading for everybody who asks: scrapes, the page and the terminal share it, so that a storm of requests costs no
// more than one.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "tools/monitor/collect/collector.h"

namespace npu::monitor {

class Source {
 public:
  explicit Source(std::unique_ptr<Collector> collector) : collector_(std::move(collector)) {}
  // At most 200 ms old. New problems are written to stderr once, and once more when they have gone.
  std::shared_ptr<const Reading> Now();
  // The exposition of the cards (npu-exporter) and of the ranks (npu-trainer).
  std::shared_ptr<const std::string> Cards();
  std::shared_ptr<const std::string> Ranks();

 private:
  using Clock = std::chrono::steady_clock;
  void Refresh();
  void RememberLost(Reading& reading);
  void Tell(const Reading& reading);

  std::mutex mutex_;
  std::unique_ptr<Collector> collector_;
  Clock::time_point read_at_{};
  std::shared_ptr<const Reading> reading_;
  std::shared_ptr<const std::string> cards_, ranks_;  // of reading_, when asked for
  std::map<int, Card> known_;                         // cards that once answered
  std::set<std::string> told_;
};

}  // namespace npu::monitor
