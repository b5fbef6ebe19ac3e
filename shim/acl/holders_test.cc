// Descriptions, buffers and attributes as a C client sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "acl/acl.h"

namespace {

using ::testing::HasSubstr;

uint32_t Seed() {
  static const uint32_t seed = [] {
    const uint32_t s = std::random_device()();
    std::printf("seed %u\n", s);
    return s;
  }();
  return seed;
}

std::string Message() {
  const char* text = aclGetRecentErrMsg();
  return text != nullptr ? text : "";
}

TEST(TensorDesc, KeepsWhatItIsMadeOf) {
  std::mt19937 random(Seed());
  std::vector<int64_t> dims(1 + random() % 8);
  int64_t count = 1;
  for (int64_t& d : dims) count *= d = 1 + random() % 6;
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT, static_cast<int>(dims.size()), dims.data(), ACL_FORMAT_ND);
  ASSERT_NE(desc, nullptr);
  EXPECT_EQ(aclGetTensorDescType(desc), ACL_FLOAT);
  EXPECT_EQ(aclGetTensorDescFormat(desc), ACL_FORMAT_ND);
  ASSERT_EQ(aclGetTensorDescNumDims(desc), dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = 0;
    EXPECT_EQ(aclGetTensorDescDimV2(desc, i, &d), ACL_SUCCESS);
    EXPECT_EQ(d, dims[i]);
  }
  EXPECT_EQ(aclGetTensorDescElementCount(desc), static_cast<size_t>(count));
  EXPECT_EQ(aclGetTensorDescSize(desc), static_cast<size_t>(count) * 4);
  int64_t d = 0;
  EXPECT_EQ(aclGetTensorDescDimV2(desc, dims.size(), &d), ACL_ERROR_INVALID_PARAM);
  EXPECT_THAT(Message(), HasSubstr("the rank is " + std::to_string(dims.size())));
  aclDestroyTensorDesc(desc);
  EXPECT_EQ(aclGetTensorDescType(desc), ACL_DT_UNDEFINED);  // destroyed: no crash
}

TEST(TensorDesc, UnknownShapesAndNonsense) {
  const int64_t unknown_rank[] = {-2}, unknown_dim[] = {3, -1}, huge[] = {INT64_MAX, INT64_MAX};
  aclTensorDesc* a = aclCreateTensorDesc(ACL_INT8, 1, unknown_rank, ACL_FORMAT_ND);
  EXPECT_EQ(aclGetTensorDescNumDims(a), ACL_UNKNOWN_RANK);
  aclTensorDesc* b = aclCreateTensorDesc(ACL_INT8, 2, unknown_dim, ACL_FORMAT_ND);
  EXPECT_EQ(aclGetTensorDescElementCount(b), 0u);
  aclTensorDesc* c = aclCreateTensorDesc(ACL_INT8, 2, huge, ACL_FORMAT_ND);
  EXPECT_EQ(aclGetTensorDescSize(c), 0u);
  aclTensorDesc* scalar = aclCreateTensorDesc(ACL_INT8, 0, nullptr, ACL_FORMAT_ND);
  EXPECT_EQ(aclGetTensorDescElementCount(scalar), 1u);
  EXPECT_EQ(aclCreateTensorDesc(ACL_INT8, -1, nullptr, ACL_FORMAT_ND), nullptr);
  EXPECT_EQ(aclCreateTensorDesc(ACL_INT8, 1, nullptr, ACL_FORMAT_ND), nullptr);
  EXPECT_EQ(aclSetTensorFormat(nullptr, ACL_FORMAT_ND), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorShape(nullptr, 0, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclSetTensorPlaceMent(nullptr, ACL_MEMTYPE_HOST), ACL_ERROR_INVALID_PARAM);
  for (aclTensorDesc* d : {a, b, c, scalar}) aclDestroyTensorDesc(d);
  aclDestroyTensorDesc(nullptr);
}

TEST(DataBuffer, HoldsAPairAndNotTheMemory) {
  int x = 0;
  aclDataBuffer* buffer = aclCreateDataBuffer(&x, sizeof x);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), &x);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), sizeof x);
  EXPECT_EQ(aclUpdateDataBuffer(buffer, nullptr, size_t{1} << 40), ACL_SUCCESS);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), size_t{1} << 40);
  EXPECT_EQ(aclDestroyDataBuffer(buffer), ACL_SUCCESS);
  EXPECT_NE(aclDestroyDataBuffer(buffer), ACL_SUCCESS);  // twice
  EXPECT_EQ(aclDestroyDataBuffer(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetDataBufferAddr(reinterpret_cast<aclDataBuffer*>(&x)), nullptr);  // foreign: no crash
}

