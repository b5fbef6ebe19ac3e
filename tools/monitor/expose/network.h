// Families of links: the network port's counters, its optical module, PCIe, HCCS lanes, the link between two dies.
#pragma once

#include <prometheus/metric_family.h>

#include <functional>
#include <vector>

#include "tools/monitor/reading.h"

namespace npu::monitor {

using LabelsOf = std::function<std::vector<prometheus::ClientMetric::Label>(const Card&)>;

// Stock names in stock units and twins in base units; a family without a sample is empty.
void AddNetwork(const Reading& reading, const LabelsOf& stock, const LabelsOf& own,
                std::vector<prometheus::MetricFamily>& out);

}  // namespace npu::monitor
