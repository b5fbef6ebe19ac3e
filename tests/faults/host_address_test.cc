// Host addresses that are not there, through the C interface: every call that copies or fills answers with CANN's code,
// names the argument and goes on. What is bad is made at random: unmapped, closed or (for what is written) read-only
// pages, before, behind and in the middle of a sound range, files that were cut, and numbers that are no addresses.
#include <acl/acl.h>
#include <acl/acl_rt.h>
#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "shim/hccl/rank_process_test.h"

namespace hccl_test {
namespace {

using ::testing::HasSubstr;

constexpr size_t kPage = 4096;
constexpr size_t kDeviceBytes = size_t{12} << 20;
#define OK(call) ASSERT_EQ(static_cast<int>(call), 0) << #call << " " << RecentError()

std::mt19937_64& Random() {
  static std::mt19937_64 random([] {
    const unsigned seed = std::random_device()();
    std::printf("seed %u\n", seed);
    return seed;
  }());
  return random;
}

enum class Bad { kAbsent, kClosed, kBehindTheFile, kReadOnly, kNumber, kCount };

// A range of `bytes` with a bad page somewhere in it.
class BadRange {
 public:
  BadRange(Bad kind, size_t bytes) : bytes_(bytes), pages_((bytes + kPage - 1) / kPage + 1) {
    if (kind == Bad::kNumber) {
      const uintptr_t numbers[] = {8, kPage - 8, 0x0dea'dbee'f000, 0xffff'8000'0000'0000, UINTPTR_MAX - 64};
      begin_ = reinterpret_cast<char*>(numbers[Random()() % std::size(numbers)]);
      return;
    }
    map_ = static_cast<char*>(mmap(nullptr, pages_ * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(map_, 0x33, pages_ * kPage);
    begin_ = map_ + Random()() % kPage;
    const size_t first = static_cast<size_t>(begin_ - map_) / kPage, last = static_cast<size_t>(begin_ + bytes - 1 - map_) / kPage;
    char* page = map_ + (first + Random()() % (last - first + 1)) * kPage;
    if (kind == Bad::kAbsent) munmap(hole_ = page, kPage);
    if (kind == Bad::kClosed) mprotect(page, kPage, PROT_NONE);
    if (kind == Bad::kReadOnly) mprotect(page, kPage, PROT_READ);
    if (kind == Bad::kBehindTheFile) {
      const int empty = memfd_create("cut", MFD_CLOEXEC);
      mmap(page, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0);
      close(empty);
    }
  }
  ~BadRange() {
    if (map_ == nullptr) return;
    // The hole is not ours any more: somebody else may have filled it.
    char* const end = map_ + pages_ * kPage;
    char* const first_end = hole_ != nullptr ? hole_ : end;
    if (first_end > map_) munmap(map_, static_cast<size_t>(first_end - map_));
    if (hole_ != nullptr && hole_ + kPage < end) munmap(hole_ + kPage, static_cast<size_t>(end - hole_ - kPage));
  }
  BadRange(const BadRange&) = delete;
  BadRange& operator=(const BadRange&) = delete;
  char* begin() const { return begin_; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_, pages_;
  char *map_ = nullptr, *begin_ = nullptr, *hole_ = nullptr;
};

struct Card {
  aclrtStream stream = nullptr;
  void* memory = nullptr;
  Card() { Make(); }
  void Make() {
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc(&memory, kDeviceBytes, ACL_MEM_MALLOC_HUGE_FIRST));
    // What the libraries map at the first failure must not fill a hole that a test has made.
    EXPECT_EQ(aclrtFree(&stream), 107000);
    RecentError();
  }
  // After each fault: what is sound works, also on the same stream.
  void StillWorks() {
    std::vector<unsigned char> in(513), out(513);
    for (auto& c : in) c = static_cast<unsigned char>(Random()());
    OK(aclrtMemcpyAsync(memory, kDeviceBytes, in.data(), in.size(), ACL_MEMCPY_HOST_TO_DEVICE, stream));
    OK(aclrtMemcpyAsync(out.data(), out.size(), memory, out.size(), ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtSynchronizeStream(stream));
    EXPECT_EQ(in, out);
  }
};

// Each way of copying `bytes` between the card and the host; the code of the call or of synchronising.
using Copy = std::function<int(Card&, void* host, size_t bytes, bool to_host)>;

aclrtMemcpyKind KindOf(bool to_host) { return to_host ? ACL_MEMCPY_DEVICE_TO_HOST : ACL_MEMCPY_HOST_TO_DEVICE; }
int ThenSynchronize(Card& card, int code) { return code != 0 ? code : aclrtSynchronizeStream(card.stream); }

struct Way {
  const char* name;
  Copy copy;
};
const Way kWays[] = {
    {"aclrtMemcpy",
     [](Card& card, void* host, size_t bytes, bool to_host) -> int {
       return to_host ? aclrtMemcpy(host, bytes, card.memory, bytes, KindOf(to_host))
                      : aclrtMemcpy(card.memory, bytes, host, bytes, KindOf(to_host));
     }},
    {"aclrtMemcpyAsync",
     [](Card& card, void* host, size_t bytes, bool to_host) {
       return ThenSynchronize(card, to_host ? aclrtMemcpyAsync(host, bytes, card.memory, bytes, KindOf(to_host), card.stream)
                                            : aclrtMemcpyAsync(card.memory, bytes, host, bytes, KindOf(to_host), card.stream));
     }},
    {"aclrtMemcpyAsync",  // behind work that is not done
     [](Card& card, void* host, size_t bytes, bool to_host) {
       int code = aclrtLaunchHostFunc(
           card.stream, [](void*) { std::this_thread::sleep_for(milliseconds(2)); }, nullptr);
       if (code != 0) return code;
       code = to_host ? aclrtMemcpyAsync(host, bytes, card.memory, bytes, KindOf(to_host), card.stream)
                      : aclrtMemcpyAsync(card.memory, bytes, host, bytes, KindOf(to_host), card.stream);
       const int later = aclrtSynchronizeStream(card.stream);
       return code != 0 ? code : later;
     }},
    {"aclrtMemcpy2d",
     [](Card& card, void* host, size_t bytes, bool to_host) -> int {
       const size_t rows = 1 + bytes % 7, width = bytes / rows;  // rows side by side; the rest is one more row
       if (width * rows != bytes) {
         return to_host ? aclrtMemcpy2d(host, bytes, card.memory, bytes, bytes, 1, KindOf(to_host))
                        : aclrtMemcpy2d(card.memory, bytes, host, bytes, bytes, 1, KindOf(to_host));
       }
       return to_host ? aclrtMemcpy2d(host, width, card.memory, width, width, rows, KindOf(to_host))
                      : aclrtMemcpy2d(card.memory, width, host, width, width, rows, KindOf(to_host));
     }},
    {"aclrtMemcpy2dAsync",
     [](Card& card, void* host, size_t bytes, bool to_host) {
       return ThenSynchronize(card, to_host ? aclrtMemcpy2dAsync(host, bytes, card.memory, bytes, bytes, 1, KindOf(to_host), card.stream)
                                            : aclrtMemcpy2dAsync(card.memory, bytes, host, bytes, bytes, 1, KindOf(to_host), card.stream));
     }},
    {"aclrtMemcpyBatch",
     [](Card& card, void* host, size_t bytes, bool to_host) -> int {
       void *dst = to_host ? host : card.memory, *src = to_host ? card.memory : host;
       aclrtMemcpyBatchAttr attribute = {};
       size_t which = 0, failed = 0;
       return aclrtMemcpyBatch(&dst, &bytes, &src, &bytes, 1, &attribute, &which, 1, &failed);
     }},
    {"aclrtMemcpy",  // host to host
     [](Card&, void* host, size_t bytes, bool to_host) -> int {
       std::vector<char> other(bytes);
       return to_host ? aclrtMemcpy(host, bytes, other.data(), bytes, ACL_MEMCPY_HOST_TO_HOST)
                      : aclrtMemcpy(other.data(), bytes, host, bytes, ACL_MEMCPY_HOST_TO_HOST);
     }},
};

TEST(Body, DISABLED_BadHostAddress) {
  Card card;
  ASSERT_FALSE(HasFatalFailure());
  for (int round = 0; round < 4; ++round) {
    for (const size_t most : {size_t{64}, 3 * kPage, size_t{1} << 20, kDeviceBytes}) {
      if (most == kDeviceBytes && round > 0) continue;
      for (int kind = 0; kind < static_cast<int>(Bad::kCount); ++kind) {
        for (const bool to_host : {false, true}) {
          if (!to_host && static_cast<Bad>(kind) == Bad::kReadOnly) continue;  // that is sound
          for (const Way& way : kWays) {
            const BadRange range(static_cast<Bad>(kind), most / 2 + Random()() % (most / 2) + 1);
            const int code = way.copy(card, range.begin(), range.bytes(), to_host);
            const std::string text = RecentError();
            SCOPED_TRACE(testing::Message() << way.name << (to_host ? " to" : " from") << " bad kind " << kind << ", " << range.bytes() << " bytes");
            EXPECT_EQ(code, 107000) << text;
            EXPECT_THAT(text, HasSubstr(way.name));
            EXPECT_THAT(text, HasSubstr(to_host ? "dst" : "src"));
            EXPECT_THAT(text, HasSubstr("Solution: "));
            card.StillWorks();
            if (HasFailure()) return;
          }
        }
      }
    }
  }
  // A source may be read-only.
  BadRange range(Bad::kReadOnly, 5 * kPage);
  for (const Way& way : kWays) EXPECT_EQ(way.copy(card, range.begin(), range.bytes(), false), 0) << way.name << RecentError();
  // Rows with holes between them that nobody touches are sound too.
  constexpr size_t kRows = 5, kPitch = 4 * kPage;
  char* map = static_cast<char*>(mmap(nullptr, kRows * kPitch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (size_t row = 0; row < kRows; ++row) mprotect(map + row * kPitch + kPage, 3 * kPage, PROT_NONE);
  OK(aclrtMemcpy2d(map, kPitch, card.memory, kPage, kPage, kRows, ACL_MEMCPY_DEVICE_TO_HOST));
  OK(aclrtMemcpy2dAsync(card.memory, kPage, map, kPitch, kPage, kRows, ACL_MEMCPY_HOST_TO_DEVICE, card.stream));
  OK(aclrtSynchronizeStream(card.stream));
  EXPECT_EQ(aclrtMemcpy2d(map, kPitch, card.memory, kPage, kPage + 1, kRows, ACL_MEMCPY_DEVICE_TO_HOST), 100000) << "wider than the pitch";
  EXPECT_EQ(aclrtMemcpy2d(map, kPitch, card.memory, 2 * kPage, kPage + 1, kRows, ACL_MEMCPY_DEVICE_TO_HOST), 107000);
  munmap(map, kRows * kPitch);
}
TEST(Faults, HostAddressesThatAreNotThere) { EXPECT_THAT(Ranks("BadHostAddress", 1).Codes(), testing::ElementsAre(0)); }

// Sizes that no memory has, from an address that is sound: told, and at once.
TEST(Body, DISABLED_EndlessSizes) {
  Card card;
  ASSERT_FALSE(HasFatalFailure());
  std::vector<char> a(1 << 16), b(1 << 16);
  for (const size_t bytes : {size_t{1} << 40, size_t{1} << 47, size_t{1} << 62, SIZE_MAX / 2, SIZE_MAX}) {
    EXPECT_EQ(aclrtMemcpy(a.data(), bytes, b.data(), bytes, ACL_MEMCPY_HOST_TO_HOST), 107000) << bytes;
    EXPECT_EQ(aclrtMemcpy(card.memory, bytes, b.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), 107000) << bytes;
    EXPECT_EQ(aclrtMemcpyAsync(a.data(), bytes, card.memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST, card.stream), 107000) << bytes;
    EXPECT_EQ(aclrtMemcpy2d(a.data(), 64, b.data(), 64, 64, bytes / 128, ACL_MEMCPY_HOST_TO_HOST), 107000) << bytes;
  }
  card.StillWorks();
}
TEST(Faults, EndlessSizes) { EXPECT_THAT(Ranks("EndlessSizes", 1).Codes(), testing::ElementsAre(0)); }

// Registered memory that the program gives back while work waits for it: the work fails, and says so when it is waited for.
TEST(Body, DISABLED_RegisteredAndGone) {
  Card card;
  ASSERT_FALSE(HasFatalFailure());
  for (int round = 0; round < 6; ++round) {
    const size_t bytes = kPage * (1 + Random()() % 64);
    char* map = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    void* view = nullptr;
    OK(aclrtHostRegister(map, bytes, ACL_HOST_REGISTER_MAPPED, &view));
    std::atomic<bool> go{false};
    OK(aclrtLaunchHostFunc(
        card.stream,
        [](void* flag) {
          while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::sleep_for(milliseconds(1));
        },
        &go));
    const char* name = "aclrtMemcpyAsync";
    switch (round % 3) {
      case 0: OK(aclrtMemcpyAsync(card.memory, bytes, map, bytes, ACL_MEMCPY_HOST_TO_DEVICE, card.stream)); break;
      case 1: OK(aclrtMemcpyAsync(map, bytes, card.memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST, card.stream)); break;
      default: OK(aclrtMemsetAsync(map, bytes, 1, bytes, card.stream)); name = "aclrtMemsetAsync";
    }
    // Inaccessible and not unmapped, so that nobody else gets the place.
    mprotect(map + Random()() % (bytes / kPage) * kPage, kPage, PROT_NONE);
    go = true;
    const int code = aclrtSynchronizeStream(card.stream);
    const std::string text = RecentError();
    EXPECT_EQ(code, 507015) << text;
    EXPECT_THAT(text, HasSubstr(name));
    EXPECT_THAT(text, HasSubstr("Solution: "));
    // The calls that do not queue say it themselves.
    EXPECT_EQ(aclrtMemcpy(card.memory, bytes, map, bytes, ACL_MEMCPY_HOST_TO_DEVICE), 107000);
    EXPECT_EQ(aclrtMemset(map, bytes, 1, bytes), 107000);
    EXPECT_THAT(RecentError(), HasSubstr("aclrtMemset: devPtr"));
    OK(aclrtHostUnregister(map));
    munmap(map, bytes);
    card.StillWorks();
  }
  // What is not there cannot be registered.
  const BadRange range(Bad::kAbsent, 9 * kPage);
  void* view = nullptr;
  EXPECT_EQ(aclrtHostRegister(range.begin(), range.bytes(), ACL_HOST_REGISTER_MAPPED, &view), 107000);
  EXPECT_EQ(aclrtHostRegisterV2(range.begin(), range.bytes(), ACL_HOST_REG_MAPPED), 107000);
  EXPECT_THAT(RecentError(), HasSubstr("aclrtHostRegisterV2"));
}
TEST(Faults, RegisteredMemoryThatHasGone) { EXPECT_THAT(Ranks("RegisteredAndGone", 1).Codes(), testing::ElementsAre(0)); }

}  // namespace
}  // namespace hccl_test
