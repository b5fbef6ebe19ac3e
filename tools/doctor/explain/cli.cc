#include "tools/doctor/explain/cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/doctor/explain/knowledge.h"
#include "tools/doctor/explain/log.h"
#include "tools/doctor/explain/operators.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

constexpr int kUnknown = 1, kUsage = 64;
constexpr size_t kFollowUps = 12;  // lines about what is not the cause

enum class Language { en, zh, both };

Language LanguageOf(const std::string& word) {
  if (word == "en") return Language::en;
  if (word == "zh") return Language::zh;
  if (word == "both") return Language::both;
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const char* value = std::getenv(name);
    if (value && *value) return std::string_view(value).starts_with("zh") ? Language::zh : Language::en;
  }
  return Language::en;
}

void PrintLine(Language language, const char* label_en, const char* label_zh, const Words& words) {
  if (words.en.empty()) return;
  if (language != Language::zh) fmt::print("  {:<6} {}\n", label_en, words.en);
  if (language != Language::en) fmt::print("  {}   {}\n", label_zh, words.zh);
}

std::string Title(const Answer& answer) {
  if (answer.code.empty() || answer.code == answer.name) return answer.name;
  return fmt::format("{} {}", answer.code, answer.name);
}

std::string Heading(Language language, const Words& words) {
  return language == Language::en   ? words.en
         : language == Language::zh ? words.zh
                                    : fmt::format("{} / {}", words.en, words.zh);
}

void Print(Language language, const Answer& answer, const std::string& before) {
  fmt::print("{}{}: {}\n", before, Title(answer), Heading(language, answer.what));
  PrintLine(language, "where", "位置", answer.where);
  PrintLine(language, "why", "原因", answer.cause->why);
  PrintLine(language, "next", "处理", answer.cause->next);
}

json Json(const Answer& answer) {
  const auto words = [](const Words& w) { return json{{"en", w.en}, {"zh", w.zh}}; };
  return {{"code", answer.code},
          {"name", answer.name},
          {"cause", answer.cause->key},
          {"what", words(answer.what)},
          {"where", words(answer.where)},
          {"why", words(answer.cause->why)},
          {"next", words(answer.cause->next)},
          {"source", answer.source},
          {"date", answer.date}};
}

json Json(const Finding& finding) {
  json out = Json(*finding.answer);
  out["file"] = finding.first.file;
  out["line"] = finding.first.line;
  out["text"] = finding.first.text;
  out["count"] = finding.count;
  return out;
}

// One line without control characters, whatever a file name or a log holds.
std::string Clean(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = c == '\t' ? ' ' : '?';
  }
  return text;
}

std::string At(const Place& place) {
  return place.file.empty() ? std::string() : fmt::format("{}:{}", Clean(place.file), place.line);
}

int Report(const LogReader& reader, Language language, bool as_json) {
  const Verdict verdict = reader.Conclude();
  for (const std::string& error : reader.errors()) fmt::print(stderr, "anynpu explain: {}\n", Clean(error));
  if (as_json) {
    json out = {
        {"lines", verdict.lines}, {"bytes", verdict.bytes}, {"first_cause", nullptr}, {"others", json::array()}};
    if (verdict.cause) out["first_cause"] = Json(*verdict.cause);
    for (const Finding& finding : verdict.others) out["others"].push_back(Json(finding));
    // Logs may hold bytes that are no UTF-8.
    std::puts(out.dump(2, ' ', false, json::error_handler_t::replace).c_str());
    return verdict.cause ? 0 : kUnknown;
  }
  if (!verdict.cause) {
    fmt::print("{}\n", Heading(language, {"No failure that is known here was found.", "未发现已知的失败。"}));
    return kUnknown;
  }
  const Finding& cause = *verdict.cause;
  const bool only_follows = cause.answer->cause->kind == Kind::echo || cause.answer->cause->kind == Kind::shell;
  Print(language, *cause.answer, Heading(language, {"First cause: ", "首要原因："}));
  if (!At(cause.first).empty()) fmt::print("  {}\n    {}\n", At(cause.first), Clean(cause.first.text));
  if (only_follows) {
    fmt::print("  {}\n",
               Heading(language,
                       {"This is the consequence of a failure that these logs do not show: give the logs of all ranks.",
                        "这是某个失败的后果，而该失败不在这些日志中：请提供所有 rank 的日志。"}));
  }
  size_t shown = 0;
  for (const Finding& finding : verdict.others) {
    if (finding.kind == Kind::note) continue;
    if (shown == 0)
      fmt::print("{}\n", Heading(language, {"Also in the log, as its consequences or later:",
                                            "日志中的其他信息（后果或更晚出现）："}));
    if (++shown > kFollowUps) break;
    fmt::print("  {} {} x{}: {}\n", At(finding.first), Title(*finding.answer), finding.count,
               Heading(language, finding.answer->what));
  }
  return 0;
}

