// Start, end, versions, errors and options of a process, as a C client sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "acl/acl.h"

namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string Message() {
  const char* text = aclGetRecentErrMsg();
  return text != nullptr ? text : "";
}

std::string WriteFile(const std::string& text) {
  const std::string path = ::testing::TempDir() + "acl_" + std::to_string(reinterpret_cast<uintptr_t>(&text)) + ".json";
  std::ofstream(path) << text;
  return path;
}

class Init : public ::testing::Test {
 protected:
  void SetUp() override {
    aclFinalize();
    aclGetRecentErrMsg();
  }
  void TearDown() override { aclFinalize(); }
};

TEST_F(Init, CountsReferences) {
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclInit(""), ACL_ERROR_REPEAT_INITIALIZE);
  uint64_t left = 9;
  EXPECT_EQ(aclFinalizeReference(&left), ACL_SUCCESS);
  EXPECT_EQ(left, 1u);
  EXPECT_EQ(aclFinalizeReference(&left), ACL_SUCCESS);
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(aclFinalizeReference(&left), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST_F(Init, ReadsTheFile) {
  const std::string good =
      WriteFile(R"({"dump":{"dump_scene":"lite_exception"}, "defaultDevice":{"default_device":"0"}})");
  EXPECT_EQ(aclInit(good.c_str()), ACL_SUCCESS) << Message();
  EXPECT_EQ(aclInit(good.c_str()), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_INVALID_PARAM);  // another content
  aclFinalize();
  EXPECT_EQ(aclInit("/nowhere/at/all.json"), ACL_ERROR_INVALID_FILE);
  EXPECT_THAT(Message(), HasSubstr("/nowhere/at/all.json"));
  EXPECT_EQ(aclInit("/dev/zero"), ACL_ERROR_INVALID_FILE);  // endless
  EXPECT_EQ(aclInit("/"), ACL_ERROR_INVALID_FILE);
  EXPECT_EQ(aclInit(WriteFile("{\"a\": ").c_str()), ACL_ERROR_PARSE_FILE);
  EXPECT_EQ(aclInit(WriteFile(std::string(500000, '[')).c_str()), ACL_ERROR_PARSE_FILE);  // deep
  EXPECT_EQ(aclInit(WriteFile(R"({"defaultDevice":{"default_device":"first"}})").c_str()), ACL_ERROR_PARSE_FILE);
  EXPECT_THAT(Message(), HasSubstr("\"first\""));
  EXPECT_EQ(aclInit(WriteFile(R"({"defaultDevice":{"default_device":"-1"}})").c_str()), ACL_ERROR_PARSE_FILE);
  EXPECT_EQ(aclInit(WriteFile("  \n").c_str()), ACL_SUCCESS);
}

TEST_F(Init, DumpGoesThroughItsStates) {
  EXPECT_EQ(aclmdlInitDump(), ACL_ERROR_UNINITIALIZE);
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclmdlSetDump("x"), ACL_ERROR_DUMP_NOT_RUN);
  EXPECT_EQ(aclmdlInitDump(), ACL_SUCCESS);
  EXPECT_EQ(aclmdlInitDump(), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_EQ(aclmdlSetDump(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlSetDump(WriteFile("{}").c_str()), ACL_ERROR_INVALID_DUMP_CONFIG);
  EXPECT_EQ(aclmdlFinalizeDump(), ACL_SUCCESS);
  EXPECT_EQ(aclmdlFinalizeDump(), ACL_ERROR_DUMP_NOT_RUN);
}

TEST(Versions, AgreeWithEachOther) {
  aclCANNPackageVersion cann{};
  ASSERT_EQ(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &cann), ACL_SUCCESS);
  char text[ACL_PKG_VERSION_MAX_SIZE], package[] = "ops-math", driver[] = "driver", unknown[] = "elsewhere";
  ASSERT_EQ(aclsysGetVersionStr(package, text), ACL_SUCCESS);
  EXPECT_STREQ(text, cann.version);
  EXPECT_EQ(std::string(text).rfind(std::string(cann.majorVersion) + "." + cann.minorVersion, 0), 0u);
  ASSERT_EQ(aclsysGetVersionStr(driver, text), ACL_SUCCESS);
  EXPECT_THAT(text, MatchesRegex("[0-9]+\\.[0-9]+.*"));
  EXPECT_EQ(aclsysGetVersionStr(unknown, text), ACL_ERROR_INVALID_FILE);
  EXPECT_EQ(aclsysGetVersionStr(nullptr, text), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclsysGetCANNVersion(static_cast<aclCANNPackageName>(99), &cann), ACL_ERROR_INVALID_PARAM);
  int32_t number = 0;
  EXPECT_EQ(aclsysGetVersionNum(package, &number), ACL_SUCCESS);
  EXPECT_GT(number, 0);
}

TEST(Facts, Describe910B) {
  const std::string soc = aclrtGetSocName();
  if (soc.rfind("Ascend910B", 0) != 0) GTEST_SKIP() << "the machine has " << soc;
  const aclCannAttr* attributes = nullptr;
  size_t count = 0;
  ASSERT_EQ(aclGetCannAttributeList(&attributes, &count), ACL_SUCCESS);
  for (size_t i = 0; i < count; ++i) {
    int32_t has = -1;
    EXPECT_EQ(aclGetCannAttribute(attributes[i], &has), ACL_SUCCESS);
    EXPECT_EQ(has, 1);
  }
  int32_t inf_nan = 0;
  EXPECT_EQ(aclGetCannAttribute(ACL_CANN_ATTR_INF_NAN, &inf_nan), ACL_SUCCESS);
  EXPECT_EQ(inf_nan, 1);
  EXPECT_EQ(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &inf_nan), ACL_ERROR_INVALID_PARAM);
}

