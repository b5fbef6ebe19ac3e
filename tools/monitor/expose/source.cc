#include "tools/monitor/expose/source.h"

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cstdio>

#include "tools/monitor/expose/families.h"

namespace npu::monitor {
namespace {

constexpr auto kFresh = std::chrono::milliseconds(200);
constexpr size_t kMostTold = 64;

std::shared_ptr<const std::string> Text(const std::vector<prometheus::MetricFamily>& families) {
  std::vector<prometheus::MetricFamily> present;
  for (const auto& family : families) {
    if (!family.metric.empty()) present.push_back(family);
  }
  return std::make_shared<const std::string>(prometheus::TextSerializer().Serialize(present));
}

}  // namespace

void Source::Refresh() {
  const auto now = Clock::now();
  if (reading_ != nullptr && now - read_at_ < kFresh) return;
  auto fresh = std::make_shared<Reading>(collector_->Read());
  RememberLost(*fresh);
  Tell(*fresh);
  reading_ = std::move(fresh);
  cards_.reset();
  ranks_.reset();
  read_at_ = now;
}

// A card that answered once and is no longer listed is lost, not absent: its alert must have something to look at. A
// board whose driver was reloaded comes back under its old number.
void Source::RememberLost(Reading& reading) {
  for (const Card& card : reading.cards) {
    Card seen{.id = card.id,
              .answers = false,
              .model = card.model,
              .die_id = card.die_id,
              .bus = card.bus,
              .serial = card.serial};
    known_[card.id] = std::move(seen);
  }
  for (const auto& [id, card] : known_) {
    const bool listed =
        std::any_of(reading.cards.begin(), reading.cards.end(), [id = id](const Card& c) { return c.id == id; });
    if (!listed) reading.cards.push_back(card);
  }
  std::sort(reading.cards.begin(), reading.cards.end(), [](const Card& a, const Card& b) { return a.id < b.id; });
}

void Source::Tell(const Reading& reading) {
  const std::set<std::string> now(reading.problems.begin(), reading.problems.end());
  for (const std::string& problem : now) {
    if (told_.size() < kMostTold && told_.insert(problem).second) fmt::print(stderr, "anynpu: {}\n", problem);
  }
  for (auto at = told_.begin(); at != told_.end();) {
    if (now.contains(*at)) {
      ++at;
      continue;
    }
    fmt::print(stderr, "anynpu: no longer: {}\n", *at);
    at = told_.erase(at);
  }
}

std::shared_ptr<const Reading> Source::Now() {
  const std::lock_guard lock(mutex_);
  Refresh();
  return reading_;
}

std::shared_ptr<const std::string> Source::Cards() {
  const std::lock_guard lock(mutex_);
  Refresh();
  if (cards_ == nullptr) cards_ = Text(CardFamilies(*reading_));
  return cards_;
}

std::shared_ptr<const std::string> Source::Ranks() {
  const std::lock_guard lock(mutex_);
  Refresh();
  if (ranks_ == nullptr) ranks_ = Text(RankFamilies(*reading_));
  return ranks_;
}

}  // namespace npu::monitor
