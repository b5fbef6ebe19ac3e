// Basic authentication with bcrypt hashes.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace npu::monitor {

class Auth {
 public:
  explicit Auth(std::map<std::string, std::string> users) : users_(std::move(users)) {}
  bool on() const { return !users_.empty(); }
  // The value of the header Authorization. A hash costs some 50 ms by design, so good answers are remembered for a
  // minute (by a keyed digest, never the password); unknown users cost as much as wrong passwords.
  bool Allows(const std::string& header);

 private:
  const std::map<std::string, std::string> users_;
  std::mutex mutex_;
  std::map<std::string, std::chrono::steady_clock::time_point> good_;  // digest to when it was checked
  std::string key_;
};

}  // namespace npu::monitor
