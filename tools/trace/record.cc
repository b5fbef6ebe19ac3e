#include "tools/trace/record.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace npu::trace {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

std::string TensorText(const json& t) {
  if (t.contains("null")) return "null";
  std::string out = t.value("dtype", "?") + "[";
  for (const json& size : t.value("shape", json::array())) out += (out.back() == '[' ? "" : ",") + size.dump();
  return out + (t.contains("strides") ? "]*" : "]");  // a star: not row-major
}

std::string ArgumentText(const json& a) {
  const std::string kind = a.value("kind", "");
  if (kind == "tensor") return TensorText(a);
  if (a.contains("items")) {
    const json& items = a["items"];
    if (items.empty()) return "[]";
    const std::string first = kind == "tensorlist" ? TensorText(items[0]) : items[0].value("value", json()).dump();
    return fmt::format("{} x {}", items.size(), first);
  }
  return a.value("value", json()).dump();
}

// trace-PID.jsonl
int PidOf(const fs::path& file) {
  const std::string name = file.stem();
  return name.starts_with("trace-") ? std::atoi(name.c_str() + 6) : 0;
}

Status ReadFile(const fs::path& file, std::vector<Record>* out) {
  std::ifstream in(file);
  if (!in)
    return Error(Code::kInvalidFile, "{} cannot be read.", file.string())
        .Remedy("Name a file or folder of anynpu trace -o.");
  size_t lines = 0, good = 0;
  for (std::string line; std::getline(in, line);) {
    ++lines;
    json j = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!j.is_object() || !j.contains("op") || !j["op"].is_string()) continue;
    ++good;
    try {
      out->push_back({j["op"], j.value("kernel", ""), j.value("refused", ""), j.value("failed", ""),
                      j.value("ts_us", 0.0), j.value("us", 0.0), PidOf(file), j.value("tid", 0),
                      j.value("args", json::array())});
    } catch (const json::exception&) {
      --good;  // a field of another type: not written by us
    }
  }
  if (good == 0 && lines > 0) {
    return Error(Code::kInvalidFile, "{} holds no call in its {} lines.", file.string(), lines)
        .Remedy("Name a file that anynpu trace wrote.");
  }
  return {};
}

}  // namespace

namespace {

// Numbers that say how to compute and not how much.
bool Changing(const json& a) {
  const std::string kind = a.value("kind", ""), name = a.value("name", "");
  return kind == "scalar" || kind == "scalarlist" || kind == "float" || kind == "double" || name == "seed" ||
         name == "offset";
}

std::string Join(const json& args, bool with_changing) {
  std::string out;
  for (const json& a : args) {
    if (a.contains("null") || (!with_changing && Changing(a))) continue;
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", a.value("name", "?"), ArgumentText(a));
  }
  return out;
}

}  // namespace

std::string Record::Text() const { return Join(args, /*with_changing=*/true); }

std::string Record::Key() const { return op + ' ' + Join(args, /*with_changing=*/false); }

Result<std::vector<Record>> Read(const fs::path& from) {
  std::vector<Record> records;
  std::error_code error;
  if (fs::is_directory(from, error)) {
    for (const auto& entry : fs::directory_iterator(from, error)) {
      if (entry.path().extension() == ".jsonl") NPU_TRY(ReadFile(entry.path(), &records));
    }
  } else {
    NPU_TRY(ReadFile(from, &records));
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const Record& a, const Record& b) { return a.start_us < b.start_us; });
  return records;
}

}  // namespace npu::trace