TEST(OpAttr, RefusesNullsAndTakesEmptyLists) {
  aclopAttr* attr = aclopCreateAttr();
  EXPECT_EQ(aclopSetAttrInt(attr, "n", 7), ACL_SUCCESS);
  EXPECT_EQ(aclopSetAttrListInt(attr, "list", 0, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclopSetAttrListInt(attr, "list", 2, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclopSetAttrString(attr, "s", nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclopSetAttrFloat(attr, nullptr, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclopSetAttrBool(nullptr, "b", 1), ACL_ERROR_INVALID_PARAM);
  const int64_t row[] = {1, 2};
  const int64_t* rows[] = {row, nullptr};
  const int counts[] = {2, 2};
  EXPECT_EQ(aclopSetAttrListListInt(attr, "ll", 1, counts, rows), ACL_SUCCESS);
  EXPECT_EQ(aclopSetAttrListListInt(attr, "ll", 2, counts, rows), ACL_ERROR_INVALID_PARAM);
  EXPECT_THAT(Message(), HasSubstr("list 1"));
  const char* texts[] = {"a", nullptr};
  EXPECT_EQ(aclopSetAttrListString(attr, "t", 1, texts), ACL_SUCCESS);
  EXPECT_EQ(aclopSetAttrListString(attr, "t", 2, texts), ACL_ERROR_INVALID_PARAM);
  aclopDestroyAttr(attr);
  EXPECT_EQ(aclopSetAttrInt(attr, "n", 7), ACL_ERROR_RT_INVALID_HANDLE);
}

// The half formula of IEEE 754 in integers: value = mantissa * 2^(exponent - 1075) of the double, rounded to even.
double HalfValue(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Float16, EveryHalfThereAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<aclFloat16>(bits);
    const float value = aclFloat16ToFloat(half);
    if ((bits & 0x7C00) == 0x7C00) {
      EXPECT_EQ(std::isnan(value), (bits & 0x3FF) != 0);
      EXPECT_EQ(std::isinf(value), (bits & 0x3FF) == 0);
      const aclFloat16 back = aclFloatToFloat16(value);
      EXPECT_TRUE(std::isinf(value) ? back == half : std::isnan(aclFloat16ToFloat(back))) << std::hex << bits;
    } else {
      ASSERT_EQ(value, HalfValue(half)) << std::hex << bits;
      ASSERT_EQ(aclFloatToFloat16(value), half) << std::hex << bits;
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  std::mt19937 random(Seed());
  for (int i = 0; i < 200000; ++i) {
    const float value =
        std::ldexp(static_cast<float>(random()) / 4294967296.0f + 1, static_cast<int>(random() % 44) - 27);
    const uint16_t half = aclFloatToFloat16(value);
    if (value >= 65520) {
      ASSERT_EQ(half, 0x7C00) << value;
      continue;
    }
    const double error = std::abs(HalfValue(half) - value);
    for (const int step : {-1, 1}) {
      const int other = half + step;
      if (other < 0 || other >= 0x7C00) continue;
      const double other_error = std::abs(HalfValue(static_cast<uint16_t>(other)) - value);
      ASSERT_LE(error, other_error) << value;
      ASSERT_TRUE(error != other_error || (half & 1) == 0) << value;
    }
  }
}

TEST(DataTypeSize, IsThatOfTheElement) {
  EXPECT_EQ(aclDataTypeSize(ACL_DT_UNDEFINED), 0u);
  EXPECT_EQ(aclDataTypeSize(ACL_STRING), 0u);
  EXPECT_EQ(aclDataTypeSize(ACL_BOOL), 1u);
  EXPECT_EQ(aclDataTypeSize(ACL_BF16), 2u);
  EXPECT_EQ(aclDataTypeSize(ACL_COMPLEX32), 4u);
  EXPECT_EQ(aclDataTypeSize(ACL_COMPLEX128), 16u);
}

}  // namespace
