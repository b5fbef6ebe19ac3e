// A tab-separated text with a header line, as views into it.
//
//   Table table(data::codes);
//   for (const Row& row : table.rows()) Use(row["code"]);
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace npu::doctor {

class Table;

class Row {
 public:
  Row(const Table& table, std::vector<std::string_view> cells) : table_(&table), cells_(std::move(cells)) {}
  // The cell of a column; empty for a column that the row is too short for. A column that the table lacks is a fault of
  // ours.
  std::string_view operator[](std::string_view column) const;

 private:
  const Table* table_;
  std::vector<std::string_view> cells_;
};

class Table {
 public:
  explicit Table(std::string_view text);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  const std::vector<Row>& rows() const { return rows_; }
  size_t Column(std::string_view name) const;

 private:
  std::vector<std::string_view> header_;
  std::vector<Row> rows_;
};

std::vector<std::string_view> Split(std::string_view text, char separator);
// The parts point into the text, so a temporary must not be given.
template <class Text>
  requires std::same_as<Text, std::string>
std::vector<std::string_view> Split(Text&& text, char separator) = delete;
std::string_view Trim(std::string_view text);
std::string Lower(std::string_view text);  // ASCII only
bool Contains(std::string_view text, std::string_view part);

}  // namespace npu::doctor
