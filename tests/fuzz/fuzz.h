// Seeded rounds for tests that feed hostile bytes.
//
//   ANYNPU_FUZZ_ROUNDS   rounds of each test (default 40)
//   ANYNPU_SEED          the seed (default: from the clock; printed)
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace npu::fuzz {

inline int Rounds() {
  const char* text = std::getenv("ANYNPU_FUZZ_ROUNDS");
  return text != nullptr ? std::atoi(text) : 40;
}

// Numbers that break things more often than even ones do.
class Source {
 public:
  Source() : Source(Seed()) {}
  explicit Source(uint64_t seed) : random_(seed) {}

  static uint64_t Seed() {
    const char* text = std::getenv("ANYNPU_SEED");
    const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
    std::printf("seed %llu (repeat with ANYNPU_SEED)\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    return seed;
  }

  uint64_t Word() {
    switch (random_() % 8) {
      case 0:
        return 0;
      case 1:
        return ~uint64_t{0} - random_() % 3;
      case 2:
        return uint64_t{1} << random_() % 64;
      case 3:
        return (uint64_t{1} << random_() % 64) - 1;
      case 4:
        return random_() % 16;
      case 5:
        return random_() % 5000;
      case 6:
        return random_() & 0xFFFFFFFF;
      default:
        return random_();
    }
  }
  uint64_t Below(uint64_t n) { return n == 0 ? 0 : random_() % n; }
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  // Changes some bytes or words of a block.
  void Spoil(void* block, size_t bytes) {
    auto* at = static_cast<unsigned char*>(block);
    for (uint64_t n = 1 + Below(8); n > 0 && bytes > 0; --n) {
      const size_t place = Below(bytes);
      const uint64_t word = Word();
      const size_t length = std::min<size_t>(bytes - place, size_t{1} << Below(4));
      for (size_t i = 0; i < length; ++i) at[place + i] = static_cast<unsigned char>(word >> 8 * i);
    }
  }
  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
};

}  // namespace npu::fuzz
