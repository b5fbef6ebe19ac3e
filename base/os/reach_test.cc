#include "base/os/reach.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/os/fd.h"

namespace npu::os {
namespace {

using Ask = const void* (*)(const void*, size_t, Access) noexcept;
constexpr Ask kWays[] = {FirstBeyondReach, FirstBeyondReachByFile};

const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));

// Pages of all kinds in a row.
enum class Kind { kPlain, kUntouched, kReadOnly, kClosed, kAbsent, kBehindTheFile, kCount };

class Row {
 public:
  Row(std::mt19937_64& random, size_t pages) : kinds_(pages) {
    begin_ = static_cast<char*>(mmap(nullptr, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < pages; ++i) {
      // Mostly usable, so that ranges reach beyond their first page.
      kinds_[i] = random() % 4 != 0 ? Kind::kPlain : static_cast<Kind>(random() % static_cast<size_t>(Kind::kCount));
      Make(i, random());
    }
  }
  ~Row() {  // absent pages are not ours any more
    for (size_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i] != Kind::kAbsent) munmap(begin_ + i * page, page);
    }
  }

  char* begin() const { return begin_; }
  const void* Expected(const char* first, size_t bytes, Access access) const {
    for (const char* at = first; at < first + bytes; at = begin_ + ((at - begin_) / page + 1) * page) {
      const Kind kind = kinds_[static_cast<size_t>(at - begin_) / page];
      const bool reads = kind == Kind::kPlain || kind == Kind::kUntouched || kind == Kind::kReadOnly;
      if (!reads || (access == Access::kWrite && kind == Kind::kReadOnly)) return at;
    }
    return nullptr;
  }
  bool Holds(size_t i) const { return kinds_[i] == Kind::kPlain || kinds_[i] == Kind::kReadOnly; }

 private:
  void Make(size_t i, uint64_t fill) {
    char* at = begin_ + i * page;
    switch (kinds_[i]) {
      case Kind::kPlain:
      case Kind::kReadOnly:
        mprotect(at, page, PROT_READ | PROT_WRITE);
        std::memset(at, static_cast<int>(fill & 0xff), page);
        if (kinds_[i] == Kind::kReadOnly) mprotect(at, page, PROT_READ);
        break;
      case Kind::kUntouched:
        mprotect(at, page, PROT_READ | PROT_WRITE);
        break;
      case Kind::kAbsent:
        munmap(at, page);
        break;
      case Kind::kBehindTheFile: {
        const Fd empty(memfd_create("reach-test", MFD_CLOEXEC));
        mmap(at, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty.get(), 0);
        break;
      }
      default:
        break;
    }
  }

  char* begin_;
  std::vector<Kind> kinds_;
};

TEST(Reach, TellsTheFirstPlaceThatIsNotThere) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  constexpr size_t kPages = 40;
  for (int round = 0; round < 50; ++round) {
    const Row row(random, kPages);
    for (int i = 0; i < 40; ++i) {
      const size_t from = random() % (kPages * page), bytes = 1 + random() % (kPages * page - from);
      const char* first = row.begin() + from;
      for (const Access access : {Access::kRead, Access::kWrite}) {
        for (const Ask ask : kWays) ASSERT_EQ(ask(first, bytes, access), row.Expected(first, bytes, access));
      }
    }
  }
}

TEST(Reach, MappedIsWhatHasNoHole) {
  constexpr size_t kPages = 9;
  char* map = static_cast<char*>(mmap(nullptr, kPages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  EXPECT_TRUE(IsMapped(map, kPages * page));
  const size_t hole = std::random_device{}() % kPages;
  munmap(map + hole * page, page);
  for (size_t from = 0; from < kPages; ++from) {
    for (size_t to = from + 1; to <= kPages; ++to) {
      EXPECT_EQ(IsMapped(map + from * page + 7, (to - from) * page - 9), hole < from || hole >= to)
          << from << ' ' << to << ' ' << hole;
    }
  }
  EXPECT_FALSE(IsMapped(map, SIZE_MAX));
  for (size_t i = 0; i < kPages; ++i) {
    if (i != hole) munmap(map + i * page, page);
  }
}

TEST(Reach, LeavesBytesAsTheyAre) {
  const size_t bytes = 700 * page + 123;  // more pages than one call of the slow way takes
  std::vector<char> memory(bytes);
  std::mt19937_64 random(std::random_device{}());
  for (char& c : memory) c = static_cast<char>(random());
  const std::vector<char> before = memory;
  for (const Ask ask : kWays) {
    EXPECT_EQ(ask(memory.data(), bytes, Access::kWrite), nullptr);
    EXPECT_EQ(ask(memory.data() + 5, 1, Access::kWrite), nullptr);
    EXPECT_EQ(ask(memory.data(), 0, Access::kWrite), nullptr);
  }
  EXPECT_TRUE(memory == before);
}

TEST(Reach, NumbersThatAreNoAddresses) {
  for (const Ask ask : kWays) {
    for (const uintptr_t number : {uintptr_t{1}, uintptr_t{0x123}, uintptr_t{0x10'0000'0000'0000}, UINTPTR_MAX - 3}) {
      const auto* address = reinterpret_cast<const void*>(number);
      for (const size_t bytes : {size_t{1}, size_t{5000}, SIZE_MAX})
        EXPECT_EQ(ask(address, bytes, Access::kRead), address);
    }
    char here = 0;
    EXPECT_NE(ask(&here, SIZE_MAX, Access::kRead), nullptr) << "no process has all of it";
  }
}

TEST(Reach, ThreadsAskAtOnce) {
  std::mt19937_64 random(std::random_device{}());
  const Row row(random, 64);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, seed = random()] {
      std::mt19937_64 mine(seed);
      for (int i = 0; i < 500; ++i) {
        const size_t from = mine() % (64 * page), bytes = 1 + mine() % (64 * page - from);
        const char* first = row.begin() + from;
        wrong += FirstBeyondReach(first, bytes, Access::kRead) != row.Expected(first, bytes, Access::kRead);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace npu::os
