#include "base/status/status.h"

#include <gtest/gtest.h>

namespace npu {
namespace {

Status Fails() { return Error(Code::kInvalidDevice, "aclrtSetDevice: deviceId is {}.", 7).Remedy("Use 0 to {}.", 1); }
Status Passes(int* steps) {
  NPU_TRY(Status());
  ++*steps;
  NPU_TRY(Fails());
  ++*steps;
  return {};
}
Result<int> Half(int v) {
  if (v % 2 != 0) return Error(Code::kOutOfRange, "odd");
  return v / 2;
}
Status Quarter(int v, int* out) {
  NPU_ASSIGN(int half, Half(v));
  NPU_ASSIGN(*out, Half(half));
  return {};
}

TEST(Status, CarriesCodeTextAndRemedy) {
  const Status s = Fails();
  EXPECT_FALSE(s.ok());
  EXPECT_EQ(s.code(), Code::kInvalidDevice);
  EXPECT_EQ(s.Message(), "aclrtSetDevice: deviceId is 7. Use 0 to 1.");
  EXPECT_EQ(AclCode(s.code()), 107001);
}

TEST(Status, TryReturnsAtTheFirstFailure) {
  int steps = 0;
  EXPECT_EQ(Passes(&steps).code(), Code::kInvalidDevice);
  EXPECT_EQ(steps, 1);
}

TEST(Status, AssignPassesValuesAndFailures) {
  int out = 0;
  EXPECT_TRUE(Quarter(12, &out).ok());
  EXPECT_EQ(out, 3);
  EXPECT_EQ(Quarter(6, &out).code(), Code::kOutOfRange);
}

TEST(Status, NotYetNamesTheFunction) {
  EXPECT_NE(NotYet("aclmdlRIUpdate").Message().find("aclmdlRIUpdate"), std::string::npos);
}

}  // namespace
}  // namespace npu
