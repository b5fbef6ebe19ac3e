// Device memory: copies of odd sizes in all directions, fills, and a request that no card can grant.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/check/check.h"

namespace npu::check {
namespace {

constexpr int kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kHbm = 1, kHugeFirst = 0;

std::vector<unsigned char> Pattern(size_t bytes, unsigned salt) {
  std::vector<unsigned char> data(bytes);
  uint32_t state = 2463534242u + salt;
  for (unsigned char& b : data) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    b = static_cast<unsigned char>(state);
  }
  return data;
}

class Block {
 public:
  Block(const Client& client, size_t bytes) : client_(client) {
    why_ = client.Do("aclrtMalloc", &data_, bytes, kHugeFirst);
  }
  ~Block() {
    if (data_ != nullptr) client_.Do("aclrtFree", data_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  const std::string& why() const { return why_; }
  char* data() const { return static_cast<char*>(data_); }

 private:
  const Client& client_;
  void* data_ = nullptr;
  std::string why_;
};

std::string RoundTrip(const Client& client, size_t bytes) {
  Block a(client, bytes), b(client, bytes);
  if (!a.why().empty()) return a.why();
  if (!b.why().empty()) return b.why();
  const std::vector<unsigned char> in = Pattern(bytes, static_cast<unsigned>(bytes));
  std::vector<unsigned char> out(bytes);
  void *pa = a.data(), *pb = b.data();
  const void *from = in.data(), *ca = pa, *cb = pb;
  void* to = out.data();
  std::string why = client.Do("aclrtMemcpy", pa, bytes, from, bytes, kHostToDevice);
  if (why.empty()) why = client.Do("aclrtMemcpy", pb, bytes, ca, bytes, kDeviceToDevice);
  if (why.empty()) why = client.Do("aclrtMemcpy", to, bytes, cb, bytes, kDeviceToHost);
  if (!why.empty()) return why;
  const auto differs = std::mismatch(in.begin(), in.end(), out.begin());
  if (differs.first != in.end())
    return fmt::format("byte {} came back as {} instead of {}", differs.first - in.begin(), *differs.second,
                       *differs.first);
  return {};
}

std::string Fill(const Client& client) {
  constexpr size_t kBytes = 4099;
  Block block(client, kBytes);
  if (!block.why().empty()) return block.why();
  std::vector<unsigned char> out(kBytes);
  void* data = block.data();
  const void* from = data;
  void* to = out.data();
  std::string why = client.Do("aclrtMemset", data, kBytes, 0xa5, kBytes);
  if (why.empty()) why = client.Do("aclrtMemcpy", to, kBytes, from, kBytes, kDeviceToHost);
  if (why.empty() && std::any_of(out.begin(), out.end(), [](unsigned char b) { return b != 0xa5; }))
    why = "a byte was not filled";
  return why;
}

// A refusal, and life after it.
std::string TooMuch(const Client& client, size_t total) {
  void* data = nullptr;
  auto* malloc = client.Call<int(void**, size_t, int)>("aclrtMalloc");
  if (malloc == nullptr) return "aclrtMalloc is not exported";
  const int code = malloc(&data, total * 2, kHugeFirst);
  if (auto* recent = client.Call<const char*()>("aclGetRecentErrMsg")) recent();
  if (code == 0) return fmt::format("{} bytes were granted on a card of {}", total * 2, total);
  if (code != 207001) return fmt::format("the code of exhausted memory is {} instead of 207001", code);
  return RoundTrip(client, 1 << 20);
}

}  // namespace

void CheckMemory(Sink& sink) {
  Client client;
  std::string why = Begin(&client, /*operators=*/false);
  if (!why.empty()) return sink.Failed("aclInit", why);
  uint32_t count = 0;
  why = client.Do("aclrtGetDeviceCount", &count);
  if (!why.empty()) return sink.Failed("aclrtGetDeviceCount", why);
  for (uint32_t device = 0; device < count; ++device) {
    const auto tell = [&](const std::string& what, const std::string& reason) {
      const std::string name = fmt::format("device {}: {}", device, what);
      if (reason.empty())
        sink.Passed(name);
      else
        sink.Failed(name, reason);
    };
    why = client.Do("aclrtSetDevice", static_cast<int32_t>(device));
    if (!why.empty()) {
      tell("aclrtSetDevice", why);
      continue;
    }
    size_t free = 0, total = 0, after = 0;
    client.Do("aclrtGetMemInfo", kHbm, &free, &total);
    for (const size_t bytes : {size_t{1}, size_t{63}, size_t{4097}, size_t{3} << 20})
      tell(fmt::format("{} bytes there and back", bytes), RoundTrip(client, bytes));
    tell("fill", Fill(client));
    tell("more than the card has", TooMuch(client, total));
    client.Do("aclrtGetMemInfo", kHbm, &after, &total);
    // Other programs may use the card: only a loss that ours could have made is told.
    tell("nothing is lost",
         after + (16 << 20) < free ? fmt::format("{} bytes fewer are free than before", free - after) : std::string());
    client.Do("aclrtResetDevice", static_cast<int32_t>(device));
  }
  client.Do("aclFinalize");
}

}  // namespace npu::check
