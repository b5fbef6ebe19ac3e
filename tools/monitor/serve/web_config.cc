#include "tools/monitor/serve/web_config.h"

#include <yaml-cpp/yaml.h>

#include <filesystem>

#include "tools/monitor/collect/files.h"

namespace npu::monitor {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMostConfig = 1 << 20;

Status Bad(const std::string& path, const std::string& what) {
  return Error(Code::kInvalidParam, "{}: {}.", path, what)
      .Remedy(
          "It is Prometheus' web configuration: tls_server_config and basic_auth_users (docs/guide/monitoring.md).");
}

Status ReadTls(const std::string& path, const YAML::Node& tls, WebConfig& config) {
  const fs::path folder = fs::path(path).parent_path();
  if (!tls.IsMap()) return Bad(path, "tls_server_config is not a table");
  for (const auto& entry : tls) {
    const auto key = entry.first.as<std::string>();
    if (!entry.second.IsScalar()) return Bad(path, fmt::format("tls_server_config: {} is not one word", key));
    const auto value = entry.second.as<std::string>();
    const auto file = [&] { return value.empty() ? value : (folder / value).string(); };
    if (key == "cert_file") {
      config.cert_file = file();
    } else if (key == "key_file") {
      config.key_file = file();
    } else if (key == "client_ca_file") {
      config.client_ca_file = file();
    } else if (key == "client_auth_type") {
      if (value == "RequireAndVerifyClientCert") {
        config.client_auth = WebConfig::ClientAuth::kRequire;
      } else if (value == "VerifyClientCertIfGiven") {
        config.client_auth = WebConfig::ClientAuth::kVerifyIfGiven;
      } else if (value != "NoClientCert" && !value.empty()) {
        return Bad(path, fmt::format("tls_server_config: client_auth_type {} is not supported", value));
      }
    } else if (key == "min_version") {
      if (value != "TLS12" && value != "TLS13")
        return Bad(path, fmt::format("tls_server_config: min_version {} is not supported", value));
      config.min_tls = value == "TLS13" ? 13 : 12;
    } else {
      return Bad(path, fmt::format("tls_server_config: {} is not supported", key));
    }
  }
  if (config.cert_file.empty() || config.key_file.empty())
    return Bad(path, "tls_server_config needs cert_file and key_file");
  if (config.client_auth != WebConfig::ClientAuth::kNone && config.client_ca_file.empty())
    return Bad(path, "tls_server_config: client_auth_type needs client_ca_file");
  return {};
}

Status ReadUsers(const std::string& path, const YAML::Node& users, WebConfig& config) {
  if (!users.IsMap()) return Bad(path, "basic_auth_users is not a table");
  for (const auto& entry : users) {
    const auto name = entry.first.as<std::string>();
    const auto hash = entry.second.IsScalar() ? entry.second.as<std::string>() : std::string();
    // The hash is a secret: texts name the user only.
    const bool bcrypt =
        hash.size() == 60 && (hash.starts_with("$2a$") || hash.starts_with("$2b$") || hash.starts_with("$2y$"));
    if (!bcrypt) return Bad(path, fmt::format("basic_auth_users: the password of {} is no bcrypt hash", name));
    config.users[name] = hash;
  }
  return {};
}

}  // namespace

Result<WebConfig> ReadWebConfig(const std::string& path) {
  const std::optional<std::string> text = ReadSmallFile(path, kMostConfig);
  if (!text) return Bad(path, "it cannot be read");
  WebConfig config;
  try {
    const YAML::Node root = YAML::Load(*text);
    if (root.IsNull()) return config;
    if (!root.IsMap()) return Bad(path, "it is not a table");
    for (const auto& entry : root) {
      const auto key = entry.first.as<std::string>();
      if (entry.second.IsNull()) continue;
      if (key == "tls_server_config") {
        NPU_TRY(ReadTls(path, entry.second, config));
      } else if (key == "basic_auth_users") {
        NPU_TRY(ReadUsers(path, entry.second, config));
      } else {
        return Bad(path, fmt::format("{} is not supported", key));
      }
    }
  } catch (const YAML::Exception& e) {
    // Its text may quote a line of the file, and with it a secret: only the place is told.
    return Bad(path, fmt::format("line {} is not YAML as it should be", e.mark.line + 1));
  }
  return config;
}

}  // namespace npu::monitor
