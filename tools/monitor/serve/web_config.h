// The file that turns on TLS and basic authentication: Prometheus' web configuration (exporter-toolkit), the parts
//
//   tls_server_config:
//     cert_file: server.crt            # relative to this file
//     key_file: server.key
//     client_ca_file: ca.crt           # optional
//     client_auth_type: RequireAndVerifyClientCert   # or NoClientCert, VerifyClientCertIfGiven
//     min_version: TLS12               # TLS12 or TLS13
//   basic_auth_users:
//     alice: $2y$10$…                  # bcrypt
//
// Anything else in it is refused by name: a setting that does nothing would be worse than none.
#pragma once

#include <map>
#include <string>

#include "base/status/status.h"

namespace npu::monitor {

struct WebConfig {
  std::string cert_file, key_file, client_ca_file;
  enum class ClientAuth { kNone, kVerifyIfGiven, kRequire };
  ClientAuth client_auth = ClientAuth::kNone;
  int min_tls = 12;                          // 12 or 13
  std::map<std::string, std::string> users;  // name to bcrypt hash

  bool tls() const { return !cert_file.empty(); }
};

Result<WebConfig> ReadWebConfig(const std::string& path);

}  // namespace npu::monitor
