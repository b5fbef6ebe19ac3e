// Whether aclInit was called, and the reading of its kind of configuration file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/status/status.h"

namespace npu {

bool Initialised();

// The JSON object of a file; kInvalidFile when it cannot be read, kParseFile when it holds none. Fills in its text.
Result<nlohmann::json> ParseConfig(const char* path, std::string* content, const char* function);

}  // namespace npu
