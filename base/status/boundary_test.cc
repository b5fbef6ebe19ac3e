#include "base/status/boundary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

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

TEST(LastError, ReadingEmptiesTheQueueNewestFirst) {
  TakeErrorMessage();
  RecordError(Error(Code::kInvalidParam, "older"), 100000);
  RecordError(Error(Code::kInvalidParam, "newer"), 100000);
  const std::string text = TakeErrorMessage();
  EXPECT_LT(text.find("newer"), text.find("older"));
  EXPECT_EQ(TakeErrorMessage(), nullptr);
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
  EXPECT_LT(text.size(), 1000u);
}

}  // namespace
}  // namespace npu