void PrintTypes(const Function& function) {
  fmt::print("    {}{}\n", function.name, function.defined ? "" : " (not in this build)");
  for (const Function::Parameter& p : function.parameters) {
    fmt::print("      {:<16} 910B {}  910_93 {}  310P {}  950 {}\n", p.name, p.types_910b, p.types_a3, p.types_310p,
               p.types_950);
  }
}

void PrintOperator(const Operator& op, Language language, const std::string& indent) {
  static const std::vector<std::pair<std::string, Words>> kStates = {
      {"native",
       {"native: torch_npu has a kernel for it and this build has the function",
        "原生支持：torch_npu 有对应 kernel，本软件有该函数"}},
      {"refused",
       {"refused here: torch_npu calls a function that this software NPU does not have yet (a real card has it)",
        "在此被拒绝：torch_npu 调用的函数本软件 NPU 尚未实现（真实卡支持）"}},
      {"composed",
       {"composed: torch computes it from other operators, each with a kernel of its own",
        "组合：由其他原生算子组合而成"}},
      {"cpu",
       {"CPU: no NPU kernel is registered; torch_npu copies to the CPU, computes and copies back, with a warning",
        "CPU：没有注册 NPU kernel；torch_npu 告警后拷回 CPU 计算"}},
      {"unknown", {"unknown: torch 2.13 has no operator of that name", "未知：torch 2.13 没有该名字的算子"}}};
  const std::string state = op.State();
  static const Words kOthers = {
      "composed: torch computes it from other operators, which are not listed here; a run shows them: anynpu trace",
      "组合：由其他算子组合而成，此处未列出；运行 anynpu trace 可查看"};
  if (state == "composed" && op.parts.empty()) fmt::print("{}{}: {}\n", indent, op.asked, Heading(language, kOthers));
  for (const auto& [name, words] : kStates) {
    if (name == state && (state != "composed" || !op.parts.empty()))
      fmt::print("{}{}: {}\n", indent, op.asked, Heading(language, words));
  }
  for (const Function& function : op.functions) PrintTypes(function);
  for (const Operator& part : op.parts) PrintOperator(part, language, indent + "  ");
}

json Json(const Operator& op) {
  json out = {{"asked", op.asked},
              {"name", op.name},
              {"state", op.State()},
              {"functions", json::array()},
              {"parts", json::array()}};
  for (const Function& function : op.functions) {
    json types = json::object();
    for (const auto& p : function.parameters)
      types[p.name] = {{"910B", p.types_910b}, {"910_93", p.types_a3}, {"310P", p.types_310p}, {"950", p.types_950}};
    out["functions"].push_back({{"name", function.name}, {"defined", function.defined}, {"dtypes", types}});
  }
  for (const Operator& part : op.parts) out["parts"].push_back(Json(part));
  return out;
}

