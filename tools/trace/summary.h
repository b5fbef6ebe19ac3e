// A trace for people: a table of where the time went, and the same calls for a viewer of Chrome traces.
#pragma once

#include <string>
#include <vector>

#include "tools/trace/record.h"

namespace npu::trace {

// One row for each kind of call (Record::Key; the arguments are those of its first), the costliest first, at most
// `rows` of them; then the refused calls.
std::string Table(const std::vector<Record>& records, size_t rows);

// The JSON of chrome://tracing and Perfetto: one complete event for each call that ran.
std::string ChromeTrace(const std::vector<Record>& records);

}  // namespace npu::trace