TEST(Facts, DevicesThatAreNotThereHaveNoCapabilities) {
  uint32_t count = 0;
  ASSERT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  int64_t cores = 0, vectors = 0, cache = 0;
  EXPECT_EQ(aclGetDeviceCapability(count - 1, ACL_DEVICE_INFO_AI_CORE_NUM, &cores), ACL_SUCCESS);
  EXPECT_EQ(aclGetDeviceCapability(count - 1, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &vectors), ACL_SUCCESS);
  EXPECT_EQ(aclGetDeviceCapability(count - 1, ACL_DEVICE_INFO_L2_SIZE, &cache), ACL_SUCCESS);
  EXPECT_GT(cores, 0);
  EXPECT_GT(vectors, 0);
  EXPECT_GT(cache, 0);
  EXPECT_EQ(aclGetDeviceCapability(count, ACL_DEVICE_INFO_AI_CORE_NUM, &cores), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &cores), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST(Errors, CodesOfTheRuntimeAreKeptAndCleared) {
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 17), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_THAT(Message(), HasSubstr("17"));
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
  EXPECT_EQ(aclrtGetLastError(static_cast<aclrtLastErrLevel>(3)), ACL_ERROR_INVALID_PARAM);
}

TEST(Errors, WhatIsOwedAnswersByName) {
  uint32_t model = 0;
  EXPECT_EQ(aclmdlLoadFromFile("model.om", &model), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  const std::string text = Message();
  EXPECT_THAT(text, HasSubstr("aclmdlLoadFromFile"));
  EXPECT_EQ(aclmdlCreateDesc(), nullptr);
  EXPECT_THAT(Message(), HasSubstr("aclmdlCreateDesc"));
  for (const char* word : {"EL0004", "Failed to allocate", "reason=["}) EXPECT_EQ(text.find(word), std::string::npos);
}

TEST(SysParam, AreRemembered) {
  int64_t value = -1;
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_ENABLE_DEBUG_KERNEL, 2), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetSysParamOpt(static_cast<aclSysParamOpt>(9), 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0), ACL_SUCCESS);
}

TEST(AppLog, NullsAreIgnored) {
  aclAppLog(ACL_ERROR, nullptr, "f", 1, "x");
  aclAppLog(ACL_ERROR, "f", "f", 1, nullptr);
  aclAppLog(ACL_DEBUG, "f", "f", 1, "%s %d", "text", 5);
}

}  // namespace
