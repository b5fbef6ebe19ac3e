#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <crypt.h>

#include <filesystem>
#include <fstream>

#include "tools/monitor/serve/auth.h"
#include "tools/monitor/serve/server.h"
#include "tools/monitor/serve/web_config.h"

namespace npu::monitor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Bcrypt(const std::string& password) {
  char setting[CRYPT_GENSALT_OUTPUT_SIZE];
  crypt_gensalt_rn("$2b$", 4, nullptr, 0, setting, sizeof setting);
  crypt_data data{};
  return crypt_r(password.c_str(), setting, &data);
}

class Config : public ::testing::Test {
 protected:
  Result<WebConfig> Read(const std::string& text) {
    char path[] = "/tmp/anynpu-web-XXXXXX";
    close(mkstemp(path));
    std::ofstream(path) << text;
    Result<WebConfig> config = ReadWebConfig(path);
    std::filesystem::remove(path);
    return config;
  }
};

TEST_F(Config, HashesAndCertificates) {
  const std::string hash = Bcrypt("secret");
  Result<WebConfig> config = Read(
      "tls_server_config:\n  cert_file: a.crt\n  key_file: /b.key\n  min_version: TLS13\nbasic_auth_users:\n  alice: " +
      hash + "\n");
  ASSERT_TRUE(config.ok()) << config.status().Message();
  EXPECT_EQ(config->cert_file, "/tmp/a.crt");
  EXPECT_EQ(config->key_file, "/b.key");
  EXPECT_EQ(config->min_tls, 13);
  EXPECT_EQ(config->users.at("alice"), hash);
  EXPECT_TRUE(Read("")->users.empty());
}

TEST_F(Config, WhatIsWrongIsNamedAndSecretsAreNot) {
  const std::pair<const char*, const char*> cases[] = {
      {"basic_auth_users:\n  alice: swordfish\n", "alice"},
      {"basic_auth_users: swordfish\n", "basic_auth_users"},
      {"tls_server_config:\n  cert_file: a\n", "key_file"},
      {"tls_server_config:\n  cert_file: a\n  key_file: b\n  cipher_suites: x\n", "cipher_suites"},
      {"http_server_config:\n  http2: true\n", "http_server_config"},
      {"basic_auth_users: {alice: [swordfish\n", "line"},
      {"tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequireAndVerifyClientCert}\n",
       "client_ca_file"},
  };
  for (const auto& [text, names] : cases) {
    Result<WebConfig> config = Read(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(config.status().Message(), HasSubstr(names));
    EXPECT_THAT(config.status().Message(), Not(HasSubstr("swordfish")));
  }
  EXPECT_FALSE(ReadWebConfig("/nonexistent").ok());
}

TEST(Auth, OnlyTheRightPassword) {
  Auth auth({{"alice", Bcrypt("secret")}});
  EXPECT_TRUE(auth.Allows("Basic YWxpY2U6c2VjcmV0"));  // alice:secret
  EXPECT_TRUE(auth.Allows("Basic YWxpY2U6c2VjcmV0"));
  for (const char* bad : {"", "Basic", "Basic ", "Basic !!!!", "Basic YWxpY2U6d3Jvbmc=", "Basic Ym9iOnNlY3JldA==",
                          "Bearer YWxpY2U6c2VjcmV0", "Basic YWxpY2U="}) {
    EXPECT_FALSE(auth.Allows(bad)) << bad;
  }
  EXPECT_FALSE(auth.Allows("Basic " + std::string(100000, 'A')));
  EXPECT_TRUE(Auth({}).Allows(""));
}

TEST(Address, LoopbackUnlessToldOtherwise) {
  EXPECT_EQ(ParseAddress("8082")->host, "127.0.0.1");
  EXPECT_EQ(ParseAddress(":8082")->host, "::");
  EXPECT_EQ(ParseAddress("[::1]:9")->host, "::1");
  EXPECT_EQ(ParseAddress("0.0.0.0:9")->port, 9);
  for (const char* bad : {"", "x", "1.2.3.4:", "1.2.3.4:99999", "1:-2", "a:b"})
    EXPECT_FALSE(ParseAddress(bad).ok()) << bad;
}

TEST(Server, ATakenPortIsNamed) {
  Server first("first", {}), second("second", {});
  ASSERT_TRUE(first.Start({"127.0.0.1", 0}).ok());
  const Status status = second.Start({"127.0.0.1", first.port()});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.Message(), HasSubstr(std::to_string(first.port())));
  EXPECT_THAT(status.Message(), HasSubstr("taken"));
}

TEST(Server, ACertificateThatIsNoneIsNamed) {
  Server server("s", WebConfig{.cert_file = "/nonexistent.crt", .key_file = "/nonexistent.key"});
  const Status status = server.Start({"127.0.0.1", 0});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.Message(), HasSubstr("/nonexistent.crt"));
}

}  // namespace
}  // namespace npu::monitor
