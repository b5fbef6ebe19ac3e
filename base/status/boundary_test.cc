#include "base/status/boundary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/log/log.h"
#include "base/status/error_text.h"

namespace npu {
namespace {

using ::testing::HasSubstr;

TEST(Boundary, SuccessIsZeroAndClearsNothing) {
  TakeErrorMessage();
  boundary::Refuse(Error(Code::kContextNull, "first"), AclCode);
  EXPECT_EQ(boundary::Run("f", AclCode, [] { return Status(); }), 0);
  const char* text = TakeErrorMessage();
  ASSERT_NE(text, nullptr);
  EXPECT_THAT(text, HasSubstr("first"));
}

TEST(Boundary, FailureGivesTheCodeOfTheLibrary) {
  auto fail = [] { return Error(Code::kOutOfRange, "value {} is too large", 7); };
  EXPECT_EQ(boundary::Run("f", AclCode, fail), AclCode(Code::kOutOfRange));
  EXPECT_EQ(boundary::Run("f", HcclCode, fail), HcclCode(Code::kOutOfRange));
  EXPECT_THAT(TakeErrorMessage(), HasSubstr("value 7 is too large"));
}

TEST(Boundary, ExceptionsBecomeFailuresThatNameTheFunction) {
  EXPECT_EQ(boundary::Run("aclrtThing", AclCode, []() -> Status { throw std::runtime_error("boom"); }),
            AclCode(Code::kInternal));
  const std::string text = TakeErrorMessage();
  EXPECT_THAT(text, HasSubstr("aclrtThing"));
  EXPECT_THAT(text, HasSubstr("boom"));
  EXPECT_EQ(boundary::Run("f", AclCode, []() -> Status { throw std::bad_alloc(); }), AclCode(Code::kBadAlloc));
  EXPECT_EQ(boundary::Value<void*>("g", []() -> void* { throw 1; }), nullptr);
  EXPECT_THAT(TakeErrorMessage(), HasSubstr("g: "));
}

TEST(LastError, ReadingEmptiesTheQueueWithTheNewestOnTop) {
  TakeErrorMessage();
  RecordError(Error(Code::kInvalidParam, "older"), 100000);
  RecordError(Error(Code::kInvalidParam, "newer").Remedy("Do otherwise."), 100000);
  const std::string text = TakeErrorMessage();
  EXPECT_LT(text.find("newer"), text.find("older"));
  EXPECT_LT(text.find("Solution: Do otherwise."), text.find("TraceBack (most recent call last):"));
  EXPECT_LT(text.find("older"), text.rfind("newer")) << "the trace is in the order of report";
  EXPECT_EQ(TakeErrorMessage(), nullptr);
}

// The form of CANN's texts: number, process, time, cause.
TEST(LastError, TextsBeginAsThoseOfCann) {
  auto text_of = [](const Status& status, int32_t code) {
    TakeErrorMessage();
    RecordError(status, code);
    return std::string(TakeErrorMessage());
  };
  const std::string pid = std::to_string(getpid());
  EXPECT_THAT(text_of(Error(Code::kOutOfRange, "value"), AclCode(Code::kOutOfRange)),
              ::testing::MatchesRegex(
                  "EE1001: .PID: " + pid +
                  ". ....-..-..-..:..:......\\.... The argument is invalid.Reason: .AnyNPU. value .107000.*"));
  EXPECT_THAT(text_of(Error(Code::kInvalidParam, "v"), NnCode(Code::kInvalidParam)),
              ::testing::StartsWith("EZ1001: [PID: "));
  EXPECT_THAT(text_of(Error(Code::kInvalidParam, "v"), HcclCode(Code::kInvalidParam)),
              ::testing::StartsWith("EI0003: [PID: "));
  EXPECT_THAT(text_of(Error(Code::kInvalidParam, "v"), AclCode(Code::kInvalidParam)),
              ::testing::StartsWith("EH0001: [PID: "));
  EXPECT_THAT(text_of(Error(Code::kInternal, "v"), AclCode(Code::kInternal)),
              ::testing::StartsWith("EE9999: Inner Error!\nEE9999: [PID: "));
  EXPECT_THAT(text_of(Error(Code::kCommTimeout, "EI0015: nobody"), HcclCode(Code::kCommTimeout)),
              ::testing::AllOf(::testing::StartsWith("EI0015: [PID: "), ::testing::HasSubstr("[AnyNPU] nobody (9: ")));
}

// Words that make torch see an exhausted device or choose a recovery stand in no text by accident.
TEST(LastError, NoNumberSteersTheClient) {
  for (int code = 1; code <= static_cast<int>(Code::kDriverError); ++code) {
    const Status status = Error(static_cast<Code>(code), "v");
    for (const int32_t number : {AclCode(status.code()), NnCode(status.code()), HcclCode(status.code())})
      EXPECT_NE(ErrorNumber(status, number), "EL0004");
  }
}

// A failure leaves one line in the log, and a flood of them is counted.
TEST(Boundary, FailuresAreLoggedOnce) {
  char folder[] = "/tmp/anynpu-boundary-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  setenv("ASCEND_PROCESS_LOG_PATH", folder, 1);
  log::Reload();
  boundary::Refuse(Error(Code::kInvalidDevice, "aclrtSetDevice: device 7").Remedy("Use 0."), AclCode);
  boundary::Refuse(Error(Code::kReportTimeout, "aclrtProcessReport: none came"), AclCode);
  for (int i = 0; i < 1000; ++i) boundary::Refuse(Error(Code::kInvalidParam, "flood {}", i), HcclCode);
  std::stringstream read;
  read << std::ifstream(log::Destination()).rdbuf();
  const std::string text = read.str();
  EXPECT_THAT(text,
              ::testing::HasSubstr("EE1001: aclrtSetDevice: device 7 Use 0. ErrCode=107001, desc=[InvalidDevice]"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("aclrtProcessReport")));
  EXPECT_THAT(text, ::testing::HasSubstr("[ERROR] HCCL("));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 500);
  unsetenv("ASCEND_PROCESS_LOG_PATH");
  log::Reload();
  std::filesystem::remove_all(folder);
}

TEST(LastError, OnlyRuntimeCodesAreRemembered) {
  TakeErrorCode();
  RecordError(Error(Code::kInvalidParam, "x"), AclCode(Code::kInvalidParam));
  EXPECT_EQ(PeekErrorCode(), 0);
  RecordError(Error(Code::kContextNull, "x"), AclCode(Code::kContextNull));
  EXPECT_EQ(PeekErrorCode(), 107002);
  EXPECT_EQ(TakeErrorCode(), 107002);
  EXPECT_EQ(TakeErrorCode(), 0);
}

// torch_npu prints the runtime's last code in place of the operator's: it must be of the same failure.
TEST(LastError, AnOperatorsOwnFailureEndsAnOlderCode) {
  const auto fail = [](Code code, boundary::CodeOf code_of) { RecordError(Error(code, "x"), code_of(code)); };
  for (const Code own :
       {Code::kInvalidParam, Code::kNullPointer, Code::kUnsupportedDType, Code::kOutOfRange, Code::kNotYet}) {
    fail(Code::kOutOfDeviceMemory, AclCode);
    EXPECT_EQ(PeekErrorCode(), 207001);
    fail(own, NnCode);
    EXPECT_EQ(PeekErrorCode(), 0) << NnCode(own);
  }
  for (const Code beneath : {Code::kTaskAbort, Code::kOutOfDeviceMemory, Code::kContextNull, Code::kTaskException}) {
    fail(Code::kSyncTimeout, AclCode);
    fail(beneath, NnCode);
    EXPECT_EQ(TakeErrorCode(), AclCode(beneath));
  }
  fail(Code::kOutOfDeviceMemory, AclCode);
  fail(Code::kInvalidParam, AclCode);
  EXPECT_EQ(TakeErrorCode(), 207001) << "the layer above the runtime is not recorded";
}

TEST(LastError, BelongsToItsThread) {
  TakeErrorMessage();
  std::thread other([] { RecordError(Error(Code::kContextNull, "of another thread"), 107002); });
  other.join();
  EXPECT_EQ(TakeErrorMessage(), nullptr);
}

TEST(LastError, StaleMessagesDoNotPileUp) {
  for (int i = 0; i < 100; ++i) RecordError(Error(Code::kInvalidParam, "message {}", i), 100000);
  const std::string text = TakeErrorMessage();
  EXPECT_THAT(text, HasSubstr("message 99"));
  EXPECT_LT(text.size(), 2000u);
}

}  // namespace
}  // namespace npu
