#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tools/doctor/data.h"
#include "tools/doctor/explain/knowledge.h"
#include "tools/doctor/explain/log.h"
#include "tools/doctor/explain/operators.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace {

using testing::HasSubstr;

std::string FirstCause(const std::string& log) {
  LogReader reader;
  for (std::string_view line : Split(log, '\n')) reader.ReadLine(line);
  const Verdict verdict = reader.Conclude();
  if (!verdict.cause) return "nothing";
  return verdict.cause->answer->code.empty() ? verdict.cause->answer->name : verdict.cause->answer->code;
}

TEST(Codes, EveryRowOfTheContractsTablesIsAnswered) {
  const Knowledge& knowledge = Knowledge::Get();
  std::ifstream codes(std::string(NPU_SOURCE_DIR) + "/abi/codes.tsv");
  std::string line;
  std::getline(codes, line);
  int rows = 0;
  while (std::getline(codes, line)) {
    const auto cells = Split(line, '\t');
    ++rows;
    EXPECT_NE(knowledge.Find(cells[0], cells[1]), nullptr) << line;
    EXPECT_TRUE(cells[1] == "0" || !knowledge.Find(cells[2]).empty()) << line;
  }
  EXPECT_GT(rows, 250);
  std::ifstream enums(std::string(NPU_SOURCE_DIR) + "/abi/enums.tsv");
  while (std::getline(enums, line)) {
    const auto cells = Split(line, '\t');
    EXPECT_TRUE(cells[0] != "HcclResult" || knowledge.Find("hccl", cells[2])) << line;
  }
}

// Of ASCII letters: in a Chinese text such a word is a command, a setting or a function.
int LongestWord(std::string_view text) {
  int longest = 0, length = 0;
  for (char c : text) {
    length = isalpha(static_cast<unsigned char>(c)) ? length + 1 : 0;
    longest = std::max(longest, length);
  }
  return longest;
}

// A cause is more than the code's name, a next step is something to type or to set.
TEST(Codes, EveryAnswerHasACauseAndAStepInBothLanguages) {
  for (const Answer& answer : Knowledge::Get().answers()) {
    EXPECT_FALSE(answer.what.en.empty() || answer.what.zh.empty()) << answer.name;
    EXPECT_FALSE(answer.where.en.empty() || answer.where.zh.empty()) << answer.name;
    EXPECT_GT(answer.cause->why.en.size(), 30u) << answer.cause->key;
    EXPECT_GT(answer.cause->why.zh.size(), 20u) << answer.cause->key;
    EXPECT_NE(answer.cause->why.en, answer.what.en) << answer.name;
    EXPECT_NE(answer.cause->next.en.find_first_of("(=/:_-$"), std::string::npos)
        << answer.cause->key << ": " << answer.cause->next.en;
    EXPECT_GE(LongestWord(answer.cause->next.zh), 4) << answer.cause->key << ": " << answer.cause->next.zh;
  }
}

TEST(Codes, AreFoundHoweverTheyAreWritten) {
  const Knowledge& knowledge = Knowledge::Get();
  const auto name = [&](const char* code) { return knowledge.Find(code).empty() ? "" : knowledge.Find(code)[0]->name; };
  EXPECT_EQ(name("107002"), "ACL_ERROR_RT_CONTEXT_NULL");
  EXPECT_EQ(name("0x1A1FA"), "ACL_ERROR_RT_CONTEXT_NULL");
  EXPECT_EQ(name("acl_error_rt_context_null"), "ACL_ERROR_RT_CONTEXT_NULL");
  EXPECT_EQ(name("hccl:9"), "HCCL_E_TIMEOUT");
  EXPECT_EQ(name("HCCL_EPERM"), "HCCL_EPERM");
  EXPECT_EQ(name("-8005"), "DCMI_ERR_CODE_INNER_ERR");
  EXPECT_EQ(name("ERR02200"), "ERR02200");
  EXPECT_EQ(name("EE7777"), "EE7777") << "no row: the family answers";
  EXPECT_EQ(name("no-such-code"), "");
  EXPECT_EQ(name("EX1234"), "");
  EXPECT_THAT(knowledge.Find("EL9998")[0]->where.en, HasSubstr("driver"));
}

struct Case {
  const char* name;
  const char* log;
  const char* cause;
};

