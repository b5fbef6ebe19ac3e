// A reading as one line of JSON, for the page.
#pragma once

#include <string>
#include <string_view>

#include "tools/monitor/reading.h"

namespace npu::monitor {

std::string JsonOf(const Reading& reading);
// The page itself (web/page.html).
std::string_view Page();

}  // namespace npu::monitor
