// The calls that led here: taken cheaply, told when a report needs them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace npu::strict {

struct Stack {
  static constexpr int kDepth = 24;
  std::array<void*, kDepth> at{};
  int depth = 0;

  static Stack Here();
  // Whether one of the functions that led here has this in its name.
  static bool HereThrough(const char* name);
  // "name  library+0x12" lines without the frames of our own libraries on top; `indent` in front of each.
  std::string Tell(const char* indent, int most = 10) const;
  // The first frame outside our libraries; null when there is none.
  void* Caller() const;
};

// Whether code at this address belongs to torch_npu, whose caching allocator keeps what it has till the process ends.
bool OfTorch(void* code);

}  // namespace npu::strict