// Logs as the layers write them, one a failure; the cause is the code or phrase that has to be named.
const Case kCases[] = {
    {"OutOfMemoryOnOneRank",
     "[rank0]: Traceback (most recent call last):\n"
     "[rank1]: torch.OutOfMemoryError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 1; 32.00 GiB total "
     "capacity)\n"
     "[ERROR] 2026-11-30-10:00:02 (PID:8, Device:0, RankID:0) ERR02200 DIST call hccl api failed.\n"
     "EI0002: 2026-11-30-10:30:02 The wait execution of the Notify register times out.\n"
     "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n",
     "NPU out of memory"},
    {"ExceptionOfOneRankBeforeTimeouts",
     "[rank2]: KeyError: 'labels'\n[rank0]: EI0006: Getting socket times out\nRuntimeError: call hccl api failed "
     "ERR02200\n",
     "exception"},
    {"MissingLibrary",
     "ImportError: libascendcl.so: cannot open shared object file: No such file or directory\nRuntimeError: Device "
     "backend 'npu' is not available\n",
     "libascendcl.so: cannot open shared object file"},
    {"MissingDriver", "ImportError: libascend_hal.so: cannot open shared object file: No such file or directory\n",
     "libascend_hal.so: cannot open shared object file"},
    {"UndefinedSymbol", "ImportError: libop.so: undefined symbol: _ZN6Ascend10AscendOp10get_op_infoEv\n",
     "_ZN6Ascend10AscendOp"},
    {"BackendAbsent", "RuntimeError: Device backend 'npu' is not available\n", "Device backend 'npu' is not available"},
    {"PortInUse",
     "[ERROR] HCCL(77,python):2026-11-30-10:00:00.1 hccl_socket listen on port[16666] fail\nEI0019: listening "
     "failed\nRuntimeError: hcclCommInitRootInfoConfig, error code is 7\n",
     "hccl_socket*listen*fail"},
    {"RankThatNeverCame",
     "EI0006: 2026-11-30-10:00:00 Getting socket times out. Reason: timeout\nERR02200 DIST call hccl api failed\n",
     "EI0006"},
    {"ShapesDisagree",
     "EI0005: The arguments for collective communication are inconsistent between ranks\nEI0002: wait times out\n",
     "EI0005"},
    {"KernelFaultWithItsRoot",
     "RuntimeError: operator():build/x.cpp:1 NPU function error: call aclnnIndex failed, error code is 507015\n[ERROR] "
     "ERR00100 PTA call acl api failed\n"
     "EZ9999: Inner Error!\n",
     "507015"},
    {"DtypeBehindTheWrapper",
     "RuntimeError: aclnnFoo failed, error code is 561103\n[ERROR] ERR01100 OPS call acl api failed\nEZ1007: Operator "
     "Foo does not support data type DT_DOUBLE\n",
     "EZ1007"},
    {"KernelsPackage",
     "EZ9999: Inner Error! Cannot find bin of op Range\nRuntimeError: ERR01100 OPS call acl api failed\n",
     "Cannot find bin of op"},
    {"CompilePackages", "EH9999: Inner Error!\n  ModuleNotFoundError: No module named 'decorator'\n",
     "No module named 'decorator'"},
    {"VisibleList", "EE1001: The argument is invalid. ASCEND_RT_VISIBLE_DEVICES must be ascending\n",
     "ASCEND_RT_VISIBLE_DEVICES*ascending"},
    {"KilledByTheKernel",
     "ERROR:torch: failed (exitcode: -9) local_rank: 1\nConnection closed by peer [127.0.0.1]:29500\n",
     "failed (exitcode: -9)"},
    {"ForkedWorker",
     "RuntimeError: Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use the "
     "'spawn' start method\n",
     "Cannot re-initialize NPU in forked subprocess"},
    {"DockerGpus",
     "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].\n",
     "could not select device driver*gpu"},
    {"MonitorInContainer", "dcmi module initialize failed. ret is -8005\n",
     "dcmi module initialize failed. ret is -8005"},
    {"HardwareMemory",
     "[ERROR] RUNTIME(1,python):2026-11-30-10:00:00 HBM MULTI BIT ECC ERROR\nRuntimeError: error code is 507054\nFORCE "
     "STOP\n",
     "HBM MULTI BIT ECC ERROR"},
    {"MixedDevices",
     "RuntimeError: Expected all tensors to be on the same device, npu:0 and cpu\n[ERROR] 2026-11-30-10:00:00 (PID:1, "
     "Device:0, RankID:-1) ERR01002 OPS invalid type\n",
     "Expected all tensors to be on the same device"},
    {"NotContiguous", "RuntimeError: Tensors must be contiguous\n[ERROR] ERR02002 DIST invalid type\n",
     "Tensors must be contiguous"},
    {"OnlyFollowUps", "ERR00100 PTA call acl api failed\nEE9999: Inner Error!\n", "ERR00100"},
    {"HcclNumber", "hcclCommInitRootInfoConfig failed, error code is 11\n", "11"},
    {"NothingKnown", "step 107002 loss 0.3 tokens 507011\nall is well\n", "nothing"},
    {"WarningsAreNoFailures", "[WARNING] RUNTIME(1,python):2026-11-30-10:00:00 ret=207000\nValueError: bad batch\n",
     "exception"},
};

