// Every function of our libraries that returns a status, sorted: what can be made to fail.
#pragma once

#include <span>
#include <string_view>

namespace npu::inject {

std::span<const std::string_view> CallNames();

}  // namespace npu::inject
