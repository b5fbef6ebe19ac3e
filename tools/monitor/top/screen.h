// The picture of `anynpu top` as text: what a reading and the ones before it look like in so many columns and rows.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tools/monitor/reading.h"

namespace npu::monitor {

class Screen {
 public:
  // Keeps what the sparklines and rates need.
  void Add(const Reading& reading, double seconds_since_last);
  // Lines of at most `columns` places each; with `colour` they carry control codes.
  std::vector<std::string> Draw(int columns, int rows, bool colour) const;

 private:
  struct Rate {
    std::string name;
    double calls_per_s = 0, mean_us = 0, share = 0;
  };
  Reading now_;
  std::map<int, std::deque<double>> use_, power_;
  std::map<std::string, std::pair<double, double>> before_;  // count and sum of each operator
  std::vector<Rate> rates_;
  std::map<std::pair<int, int>, double> core_before_, core_use_;    // by card and pid: AI core seconds, use now
  // By rank and card.
  std::map<std::pair<int, int>, std::tuple<double, double, double>> steps_before_;  // steps, own, wall
  std::map<std::pair<int, int>, std::tuple<double, double, double>> step_rates_;    // steps/s, own s, wall s
};

// One of eight heights for each value from 0 to 1, the last `width` of them.
std::string Sparkline(const std::deque<double>& values, size_t width);

}  // namespace npu::monitor
