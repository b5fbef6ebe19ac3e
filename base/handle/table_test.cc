#include "base/handle/table.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

namespace npu {
namespace {

std::atomic<int> living{0};

struct Thing {
  explicit Thing(int v) : value(v) { ++living; }
  ~Thing() {
    value = -1;
    --living;
  }
  void AddRef() { refs.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  std::atomic<int> refs{1};
  std::atomic<int> value;
};

HandleTable<Thing>& Things() {
  static auto* table = new HandleTable<Thing>(61, "thing");
  return *table;
}
HandleTable<Thing>& Others() {
  static auto* table = new HandleTable<Thing>(62, "other thing");
  return *table;
}
Ref<Thing> Make(int value) { return Ref<Thing>::Adopt(new Thing(value)); }

TEST(HandleTable, HandlesArePositiveSmallAndNeverAnAddress) {
  Ref<Thing> thing = Make(1);
  Thing* const address = thing.get();
  void* const raw = Things().Add(thing);
  const auto word = static_cast<int64_t>(reinterpret_cast<intptr_t>(raw));
  EXPECT_GT(word, 0);
  EXPECT_LT(word, int64_t{1} << 47);
  EXPECT_NE(raw, static_cast<void*>(address));
  EXPECT_EQ((*Things().Get(raw, "f", "x")).get(), address);
  EXPECT_TRUE(Things().Remove(raw, "f", "x").ok());
}

TEST(HandleTable, FourSentences) {
  void* const raw = Things().Add(Make(1));
  void* const other = Others().Add(Make(2));
  const auto text = [](const Result<Ref<Thing>>& r) { return std::string(r.status().text()); };
  EXPECT_EQ(text(Things().Get(nullptr, "aclrtX", "thing")), "aclrtX: thing is null.");
  EXPECT_EQ(Things().Get(nullptr, "f", "x").status().code(), Code::kNullPointer);
  int local = 0;
  for (const void* foreign :
       {static_cast<const void*>(&local), reinterpret_cast<const void*>(uintptr_t{7}),
        reinterpret_cast<const void*>(~uintptr_t{0}), static_cast<const void*>(static_cast<char*>(raw) + 1)}) {
    EXPECT_NE(text(Things().Get(foreign, "f", "x")).find("not a handle that this library gave out"), std::string::npos);
  }
  EXPECT_NE(text(Things().Get(other, "f", "x")).find("is a other thing and not a thing"), std::string::npos);
  ASSERT_TRUE(Things().Remove(raw, "f", "x").ok());
  EXPECT_NE(text(Things().Get(raw, "f", "x")).find("destroyed"), std::string::npos);
  EXPECT_NE(text(Things().Remove(raw, "f", "x")).find("destroyed"), std::string::npos);
  void* const next = Things().Add(Make(3));
  EXPECT_NE(next, raw) << "the place is used again under another generation";
  EXPECT_NE(text(Things().Get(raw, "f", "x")).find("destroyed"), std::string::npos);
  EXPECT_TRUE(Things().Remove(next, "f", "x").ok());
  EXPECT_TRUE(Others().Remove(other, "f", "x").ok());
}

TEST(HandleTable, RefKeepsARemovedObject) {
  const int before = living;
  void* const raw = Things().Add(Make(5));
  {
    Ref<Thing> held = *Things().Get(raw, "f", "x");
    ASSERT_TRUE(Things().Remove(raw, "f", "x").ok());
    EXPECT_EQ(held->value, 5);
    EXPECT_EQ(living, before + 1);
  }
  EXPECT_EQ(living, before);
}

TEST(HandleTable, VisitsTheLiving) {
  std::vector<void*> raws;
  for (int i = 0; i < 10; ++i) raws.push_back(Others().Add(Make(i)));
  ASSERT_TRUE(Others().Remove(raws[3], "f", "x").ok());
  int sum = 0, count = 0;
  Others().ForEach([&](void* raw, Ref<Thing> thing) {
    EXPECT_EQ((*Others().Get(raw, "f", "x")).get(), thing.get());
    sum += thing->value;
    ++count;
  });
  EXPECT_EQ(count, 9);
  EXPECT_EQ(sum, 45 - 3);
  for (int i = 0; i < 10; ++i) {
    if (i != 3) {
      ASSERT_TRUE(Others().Remove(raws[static_cast<size_t>(i)], "f", "x").ok());
    }
  }
  EXPECT_EQ(Others().size(), 0u);
}

// Destroying while others look: never a dead object, and in the end none is left.
TEST(HandleTable, GetRacesRemove) {
  const int before = living;
  static HandleTable<Thing>& table = *new HandleTable<Thing>(63, "raced thing");
  constexpr int kRounds = 300;
  std::atomic<void*> shared{nullptr};
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      while (!stop.load()) {
        auto thing = table.Get(shared.load(), "f", "x");
        if (thing.ok() && (*thing)->value.load() != 7) ++wrong;
      }
    });
  }
  for (int i = 0; i < kRounds; ++i) {
    void* const raw = table.Add(Make(7));
    shared.store(raw);
    if (i % 8 == 0) std::this_thread::yield();
    ASSERT_TRUE(table.Remove(raw, "f", "x").ok());
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(living, before);
}

}  // namespace
}  // namespace npu
