#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tools/trace/record.h"
#include "tools/trace/replay.h"
#include "tools/trace/summary.h"

namespace npu::trace {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class Trace : public testing::Test {
 protected:
  Trace() {
    std::string pattern = (fs::temp_directory_path() / "anynpu-test-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Trace() override { fs::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  static std::string Call(const std::string& op, double start_us, double us, int rows) {
    return fmt::format(
        R"({{"op": "{}", "ts_us": {}, "us": {}, "tid": 7, "kernel": "binary Add", "args": [)"
        R"({{"name": "self", "kind": "tensor", "role": "in", "dtype": "float32", "shape": [{}, 3], "strides": [1, {}]}}, )"
        R"({{"name": "list", "kind": "tensorlist", "role": "in", "items": [{{"dtype": "int64", "shape": []}}, {{"null": true}}]}}, )"
        R"({{"name": "alpha", "kind": "scalar", "role": "in", "dtype": "float32", "value": "inf"}}, )"
        R"({{"name": "bias", "kind": "tensor", "role": "in", "null": true}}]}})"
        "\n",
        op, start_us, us, rows, rows);
  }

  fs::path folder_;
  std::mt19937 random_{std::random_device{}()};
};

TEST_F(Trace, FilesOfAFolderAreReadInTheOrderOfTheCalls) {
  Write("trace-12.jsonl", Call("aclnnLate", 20, 1, 2) + R"({"op": "aclnnCut", "ts_us")");
  Write("trace-13.jsonl", Call("aclnnEarly", 10, 1, 2));
  Write("other.txt", "no trace");
  auto records = Read(folder_);
  ASSERT_TRUE(records.ok()) << records.status().Message();
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ((*records)[0].op, "aclnnEarly");
  EXPECT_EQ((*records)[0].pid, 13);
  EXPECT_EQ((*records)[1].pid, 12);
  EXPECT_EQ((*records)[0].Text(), R"(self=float32[2,3]* list=2 x int64[] alpha="inf")");
  EXPECT_EQ((*records)[0].Key(), "aclnnEarly self=float32[2,3]* list=2 x int64[]");
}

TEST_F(Trace, WhatIsNoTraceIsSaid) {
  Write("a.jsonl", "{\"no\": 1}\nnoise\n");
  Write("b.jsonl", R"({"op": "aclnnAdd", "us": "long"})");
  for (const char* name : {"a.jsonl", "b.jsonl", "missing.jsonl"})
    EXPECT_THAT(Read(folder_ / name).status().Message(), HasSubstr(name));
  EXPECT_EQ(Read(folder_ / "a.jsonl").ok(), false);
}

TEST_F(Trace, TheTableAddsUpEqualCallsAndTellsWhatWasRefused) {
  const int calls = 2 + static_cast<int>(random_() % 50);
  double total = 0;
  std::string text;
  for (int i = 0; i < calls; ++i) {
    const double us = 1 + static_cast<double>(random_() % 1000);
    total += us;
    text += Call("aclnnAdd", i, us, 2);
  }
  text += Call("aclnnRare", 1e6, 0.5, 5);
  text += "{\"op\": \"aclnnMul\", \"ts_us\": 3, \"tid\": 1, \"refused\": \"aclnnMul: shapes differ\"}\n";
  Write("trace-1.jsonl", text);
  auto records = Read(folder_);
  ASSERT_TRUE(records.ok());
  const std::string table = Table(*records, 1);
  EXPECT_THAT(table,
              HasSubstr(fmt::format("{} calls of aclnn operators ran in {:.3f} ms", calls + 1, (total + 0.5) / 1e3)));
  EXPECT_THAT(table, HasSubstr(fmt::format("{:>8} {:>11.3f} {:>10.2f}", calls, total / 1e3, total / calls)));
  EXPECT_THAT(table, Not(HasSubstr("aclnnRare")));
  EXPECT_THAT(table, HasSubstr("1 more rows"));
  EXPECT_THAT(table, HasSubstr("aclnnMul: shapes differ"));
  const auto chrome = nlohmann::json::parse(ChromeTrace(*records));
  ASSERT_EQ(chrome["traceEvents"].size(), static_cast<size_t>(calls + 1));
  double sum = 0;
  for (const auto& event : chrome["traceEvents"]) sum += event["dur"].get<double>();
  EXPECT_NEAR(sum, total + 0.5, 1e-6);
}

TEST_F(Trace, ReplayWithoutLibrariesSaysSo) {
  EXPECT_THAT(Replay(folder_, {}, {}).status().Message(), HasSubstr("libascendcl.so"));
}

}  // namespace
}  // namespace npu::trace
