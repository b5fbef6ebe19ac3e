#include "tools/monitor/serve/auth.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <memory>
#include <optional>
#include <vector>

namespace npu::monitor {
namespace {

constexpr auto kRemember = std::chrono::minutes(1);
constexpr size_t kMostRemembered = 128, kMostHeader = 1024;
// Of a text nobody knows: what an unknown user is compared with.
constexpr const char* kNobody = "$2b$10$abcdefghijklmnopqrstuuXHqZbFbHtxDhDGPDLP5v6T3B4Sx1Qnm";

std::optional<std::string> FromBase64(const std::string& text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  std::vector<unsigned char> out(text.size() / 4 * 3 + 1);
  const int length =
      EVP_DecodeBlock(out.data(), reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (length < 0) return std::nullopt;
  size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  return std::string(out.begin(), out.begin() + length - static_cast<long>(padding));
}

bool Matches(const std::string& password, const std::string& hash) {
  auto data = std::make_unique<struct crypt_data>();
  const char* made = crypt_r(password.c_str(), hash.c_str(), data.get());
  const std::string text = made != nullptr ? made : "";
  return text.size() == hash.size() && CRYPTO_memcmp(text.data(), hash.data(), hash.size()) == 0;
}

}  // namespace

bool Auth::Allows(const std::string& header) {
  if (!on()) return true;
  if (header.size() > kMostHeader || !header.starts_with("Basic ")) return false;
  const std::optional<std::string> pair = FromBase64(header.substr(6));
  if (!pair) return false;
  const size_t colon = pair->find(':');
  if (colon == std::string::npos || pair->find('\0') != std::string::npos) return false;
  const std::string user = pair->substr(0, colon), password = pair->substr(colon + 1);

  // One at a time: a storm of wrong passwords must not take all cores.
  const std::lock_guard lock(mutex_);
  if (key_.empty()) {
    key_.resize(32);
    if (RAND_bytes(reinterpret_cast<unsigned char*>(key_.data()), 32) != 1) {
      key_.clear();
      return false;
    }
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), reinterpret_cast<const unsigned char*>(pair->data()),
       pair->size(), digest, &length);
  const std::string remembered(reinterpret_cast<char*>(digest), length);
  const auto now = std::chrono::steady_clock::now();
  if (const auto at = good_.find(remembered); at != good_.end() && now - at->second < kRemember) return true;

  const auto known = users_.find(user);
  const bool matches = Matches(password, known != users_.end() ? known->second : kNobody);
  if (!matches || known == users_.end()) return false;
  if (good_.size() >= kMostRemembered) good_.clear();
  good_[remembered] = now;
  return true;
}

}  // namespace npu::monitor
