#include "acl/acl_op_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "acl/acl.h"

namespace {

using ::testing::HasSubstr;

std::string Message() {
  const char* text = aclGetRecentErrMsg();
  return text != nullptr ? text : "";
}

TEST(CompileOptions, JitIsOffAndReadable) {
  ASSERT_EQ(aclGetCompileoptSize(ACL_OP_JIT_COMPILE), 256u);
  char text[256];
  EXPECT_EQ(aclGetCompileopt(ACL_OP_JIT_COMPILE, text, sizeof text), ACL_SUCCESS);
  EXPECT_STREQ(text, "disable");
  EXPECT_EQ(aclGetCompileopt(ACL_OP_JIT_COMPILE, text, 8), ACL_ERROR_FAILURE);
}

TEST(CompileOptions, RefusalsHaveTheirCodes) {
  char text[256];
  EXPECT_EQ(aclSetCompileopt(ACL_PRECISION_MODE, "must_keep_origin_dtype"), ACL_SUCCESS);
  EXPECT_EQ(aclGetCompileoptSize(ACL_PRECISION_MODE), sizeof "must_keep_origin_dtype");
  EXPECT_EQ(aclGetCompileopt(ACL_PRECISION_MODE, text, sizeof text), ACL_ERROR_API_NOT_SUPPORT);
  EXPECT_EQ(aclSetCompileopt(ACL_AUTO_TUNE_MODE, "x"), ACL_ERROR_FEATURE_UNSUPPORTED);
  EXPECT_EQ(aclSetCompileopt(static_cast<aclCompileOpt>(77), "x"), ACL_ERROR_INTERNAL_ERROR);
  EXPECT_EQ(aclSetCompileopt(ACL_PRECISION_MODE, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclopSetCompileFlag(ACL_OP_COMPILE_FUZZ), ACL_SUCCESS);
  EXPECT_EQ(aclopSetCompileFlag(static_cast<aclOpCompileFlag>(5)), ACL_ERROR_INVALID_PARAM);
}

TEST(SingleOperators, AnswerByTheirName) {
  const int64_t some[] = {2, 3}, none[] = {2, 0};
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT, 2, some, ACL_FORMAT_ND);
  aclTensorDesc* empty = aclCreateTensorDesc(ACL_FLOAT, 2, none, ACL_FORMAT_ND);
  aclDataBuffer* buffer = aclCreateDataBuffer(nullptr, 0);
  auto run = [&](const char* type, aclTensorDesc* in, aclDataBuffer* data, aclTensorDesc* out,
                 aclopCompileType compile) {
    return aclopCompileAndExecute(type, 1, &in, &data, 1, &out, &buffer, nullptr, ACL_ENGINE_SYS, compile, nullptr,
                                  nullptr);
  };
  EXPECT_EQ(run("Ceil", desc, buffer, empty, ACL_COMPILE_SYS), ACL_SUCCESS);  // nothing to compute
  Message();
  EXPECT_EQ(run("NoSuchOperator", desc, buffer, desc, ACL_COMPILE_SYS), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_THAT(Message(), HasSubstr("NoSuchOperator"));
  EXPECT_EQ(run(nullptr, desc, buffer, desc, ACL_COMPILE_SYS), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(run("Ceil", nullptr, buffer, desc, ACL_COMPILE_SYS), ACL_ERROR_INVALID_PARAM);
  EXPECT_THAT(Message(), HasSubstr("inputDesc[0] of Ceil"));
  EXPECT_EQ(run("Ceil", desc, nullptr, desc, ACL_COMPILE_SYS), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(run("Ceil", desc, buffer, desc, static_cast<aclopCompileType>(4)), ACL_ERROR_API_NOT_SUPPORT);
  aclDestroyTensorDesc(desc);
  aclDestroyTensorDesc(empty);
  aclDestroyDataBuffer(buffer);
}

}  // namespace
