// The blocks that programs hold, with what is known of them, and those that went last. Guarded by the checker's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device/strict/stack.h"
#include "device/strict/strict.h"
#include "device/strict/written.h"

namespace npu::strict {

struct Origin {
  std::string_view call;
  Stack stack;
  std::vector<std::string> python;
  static Origin Here(std::string_view call);
  // Lines "allocated by aclrtMalloc:" and the stack.
  std::string Tell(std::string_view verb) const;
};

struct Block {
  int card = -1;
  uintptr_t client = 0;
  std::byte* local = nullptr;
  uint64_t bytes = 0;
  Zones zones;
  Origin origin;
  Written written{0};

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(local); }
  uintptr_t end() const { return begin() + bytes; }
  uintptr_t ClientOf(uintptr_t at) const { return client + (at - begin()); }
  std::string Tell() const;  // the allocation and its stack
};

struct Gone {
  Block block;
  Origin freed;
};

class Blocks {
 public:
  Block& Add(Block block);
  // The block that holds the address; with `near`, also the one in whose red zones or guard pages it lies.
  Block* Find(uintptr_t local, bool near = false);
  void Remove(uintptr_t local, Origin freed);
  const Gone* FindGone(uintptr_t local) const;
  const Gone* FindGoneClient(uintptr_t client) const;
  Block* FindClient(uintptr_t client);
  const std::map<uintptr_t, Block>& all() const { return blocks_; }

 private:
  static constexpr size_t kGoneKept = 2048;
  std::map<uintptr_t, Block> blocks_;
  std::deque<Gone> gone_;
};

}  // namespace npu::strict
