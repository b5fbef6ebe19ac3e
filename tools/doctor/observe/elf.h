// The little that is asked of ELF files: which processor, and which dynamic symbols.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

namespace npu::doctor {

uint16_t ElfMachine(const std::filesystem::path& file);  // 0: no ELF file
uint16_t MachineNumber(const std::string& uname);        // x86_64, aarch64; 0: another
std::string MachineName(uint16_t machine);

// Dynamic symbols whose names begin with a prefix: those that a library exports, or those that it wants of others.
std::set<std::string> ElfSymbols(const std::filesystem::path& file, const std::string& prefix, bool wanted);

}  // namespace npu::doctor
