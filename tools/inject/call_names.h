// Every function that our libraries export, sorted.
#pragma once

#include <span>
#include <string_view>

namespace npu::inject {

std::span<const std::string_view> CallNames();

}  // namespace npu::inject