// Codes that stand in a text as words of their own; small numbers only behind the name of their family.
std::vector<const Answer*> CodesIn(std::string_view text) {
  std::vector<const Answer*> found;
  std::string_view before;
  for (size_t at = 0; at < text.size();) {
    const auto word = [&](size_t i) {
      return i < text.size() && (isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
    };
    if (!word(at)) {
      ++at;
      continue;
    }
    size_t end = at;
    while (word(end)) ++end;
    const bool negative = at > 0 && text[at - 1] == '-';
    const std::string_view now = text.substr(at, end - at);
    const Knowledge& knowledge = Knowledge::Get();
    if (now.size() > 4 || negative) {
      const auto answers = knowledge.Find(negative ? text.substr(at - 1, end - at + 1) : now);
      found.insert(found.end(), answers.begin(), answers.end());
    } else if (Lower(before) == "hcclresult") {
      if (const Answer* answer = knowledge.Find("hccl", now)) found.push_back(answer);
    }
    before = now;
    at = end;
  }
  return found;
}

// Regular files below a folder, sorted; a folder that cannot be read is skipped.
std::vector<std::string> FilesBelow(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) files.push_back(at->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int Explain(const std::vector<std::string>& words) {
  CLI::App app("Explain a code, an error text, a log or an operator, offline.", "anynpu explain");
  std::vector<std::string> given;
  std::string language_word;
  bool as_json = false;
  app.add_option("what", given,
                 "CODE (107002, EI0006, HCCL_E_TIMEOUT, hccl:9), TEXT, FILEs or folders of logs, - for stdin, or an "
                 "operator (torch.nn.functional.gelu)")
      ->required();
  app.add_option("--lang", language_word, "en, zh or both (default: by LANG)")
      ->check(CLI::IsMember({"en", "zh", "both"}));
  app.add_flag("--json", as_json, "as JSON");
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    // DCMI's codes are negative numbers; they are not options.
    const bool negative = words.size() == 1 && words[0].size() == 5 && words[0].starts_with("-8");
    if (negative)
      given = words;
    else
      app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : kUsage;
  }
  const Language language = LanguageOf(language_word);
  const Knowledge& knowledge = Knowledge::Get();

  std::string text;
  for (const std::string& word : given) text += (text.empty() ? "" : " ") + word;
  const std::vector<const Answer*> answers = knowledge.Find(text);
  if (!answers.empty()) {
    json out = json::array();
    for (const Answer* answer : answers) {
      if (as_json)
        out.push_back(Json(*answer));
      else
        Print(language, *answer, "");
    }
    if (as_json) std::puts(out.dump(2).c_str());
    return 0;
  }

  LogReader reader;
  // One word that is a file makes all of them files, so that a name with a slip is told and not passed over.
  const bool files = std::any_of(given.begin(), given.end(), [&](const std::string& word) {
    std::error_code error;
    return word == "-" || fs::exists(fs::symlink_status(word, error)) ||
           (given.size() == 1 && word.find('/') != word.npos && word.find(' ') == word.npos);
  });
  for (const std::string& word : files ? given : std::vector<std::string>()) {
    std::error_code error;
    if (word == "-") {
      reader.ReadDescriptor(STDIN_FILENO, "stdin");
    } else if (fs::is_directory(word, error)) {
      for (const std::string& file : FilesBelow(word)) reader.ReadFile(file);
    } else {
      reader.ReadFile(word);
    }
  }
  if (files) return Report(reader, language, as_json);

  if (given.size() == 1 && LooksLikeOperator(text)) {
    const Operator op = Describe(text);
    if (as_json)
      std::puts(Json(op).dump(2).c_str());
    else
      PrintOperator(op, language, "");
    return op.State() == "unknown" ? kUnknown : 0;
  }
  for (std::string_view line : Split(text, '\n')) reader.ReadLine(line);
  if (!as_json && !reader.Conclude().cause) {
    if (given.size() == 1 && text.find(' ') == text.npos && (text.ends_with(".log") || text.ends_with(".txt"))) {
      fmt::print(stderr, "anynpu explain: {}: No such file or directory\n", Clean(text));
      return kUnknown;
    }
    // "161002 507035", "aclnnStatus 561103": in a log such numbers may be anything, here somebody asks about them.
    const std::vector<const Answer*> asked = CodesIn(text);
    for (const Answer* answer : asked) Print(language, *answer, "");
    if (!asked.empty()) return 0;
  }
  return Report(reader, language, as_json);
}

}  // namespace npu::doctor
