#include "tools/doctor/table.h"

#include <cstdlib>

namespace npu::doctor {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string_view Row::operator[](std::string_view column) const {
  const size_t at = table_->Column(column);
  return at < cells_.size() ? cells_[at] : std::string_view();
}

Table::Table(std::string_view text) {
  for (std::string_view line : Split(text, '\n')) {
    if (header_.empty()) {
      header_ = Split(line, '\t');
    } else if (!line.empty()) {
      rows_.emplace_back(*this, Split(line, '\t'));
    }
  }
}

size_t Table::Column(std::string_view name) const {
  for (size_t i = 0; i < header_.size(); ++i) {
    if (header_[i] == name) return i;
  }
  std::abort();  // the generator checks the headers, so only a misspelt name in our code comes here
}

}  // namespace npu::doctor