class Log : public testing::TestWithParam<Case> {};
TEST_P(Log, NamesTheFirstCause) { EXPECT_EQ(FirstCause(GetParam().log), GetParam().cause); }
INSTANTIATE_TEST_SUITE_P(Injected, Log, testing::ValuesIn(kCases),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(LogFile, OfTwoFilesTheEarlierTimeIsTheCause) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("anynpu-log-{}", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "rank0.log") << "2026-11-30 10:00:09 error code is 107001\n";
  std::ofstream(folder / "rank1.log") << "2026-11-30 10:00:03 error code is 207001\n";
  LogReader reader;
  EXPECT_TRUE(reader.ReadFile(folder / "rank0.log"));
  EXPECT_TRUE(reader.ReadFile(folder / "rank1.log"));
  EXPECT_FALSE(reader.ReadFile(folder / "missing.log"));
  ASSERT_TRUE(reader.Conclude().cause);
  EXPECT_EQ(reader.Conclude().cause->answer->code, "207001");
  EXPECT_THAT(reader.errors(), testing::ElementsAre(HasSubstr("missing.log")));
  std::filesystem::remove_all(folder);
}

// What a log may hold: no line ends, zero bytes, cut UTF-8, lines of megabytes. The cause stands behind all that.
TEST(LogFile, StrangeBytesAndAGreatSizeTakeNoMemory) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  constexpr size_t kMegabytes = 64;
  std::thread writer([fd = pipe_ends[1]] {
    std::string block(1 << 20, 'x');
    for (size_t i = 0; i < block.size(); i += 97) block[i] = static_cast<char>(i % 251 == '\n' ? 0 : i % 251);
    for (size_t i = 0; i < kMegabytes; ++i) {
      for (size_t done = 0; done < block.size();)
        done += static_cast<size_t>(std::max<ssize_t>(0, write(fd, block.data() + done, block.size() - done)));
    }
    const std::string end = "\nNPU out of memory";
    EXPECT_EQ(write(fd, end.data(), end.size()), static_cast<ssize_t>(end.size()));
    close(fd);
  });
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  LogReader reader;
  reader.ReadDescriptor(pipe_ends[0], "pipe");
  writer.join();
  close(pipe_ends[0]);
  getrusage(RUSAGE_SELF, &after);
  ASSERT_TRUE(reader.Conclude().cause);
  EXPECT_EQ(reader.Conclude().cause->answer->name, "NPU out of memory");
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 32 << 10) << "kilobytes more than before";
}

TEST(Time, IsReadFromEveryForm) {
  EXPECT_EQ(TimeOf("[ERROR] HCCL(1,python):2026-11-30-14:00:01.123.456 x"), "20261130140001123456");
  EXPECT_EQ(TimeOf("2026-11-30 14:00:01,5 x"), "20261130140001500000");
  EXPECT_EQ(TimeOf("2026-11-30T14:00:01Z"), "20261130140001000000");
  EXPECT_EQ(TimeOf("no time"), "");
}

TEST(Operators, AreFoundByTheNamesOfPrograms) {
  for (const char* name : {"torch.nn.functional.gelu", "F.gelu", "torch.nn.GELU", "aten::gelu", "aclnnGelu"}) {
    const Operator op = Describe(name);
    EXPECT_EQ(op.State(), "native") << name;
    ASSERT_FALSE(op.functions.empty()) << name;
    ASSERT_FALSE(op.functions[0].parameters.empty()) << name;
    EXPECT_THAT(op.functions[0].parameters[0].types_910b, HasSubstr("bf16"));
    EXPECT_THAT(op.functions[0].parameters[0].types_310p, testing::Not(HasSubstr("bf16")));
  }
  EXPECT_EQ(Describe("torch.Tensor.add_").State(), "native");
  EXPECT_EQ(Describe("torch.nn.functional.linear").State(), "composed");
  EXPECT_EQ(Describe("torch.no_such_operator").State(), "unknown");
  EXPECT_FALSE(LooksLikeOperator("no such operator"));
  EXPECT_FALSE(LooksLikeOperator("train"));
}

TEST(Operators, SayCpuAndRefusedAsTheTablesDo) {
  const Table torch(data::torch_operators), functions(data::functions);
  int cpu = 0, refused = 0;
  for (const Row& row : torch.rows()) {
    if (row["kernel"] != "cpu" || row["namespace"] != "aten") continue;
    const Operator op = Describe(std::string("torch.ops.aten.") + std::string(row["name"]));
    cpu += op.State() == "cpu";
  }
  for (const Row& row : functions.rows())
    refused += row["defined"] == "no" && Describe(row["name"]).State() == "refused";
  EXPECT_GT(cpu, 20);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace npu::doctor
