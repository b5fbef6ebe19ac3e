// For the unit tests of kernels: tensors of any type and layout with guard bytes around them, and ways to run blocks.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "base/task/parallel.h"
#include "kernels/simd/rows/convert.h"
#include "kernels/simd/rows/dense.h"
#include "tensor/tensor.h"

namespace npu::simd {

// Runs the blocks last to first: a result that depends on their order or on one thread doing all shows.
class ReverseParallel final : public Parallel {
 public:
  int Workers() const override { return 3; }

 protected:
  void Run(int64_t n, int64_t grain, Block block, void* body) override {
    for (int64_t i = (n - 1) / grain * grain; i >= 0; i -= grain) block(body, i, std::min(n, i + grain));
  }
};

// Owns memory with 64 guard bytes on both sides; Check fails when one was written.
class TestTensor {
 public:
  // `order` lists dimensions from the outermost in memory; empty means row-major. `gap` elements follow each innermost run.
  TestTensor(DType type, std::vector<int64_t> shape, std::vector<int> order = {}, int64_t gap = 0) {
    t_.dtype = type;
    t_.rank = static_cast<int8_t>(shape.size());
    if (order.empty()) {
      order.resize(shape.size());
      std::iota(order.begin(), order.end(), 0);
    }
    int64_t stride = 1;
    for (size_t k = shape.size(); k-- > 0;) {
      const auto d = static_cast<size_t>(order[k]);
      t_.shape[d] = shape[d];
      t_.strides[d] = stride;
      stride *= shape[d];
      if (k + 1 == shape.size()) stride += gap;
    }
    bytes_.assign(static_cast<size_t>(stride * ItemSize(type)) + 128, 0xA5);
    t_.data = bytes_.data() + 64;
  }
  ~TestTensor() { Check(); }
  TestTensor(const TestTensor&) = delete;
  TestTensor& operator=(const TestTensor&) = delete;

  const Tensor& operator*() const { return t_; }
  const Tensor* get() const { return &t_; }

  void Set(const std::vector<double>& v) const { StoreDense(v.data(), t_); }
  std::vector<double> Get() const {
    std::vector<double> v(static_cast<size_t>(t_.Numel()));
    LoadDense(t_, v.data());
    return v;
  }
  // Random values, rounded to the type; returns them as stored.
  std::vector<double> Random(std::mt19937& rng, double low = -2, double high = 2) const {
    std::uniform_real_distribution<double> u(low, high);
    std::vector<double> v(static_cast<size_t>(t_.Numel()));
    for (double& x : v) x = IsFloat(t_.dtype) ? u(rng) : std::floor(u(rng));
    Set(v);
    return Get();
  }
  void Check() const {
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(bytes_[i], 0xA5) << "write before the tensor";
      EXPECT_EQ(bytes_[bytes_.size() - 1 - i], 0xA5) << "write behind the tensor";
    }
  }

 private:
  Tensor t_;
  std::vector<uint8_t> bytes_;
};

inline unsigned Seed() {
  const unsigned seed = std::random_device{}();
  ::testing::Test::RecordProperty("seed", static_cast<int>(seed));
  return seed;
}

// One unit in the last place of the type at 1, where computing in f32 allows no less than that of f32.
inline double Epsilon(DType t) {
  switch (t) {
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    case DType::f64: return 0x1p-53;
    default: return 0x1p-24;
  }
}

inline void ExpectClose(const std::vector<double>& got, const std::vector<double>& want, double relative, double absolute,
                        const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << what << " at " << i;
    } else if (got[i] != want[i]) {
      ASSERT_LE(std::fabs(got[i] - want[i]), absolute + relative * std::fabs(want[i])) << what << " at " << i;
    }
  }
}

}  // namespace npu::simd
