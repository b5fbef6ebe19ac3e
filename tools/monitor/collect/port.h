// The network port of a card as hccn_tool tells it: link, counters, optical module. Each answer is a text of its own;
// one that fails or cannot be read leaves its values out, as the stock exporter does.
#pragma once

#include <string>

#include "tools/monitor/reading.h"

namespace npu::monitor {

struct PortReading {
  Link link;
  std::vector<std::pair<std::string, uint64_t>> counters;
  std::optional<Optical> optical;
  std::string problem;  // the tool does not start or does not end
};

// Where the tool is: `given`, else the driver's, else one on PATH; empty without one.
std::string FindPortTool(const std::string& given);
// Asks about one device, by its physical number: six programs, one after another.
PortReading AskPortTool(const std::string& tool, int device);

// The answers' texts.
std::optional<bool> LinkIn(const std::string& text);                                // link status: UP
std::optional<double> SpeedIn(const std::string& text);                             // Speed: 200000 Mb/s, in bits/s
std::optional<uint64_t> TimesUpIn(const std::string& text);                         // [device 0]link up count : 3
void BandwidthIn(const std::string& text, Link& link);                              // Bandwidth TX: 0.00 MB/sec
std::vector<std::pair<std::string, uint64_t>> CountersIn(const std::string& text);  // name:number, one a line
std::optional<Optical> OpticalIn(const std::string& text);                          // key : value, one a line

}  // namespace npu::monitor
