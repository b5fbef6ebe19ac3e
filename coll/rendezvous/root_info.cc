#include "coll/rendezvous/root_info.h"

#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>

namespace npu::coll {
namespace {

constexpr char kMagic[16] = "anynpu root 001";

struct Layout {
  char magic[16];
  char address[64];
  char id[64];
  uint32_t port;
};
static_assert(sizeof(Layout) <= kRootInfoBytes);

}  // namespace

void MeetingPoint::Write(char (&blob)[kRootInfoBytes]) const {
  Layout layout = {};
  std::memcpy(layout.magic, kMagic, sizeof kMagic);
  std::memcpy(layout.address, address.data(), std::min(address.size(), sizeof layout.address - 1));
  std::memcpy(layout.id, id.data(), std::min(id.size(), sizeof layout.id - 1));
  layout.port = port;
  std::memset(blob, 0, sizeof blob);
  std::memcpy(blob, &layout, sizeof layout);
}

Result<MeetingPoint> MeetingPoint::Read(const char* blob) {
  Layout layout;
  std::memcpy(&layout, blob, sizeof layout);
  layout.address[sizeof layout.address - 1] = layout.id[sizeof layout.id - 1] = 0;
  if (std::memcmp(layout.magic, kMagic, sizeof kMagic) != 0 || layout.port == 0 || layout.port > 65535 ||
      layout.address[0] == 0 || layout.id[0] == 0) {
    return Error(Code::kInvalidParam, "EI0003: rootInfo was not written by HcclGetRootInfo of this library.")
        .Remedy(
            "Pass the {} bytes of rank 0's HcclGetRootInfo unchanged to every rank, and give all ranks the same "
            "libraries.",
            kRootInfoBytes);
  }
  return MeetingPoint{layout.address, static_cast<uint16_t>(layout.port), layout.id};
}

std::string DerivedId(const std::string& token, const std::string& purpose) {
  uint64_t words[2] = {0x6A09E667F3BCC908ull, 0xBB67AE8584CAA73Bull};
  const std::string all = fmt::format("{}:{}/{}", token.size(), token, purpose);
  for (int round = 0; round < 2; ++round) {
    for (const char c : all) {
      words[0] = (words[0] ^ static_cast<uint8_t>(c)) * 0x100000001B3ull;
      words[1] = (words[1] ^ words[0]) * 0x9E3779B97F4A7C15ull;
      words[1] ^= words[1] >> 29;
      words[0] += words[1] >> 7;
    }
  }
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

std::string NewId() {
  uint64_t words[2] = {};
  if (::getrandom(words, sizeof words, 0) != static_cast<ssize_t>(sizeof words)) {
    static std::atomic<uint64_t> counter{0};
    words[0] = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    words[1] = static_cast<uint64_t>(::getpid()) << 32 | counter.fetch_add(1);
  }
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

}  // namespace npu::coll
