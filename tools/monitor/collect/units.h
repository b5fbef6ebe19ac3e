// The units that sources mix, turned into base units in this one place.
//
// Power comes in W, mW or 0.1 W; memory in MB (of 1024 * 1024) or bytes. Texts name their unit or not; the name of the
// field then decides, never the size of the number.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace npu::monitor {

inline constexpr double kMegabyte = 1024.0 * 1024.0;

inline double WattsFromMilli(double milliwatts) { return milliwatts / 1e3; }
inline double WattsFromDeci(double deciwatts) { return deciwatts / 10; }
inline uint64_t BytesFromMegabytes(uint64_t megabytes) { return megabytes << 20; }

// A whole number, blanks around it allowed; nothing for anything else, signs and overflow included.
std::optional<uint64_t> WholeNumber(std::string_view text);
// A finite number of at least 0, blanks around it allowed.
std::optional<double> PlainNumber(std::string_view text);
// "35.2 W", "35200 mW", "35.2": watts. A number without a unit is in `unit`.
enum class PowerUnit { kWatt, kMilliwatt };
std::optional<double> Watts(std::string_view text, PowerUnit unit);
// "1024 MB", "1024 MiB", "1 GB", "1073741824 B", "1073741824 Byte": bytes. A number without a unit is in `unit`.
enum class MemoryUnit { kByte, kMiB };
std::optional<uint64_t> Bytes(std::string_view text, MemoryUnit unit);

}  // namespace npu::monitor
