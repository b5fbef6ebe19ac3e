#include "tools/launch/mpi.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>

namespace npu::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Lookup In(std::map<std::string, std::string> set) {
  return [set = std::move(set)](const std::string& name) {
    const auto at = set.find(name);
    return at == set.end() ? std::nullopt : std::optional<std::string>(at->second);
  };
}

std::string Of(const Result<Variables>& variables, const std::string& name) {
  if (!variables.ok()) return variables.status().Message();
  for (const auto& [key, value] : *variables) {
    if (key == name) return value;
  }
  return "unset";
}

TEST(Mpi, TheWrapperStandsBeforeEachProgram) {
  const auto with = [](const Words& command) { return InsertBeforePrograms(command, {"W"}); };
  EXPECT_THAT(*with({"mpirun", "-n", "8", "sh", "train.sh"}), ElementsAre("mpirun", "-n", "8", "W", "sh", "train.sh"));
  EXPECT_THAT(*with({"mpirun", "--mca", "btl", "tcp,self", "-x", "PATH", "--bind-to", "none", "--allow-run-as-root",
                     "-np", "2", "sh", "-c", "x"}),
              ElementsAre("mpirun", "--mca", "btl", "tcp,self", "-x", "PATH", "--bind-to", "none",
                          "--allow-run-as-root", "-np", "2", "W", "sh", "-c", "x"));
  EXPECT_THAT(*with({"mpiexec", "-n", "1", "sh", "a", ":", "-n", "1", "sh", "b"}),
              ElementsAre("mpiexec", "-n", "1", "W", "sh", "a", ":", "-n", "1", "W", "sh", "b"));
  EXPECT_FALSE(with({"mpirun", "-n", "8"}).ok());
}

TEST(Mpi, RanksComeFromEachStarter) {
  const auto open = RankVariables(In({{"OMPI_COMM_WORLD_RANK", "5"},
                                      {"OMPI_COMM_WORLD_SIZE", "8"},
                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
                                  "h0:1234");
  EXPECT_EQ(Of(open, "RANK"), "5");
  EXPECT_EQ(Of(open, "LOCAL_RANK"), "1");
  EXPECT_EQ(Of(open, "WORLD_SIZE"), "8");
  EXPECT_EQ(Of(open, "LOCAL_WORLD_SIZE"), "4");
  EXPECT_EQ(Of(open, "MASTER_ADDR"), "h0");
  EXPECT_EQ(Of(open, "MASTER_PORT"), "1234");
  const auto hydra = RankVariables(
      In({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "3"}, {"MASTER_ADDR", "mine"}}), "h0:1");
  EXPECT_EQ(Of(hydra, "RANK"), "3");
  EXPECT_EQ(Of(hydra, "MASTER_ADDR"), "mine");
  const auto slurm = RankVariables(In({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}}), "h0:1");
  EXPECT_EQ(Of(slurm, "LOCAL_RANK"), "0");
}

TEST(Mpi, WhatIsMissingIsExplained) {
  const auto none = RankVariables(In({}), "h:1");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.status().Message(), HasSubstr("OMPI_COMM_WORLD_RANK"));
  EXPECT_FALSE(RankVariables(In({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}), "").ok());
  EXPECT_FALSE(RankVariables(In({{"PMI_RANK", "9"}, {"PMI_SIZE", "4"}}), "h:1").ok());
}

TEST(Mpi, TheMeetingPlaceIsTheFirstHost) {
  EXPECT_THAT(*MasterFor({"mpirun", "-H", "a:4,b:4", "-n", "8", "sh"}, In({})), HasSubstr("a:29500"));
  EXPECT_THAT(*MasterFor({"mpirun", "-n", "8", "sh"}, In({})), HasSubstr("127.0.0.1:"));
  EXPECT_EQ(*MasterFor({"mpirun", "-n", "8", "sh"}, In({{"MASTER_ADDR", "x"}, {"MASTER_PORT", "7"}})), "x:7");
}

TEST(Lint, AgentsOnEverySlotAreRecognised) {
  const std::string said = LintOf({"mpirun", "-n", "8", "--bind-to", "none", "python", "-m", "torch.distributed.run",
                                   "--nproc_per_node=8", "t.py"});
  EXPECT_THAT(said, HasSubstr("8 agents"));
  EXPECT_THAT(said, HasSubstr("--mpi -- mpirun -n 8 python train.py"));
  EXPECT_EQ(LintOf({"mpirun", "-n", "8", "python", "t.py"}), "");
  EXPECT_EQ(LintOf({"torchrun", "--nproc-per-node=8", "t.py"}), "");
  EXPECT_EQ(LintOf({"mpirun", "-n", "1", "torchrun", "--nproc-per-node=8", "t.py"}), "");
  const std::string path = testing::TempDir() + "/starts_" + std::to_string(::getpid()) + ".sh";
  std::ofstream(path) << "#!/bin/bash\nmpirun -n $1 \\\n --bind-to none \\\n python -m torch.distributed.run \\\n "
                         "--nproc_per_node=$1 \\\n \"$6\"\n";
  EXPECT_THAT(LintOf({"bash", path, "8", "1"}), HasSubstr("$1 agents"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace npu::launch
