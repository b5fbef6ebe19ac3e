#include "tools/doctor/explain/knowledge.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "tools/doctor/data.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace {

Kind KindOf(std::string_view word) {
  if (word == "root") return Kind::root;
  if (word == "fault") return Kind::fault;
  if (word == "echo") return Kind::echo;
  if (word == "shell") return Kind::shell;
  return Kind::note;
}

Words Both(const Row& row, std::string_view stem) {
  return {std::string(row[fmt::format("{}_en", stem)]), std::string(row[fmt::format("{}_zh", stem)])};
}

bool IsDigits(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }

// EI0006, E19999: a letter E, a letter or digit, four digits.
bool IsCannCode(std::string_view code) {
  return code.size() == 6 && code[0] == 'e' && isalnum(static_cast<unsigned char>(code[1])) && IsDigits(code.substr(2));
}

}  // namespace

const Knowledge& Knowledge::Get() {
  static const Knowledge knowledge;
  return knowledge;
}

Knowledge::Knowledge() {
  const Table causes(data::causes), families(data::families);
  for (const Row& row : causes.rows()) {
    std::string key(row["key"]);
    causes_[key] = {key, KindOf(row["kind"]), Both(row, "why"), Both(row, "next")};
  }
  for (const Row& row : families.rows()) {
    parts_[std::string(row["prefix"])] = Both(row, "part");
    family_[std::string(row["prefix"])] = row["cause"];
  }
  ReadCodes();
  ReadTorchErrors();
  ReadPhrases();
}

const Cause* Knowledge::CauseOf(std::string_view key) const {
  const auto found = causes_.find(key);
  if (found == causes_.end()) std::abort();  // gen/doctor.py checks every key
  return &found->second;
}

void Knowledge::ReadCodes() {
  const Table codes(data::codes);
  for (const Row& row : codes.rows()) {
    const std::string_view family = row["family"], code = row["code"];
    const auto part = parts_.find(family == "EE" ? code.substr(0, 2) : family);
    Answer& answer = answers_.emplace_back();
    answer = {std::string(code),       std::string(row["name"]),
              Both(row, "what"),       part == parts_.end() ? Words{} : part->second,
              CauseOf(row["cause"]),   std::string(row["source"]),
              std::string(row["date"])};
    by_code_[Lower(code)].push_back(&answer);
    by_code_[fmt::format("{}:{}", family, Lower(code))].push_back(&answer);
    if (answer.name != answer.code) by_code_[Lower(answer.name)].push_back(&answer);
  }
}

// ERRmmccc: two digits say which part of torch_npu, three say what.
void Knowledge::ReadTorchErrors() {
  const Table modules(data::err_modules), codes(data::err_codes);
  for (const Row& module : modules.rows()) {
    for (const Row& code : codes.rows()) {
      const std::string name = fmt::format("ERR{}{}", module["code"], code["code"]);
      Answer& answer = answers_.emplace_back();
      answer = {name,
                name,
                Both(code, "what"),
                Both(module, "part"),
                CauseOf(code["cause"]),
                std::string(code["source"]),
                std::string(code["date"])};
      by_code_[Lower(name)].push_back(&answer);
    }
  }
}

void Knowledge::ReadPhrases() {
  const Table texts(data::texts);
  const Words log = {"a line of the log", "日志中的一行"};
  for (const Row& row : texts.rows()) {
    Answer& answer = answers_.emplace_back();
    answer = {"",
              std::string(row["pattern"]),
              Both(row, "what"),
              log,
              CauseOf(row["cause"]),
              std::string(row["source"]),
              std::string(row["date"])};
    phrases_.push_back({std::string(row["pattern"]), &answer});
  }
  Answer& answer = answers_.emplace_back();
  answer = {"",       "exception", {"an exception of the program", "程序抛出的异常"}, log, CauseOf("python-exception"),
            "Python", ""};
  exception_ = &answer;
}

const Answer* Knowledge::Find(std::string_view family, std::string_view code) const {
  const auto found = by_code_.find(fmt::format("{}:{}", family, Lower(code)));
  return found == by_code_.end() ? nullptr : found->second.front();
}

std::vector<const Answer*> Knowledge::Find(std::string_view given) const {
  std::string code = Lower(Trim(given));
  uint32_t number = 0;
  if (code.starts_with("0x")) {
    const auto [end, error] = std::from_chars(code.data() + 2, code.data() + code.size(), number, 16);
    if (error == std::errc() && end == code.data() + code.size())
      code = fmt::format("{}", static_cast<int32_t>(number));
  }
  const auto found = by_code_.find(code);
  if (found != by_code_.end()) return found->second;
  if (!IsCannCode(code)) return {};
  for (char& c : code) c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
  const auto part = parts_.find(code.substr(0, 2));
  if (part == parts_.end()) return {};
  const bool inner = code.ends_with("9999") || code.ends_with("8888");
  composed_.push_back(
      {code, code,
       inner ? Words{"inner error of this part", "该部件的内部错误"}
             : Words{"an error of this part that has no row of its own here; the text behind the code says more",
                     "该部件的错误，此处没有单独条目；错误码后的文字更具体"},
       part->second, CauseOf(inner ? "runtime-internal" : std::string_view(family_.at(code.substr(0, 2)))),
       "families.tsv", ""});
  return {&composed_.back()};
}

}  // namespace npu::doctor
