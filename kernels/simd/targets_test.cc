// Every elementwise kernel gives the same result on every instruction set of this machine: bit by bit where the operation
// is exact or only rounds, within the vector functions' error otherwise.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "hwy/targets.h"
#include "kernels/simd/binary.h"
#include "kernels/simd/compare.h"
#include "kernels/simd/ternary.h"
#include "kernels/simd/unary.h"

namespace npu::simd {
namespace {

const PointwiseKernel* const kKernels[] = {
#define NPU_BINARY(name, ...) &k##name,
#define NPU_BINARY_VEC(name, ...) &k##name,
#include "kernels/simd/binary_ops.inc"
#undef NPU_BINARY
#undef NPU_BINARY_VEC
#define NPU_COMPARE(name, ...) &k##name,
#include "kernels/simd/compare_ops.inc"
#undef NPU_COMPARE
#define NPU_TERNARY(name, ...) &k##name,
#include "kernels/simd/ternary_ops.inc"
#undef NPU_TERNARY
#define NPU_UNARY(name, ...) &k##name,
#define NPU_UNARY_VEC(name, ...) &k##name,
#define NPU_TEST(name, ...) &k##name,
#include "kernels/simd/unary_ops.inc"
#undef NPU_UNARY
#undef NPU_UNARY_VEC
#undef NPU_TEST
};

struct AllTargets {
  ~AllTargets() { hwy::SetSupportedTargetsForTest(0); }
};

// Ordinary values with special ones strewn in, as lanes of the type.
std::vector<char> Values(Lane lane, int64_t n, std::mt19937& random) {
  std::vector<char> bytes(static_cast<size_t>(n * LaneBytes(lane)));
  const double special[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e-40, 3e38, 1.0, -1.0, 88.8, -104.5};
  std::uniform_real_distribution<double> uniform(-4, 4);
  std::uniform_int_distribution<int> whole(-9, 9);
  for (int64_t i = 0; i < n; ++i) {
    const bool ordinary = lane == Lane::c128;  // products of complex infinities have several right answers
    const double real = !ordinary && random() % 5 == 0 ? special[random() % std::size(special)] : uniform(random);
    const int integer = whole(random);
    char* at = bytes.data() + i * LaneBytes(lane);
    switch (lane) {
      case Lane::f32: { const auto v = static_cast<float>(real); std::memcpy(at, &v, 4); break; }
      case Lane::f64: std::memcpy(at, &real, 8); break;
      case Lane::i32: std::memcpy(at, &integer, 4); break;
      case Lane::i64: { const int64_t v = integer; std::memcpy(at, &v, 8); break; }
      case Lane::c128: { const double imaginary = uniform(random); std::memcpy(at, &real, 8); std::memcpy(at + 8, &imaginary, 8); break; }
      case Lane::b8: *at = static_cast<char>(integer & 1); break;
    }
  }
  return bytes;
}

// Equal, both NaN, or close when the operation is a vector function.
bool Agrees(const PointwiseKernel& kernel, Lane lane, const char* a, const char* b) {
  const int bytes = kernel.predicate ? 1 : LaneBytes(lane);
  if (std::memcmp(a, b, static_cast<size_t>(bytes)) == 0) return true;
  if (kernel.predicate) return false;
  if (lane == Lane::c128) {
    double p[2], q[2];
    std::memcpy(p, a, 16);
    std::memcpy(q, b, 16);
    const double size = 1 + std::hypot(p[0], p[1]);
    const bool both_nan = (std::isnan(p[0]) || std::isnan(p[1])) && (std::isnan(q[0]) || std::isnan(q[1]));
    return both_nan || (kernel.tolerance == "ulp" && std::hypot(p[0] - q[0], p[1] - q[1]) <= 1e-12 * size);
  }
  if (lane != Lane::f32 && lane != Lane::f64) return false;
  double x = 0, y = 0;
  if (lane == Lane::f32) {
    float fx, fy;
    std::memcpy(&fx, a, 4);
    std::memcpy(&fy, b, 4);
    x = static_cast<double>(fx), y = static_cast<double>(fy);
  } else {
    std::memcpy(&x, a, 8);
    std::memcpy(&y, b, 8);
  }
  if (std::isnan(x) && std::isnan(y)) return true;
  if (kernel.tolerance != "ulp") return false;
  return std::abs(x - y) <= 4e-6 * std::max(1.0, std::abs(x));
}

TEST(Targets, EveryKernelAgreesOnEveryInstructionSet) {
  const AllTargets restore;
  const int64_t supported = hwy::SupportedTargets();
  std::mt19937 random(std::random_device{}());
  const auto seed = random();
  std::printf("seed %lu\n", static_cast<unsigned long>(seed));
  random.seed(seed);
  int compared = 0;
  for (const PointwiseKernel* kernel : kKernels) {
    for (const Lane lane : {Lane::f32, Lane::f64, Lane::i32, Lane::i64, Lane::c128}) {
      hwy::SetSupportedTargetsForTest(0);
      const TileFn best = kernel->find(lane);
      if (best == nullptr) continue;
      const int64_t n = 1 + static_cast<int64_t>(random() % 300);
      std::vector<char> in[3];
      const void* operands[3] = {};
      for (int k = 0; k < kernel->arity; ++k) {
        in[k] = Values(lane, n, random);
        operands[k] = in[k].data();
      }
      Imm imm;
      if (kernel->name.starts_with("Shift")) imm.Set(0, Scalar::Of(int64_t{32}));
      const auto bytes = static_cast<size_t>(n * (kernel->predicate ? 1 : LaneBytes(lane)));
      std::vector<char> want(bytes + 64, 'g'), got;
      best(operands, want.data(), n, imm);
      for (int64_t targets = supported; targets != 0; targets &= targets - 1) {
        hwy::SetSupportedTargetsForTest(targets & -targets);
        const TileFn fn = kernel->find(lane);
        got.assign(bytes + 64, 'g');
        fn(operands, got.data(), n, imm);
        ++compared;
        const int item = kernel->predicate ? 1 : LaneBytes(lane);
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_TRUE(Agrees(*kernel, lane, want.data() + i * item, got.data() + i * item))
              << kernel->name << " lane " << static_cast<int>(lane) << " element " << i << " of " << n << " on target "
              << hwy::TargetName(targets & -targets);
        }
        ASSERT_EQ(std::string(got.data() + bytes, 64), std::string(64, 'g')) << kernel->name << " wrote past the end";
      }
    }
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace npu::simd
