#include "kernels/simd/random/random.h"

#include "kernels/simd/testing.h"

namespace npu::simd {
namespace {

// Known answers of Philox 4x32-10: counter, key, result.
TEST(Philox, KnownAnswers) {
  struct Known { uint64_t low, high, key; uint32_t want[4]; };
  const Known known[] = {
      {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Known& k : known) {
    uint32_t words[4];
    PhiloxWords({k.key, k.high}, k.low, 1, words);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(words[i], k.want[i]);
  }
}

TEST(Philox, RunsOfBlocksAreTheBlocksOneByOne) {
  std::mt19937_64 rng(Seed());
  // The low half of the counter runs over inside the run.
  const uint64_t first = (uint64_t{1} << 32) - 19 + (rng() << 33);
  const Philox key{rng(), rng()};
  std::vector<uint32_t> run(4 * 41);
  PhiloxWords(key, first, 41, run.data());
  for (uint64_t b = 0; b < 41; ++b) {
    uint32_t one[4];
    PhiloxWords(key, first + b, 1, one);
    for (size_t i = 0; i < 4; ++i) ASSERT_EQ(run[4 * b + i], one[i]) << b;
  }
}

TEST(Random, TheOrderOfBlocksDoesNotMatter) {
  const Philox key{Seed(), 12};
  SerialParallel serial;
  ReverseParallel reverse;
  for (const DType t : {DType::f32, DType::bf16, DType::f64}) {
    const TestTensor a(t, {100003}), b(t, {100003});
    const auto same = [&] { EXPECT_EQ(a.Get(), b.Get()); };
    FillUniform(key, -1, 3, *a, serial), FillUniform(key, -1, 3, *b, reverse), same();
    FillNormal(key, 2, 3, *a, serial), FillNormal(key, 2, 3, *b, reverse), same();
    FillExponential(key, 2, *a, serial), FillExponential(key, 2, *b, reverse), same();
    FillBernoulli(key, 0.3, *a, serial), FillBernoulli(key, 0.3, *b, reverse), same();
  }
}

}  // namespace
}  // namespace npu::simd
