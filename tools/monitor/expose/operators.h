// Operators under the names a profiler of the vendor shows: the library says aclnnMm, dashboards ask for MatMul.
#pragma once

#include <string>
#include <string_view>

namespace npu::monitor {

std::string OperatorName(std::string_view call);

}  // namespace npu::monitor
