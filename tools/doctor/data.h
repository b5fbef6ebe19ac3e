// The tables of tools/doctor/data as gen/doctor.py packs them into the program: tab-separated texts with a header line.
#pragma once

#include <string_view>

namespace npu::doctor::data {

extern const std::string_view causes, codes, texts, families, err_modules, err_codes;  // explain
extern const std::string_view aliases, torch_operators, functions, dtypes;             // explain an operator
extern const std::string_view matrix, pythons, hdk, settings;                          // doctor

}  // namespace npu::doctor::data
