#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "tools/launch/bench.h"
#include "tools/launch/environment.h"
#include "tools/launch/install.h"
#include "tools/launch/tree.h"

namespace npu::launch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

void Write(const fs::path& file, const std::string& text = "") {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

std::string Read(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

class Folder : public testing::Test {
 protected:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "anynpu-test-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    tree_ = root_ / "tree";
    for (const char* file :
         {"lib64/libascendcl.so", "lib64/libdcmi.so", "lib64/libascend_hal.so", "bin/npu-smi", "set_env.sh"}) {
      Write(tree_ / file);
    }
    Write(tree_ / "share/info/runtime/version.info", "Version=9.1.0\ninner=9.1.0.1\n");
    Write(tree_ / "compiler/version.info", "Version=9.1.0\n");
    Write(tree_ / "compiler/other.txt", "9.1.0");
  }
  ~Folder() override { fs::remove_all(root_); }

  fs::path root_, tree_;
};

class Tree : public Folder {};
class Bench : public Folder {};
class Links : public Folder {};

std::map<std::string, std::string> Set(const Variables& variables) { return {variables.begin(), variables.end()}; }

TEST(Environment, OurFoldersStandInFrontAndOnce) {
  std::map<std::string, std::string> now = {{"LD_LIBRARY_PATH", "/a::/b"}, {"PATH", "/usr/bin"}};
  const Lookup lookup = [&](const std::string& name) {
    const auto found = now.find(name);
    return found == now.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
  const auto first = Set(EnvironmentFor("/t", "/h", lookup));
  EXPECT_EQ(first.at("LD_LIBRARY_PATH"), "/t/lib64:/a::/b");
  EXPECT_EQ(first.at("PATH"), "/t/bin:/usr/bin");
  EXPECT_EQ(first.at("PYTHONPATH"), "/t/python/site-packages");
  EXPECT_EQ(first.at("ASCEND_HOME_PATH"), "/h");
  EXPECT_EQ(first.at("ASCEND_OPP_PATH"), "/h/opp");
  EXPECT_EQ(first.at("TASK_QUEUE_ENABLE"), "0");
  now = first;
  EXPECT_EQ(Set(EnvironmentFor("/t", "/h", lookup)), first);
}

TEST(Environment, TheUsersTaskQueueStands) {
  const Lookup lookup = [](const std::string& name) { return name == "TASK_QUEUE_ENABLE" ? std::optional<std::string>("2") : std::nullopt; };
  EXPECT_EQ(Set(EnvironmentFor("/t", "/h", lookup)).at("TASK_QUEUE_ENABLE"), "2");
}

TEST(Environment, ExportsSurviveQuotes) { EXPECT_EQ(ShellExports({{"A", "it's"}}), "export A='it'\\''s'\n"); }

TEST_F(Tree, IsFoundAroundTheProgramOrBesideIt) {
  EXPECT_EQ(*FindTree(tree_ / "bin/anynpu"), tree_);
  fs::create_directories(root_ / "env/share");
  fs::rename(tree_, root_ / "env/share/anynpu");
  EXPECT_EQ(*FindTree(root_ / "env/bin/anynpu"), root_ / "env/share/anynpu");
  const auto lost = FindTree(root_ / "elsewhere/bin/anynpu");
  ASSERT_FALSE(lost.ok());
  EXPECT_THAT(lost.status().Message(), HasSubstr("lib64/libascendcl.so"));
}

TEST_F(Tree, AnotherVersionIsTheSameTreeWithOtherVersionFiles) {
  EXPECT_EQ(*HomeFor(tree_, "9.1.0", "9.1.0", root_ / "cache"), tree_);
  fs::create_directories(root_ / "cache");
  const auto home = HomeFor(tree_, "9.1.0", "8.5.0", root_ / "cache");
  ASSERT_TRUE(home.ok()) << home.status().Message();
  EXPECT_EQ(Read(*home / "share/info/runtime/version.info"), "Version=8.5.0\ninner=8.5.0.1\n");
  EXPECT_EQ(Read(*home / "compiler/version.info"), "Version=8.5.0\n");
  EXPECT_EQ(Read(*home / "compiler/other.txt"), "9.1.0");
  EXPECT_TRUE(fs::is_symlink(*home / "lib64"));
  EXPECT_EQ(Read(tree_ / "share/info/runtime/version.info"), "Version=9.1.0\ninner=9.1.0.1\n");
  EXPECT_EQ(*HomeFor(tree_, "9.1.0", "8.5.0", root_ / "cache"), *home);
}

TEST_F(Links, AreLaidTwiceAndTakenAway) {
  const fs::path prefix = root_ / "Ascend";
  for (int i = 0; i < 2; ++i) {
    const Status status = Install(tree_, prefix);
    ASSERT_TRUE(status.ok()) << status.Message();
  }
  EXPECT_EQ(fs::read_symlink(prefix / "ascend-toolkit/latest"), tree_);
  EXPECT_TRUE(fs::exists(prefix / "ascend-toolkit/set_env.sh"));
  EXPECT_TRUE(fs::exists(prefix / "driver/lib64/driver/libdcmi.so"));
  ASSERT_TRUE(Uninstall(tree_, prefix).ok());
  EXPECT_TRUE(fs::is_empty(prefix));
}

TEST_F(Links, RefuseOverARealInstallation) {
  const fs::path prefix = root_ / "Ascend";
  Write(prefix / "ascend-toolkit/set_env.sh", "the vendor's");
  const Status status = Install(tree_, prefix);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.Message(), HasSubstr("ascend-toolkit/set_env.sh"));
  EXPECT_EQ(Read(prefix / "ascend-toolkit/set_env.sh"), "the vendor's");
  EXPECT_FALSE(fs::exists(prefix / "cann"));
}

TEST_F(Links, RefuseThroughALinkIntoAnotherInstallation) {
  const fs::path prefix = root_ / "Ascend";
  fs::create_directories(prefix);
  fs::create_directories(root_ / "real-driver");
  fs::create_directory_symlink(root_ / "real-driver", prefix / "driver");
  EXPECT_FALSE(Install(tree_, prefix).ok());
  EXPECT_TRUE(fs::is_empty(root_ / "real-driver"));
}

TEST_F(Bench, RunsTheTreesScriptWithTheNamedPython) {
  const std::string python = (root_ / "some python").string();
  Write(tree_ / "anynpu/bench/bench.py");
  Write(python);
  EXPECT_THAT(BenchCommand(tree_, python, {}).status().Message(), HasSubstr(python));  // not executable
  fs::permissions(python, fs::perms::owner_all);
  const auto command = BenchCommand(tree_, python, {"ops", "--only", "add"});
  ASSERT_TRUE(command.ok()) << command.status().Message();
  EXPECT_THAT(*command, testing::ElementsAre(python, (tree_ / "anynpu/bench/bench.py").string(), "--launcher", (tree_ / "bin/anynpu").string(),
                                             "--python", python, "ops", "--only", "add"));
}

TEST_F(Bench, SaysWhatIsMissing) {
  EXPECT_THAT(BenchCommand(tree_, "/bin/sh", {}).status().Message(), HasSubstr("bench.py"));
  Write(tree_ / "anynpu/bench/bench.py");
  const std::string text = BenchCommand(tree_, "no-such-python", {}).status().Message();
  EXPECT_THAT(text, HasSubstr("no-such-python"));
  EXPECT_THAT(text, HasSubstr("--python"));
  EXPECT_TRUE(BenchCommand(tree_, "sh", {}).ok());  // found on PATH
}

}  // namespace
}  // namespace npu::launch
