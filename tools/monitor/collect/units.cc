#include "tools/monitor/collect/units.h"

#include <charconv>
#include <cmath>

namespace npu::monitor {
namespace {

std::string_view Trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// The number at the front, and the word behind it.
std::optional<double> Split(std::string_view text, std::string_view& word) {
  text = Trim(text);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0 || (!text.empty() && text[0] == '-'))
    return std::nullopt;
  word = Trim(text.substr(static_cast<size_t>(stop - text.data())));
  return value;
}

}  // namespace

std::optional<uint64_t> WholeNumber(std::string_view text) {
  text = Trim(text);
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> PlainNumber(std::string_view text) {
  std::string_view word;
  const std::optional<double> value = Split(text, word);
  return word.empty() ? value : std::nullopt;
}

std::optional<double> Watts(std::string_view text, PowerUnit unit) {
  std::string_view word;
  const std::optional<double> value = Split(text, word);
  if (!value) return std::nullopt;
  if (word == "mW" || (word.empty() && unit == PowerUnit::kMilliwatt)) return WattsFromMilli(*value);
  if (word == "W" || word.empty()) return value;
  return std::nullopt;
}

std::optional<uint64_t> Bytes(std::string_view text, MemoryUnit unit) {
  std::string_view word;
  const std::optional<double> value = Split(text, word);
  if (!value) return std::nullopt;
  double factor = 0;
  if (word == "B" || word == "Byte" || word == "Bytes" || word == "bytes") factor = 1;
  if (word == "KB" || word == "KiB") factor = 1024;
  if (word == "MB" || word == "MiB") factor = kMegabyte;
  if (word == "GB" || word == "GiB") factor = kMegabyte * 1024;
  if (word.empty()) factor = unit == MemoryUnit::kByte ? 1 : kMegabyte;
  const double bytes = *value * factor;
  if (factor == 0 || bytes > 1e18) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

}  // namespace npu::monitor
