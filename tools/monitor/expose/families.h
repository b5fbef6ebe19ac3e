// A reading as metric families of prometheus-cpp.
//
// Three groups: the names, units and labels of the stock npu-exporter; the same values in base units with the label
// `device`; and what the stock one does not have. All families of a group are always there, so that label keys never
// change from one scrape to the next; only a value that the source does not have leaves its series out.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "tools/monitor/reading.h"

namespace npu::monitor {

// Cards, processes, containers, operators, collectives: the job npu-exporter.
std::vector<prometheus::MetricFamily> CardFamilies(const Reading& reading);
// Steps of ranks: the job npu-trainer.
std::vector<prometheus::MetricFamily> RankFamilies(const Reading& reading);

}  // namespace npu::monitor
