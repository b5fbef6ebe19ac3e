#include "kernels/conv/conv.h"

#include <gtest/gtest.h>

#include <hwy/targets.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "kernels/gemm/half.h"
#include "kernels/gemm/micro.h"

namespace npu::conv {
namespace {

using Size = std::array<int64_t, 5>;

class TwoThreads final : public Parallel {
 public:
  int Workers() const override { return 2; }

 protected:
  void Run(int64_t n, int64_t grain, Block block, void* body) override {
    auto half = [&](int64_t first) {
      for (int64_t i = first * grain; i < n; i += 2 * grain) block(body, i, std::min(n, i + grain));
    };
    std::thread other(half, 1);
    half(0);
    other.join();
  }
};

float ReadAt(const void* data, DType t, int64_t i) {
  if (t == DType::f32) return static_cast<const float*>(data)[i];
  if (t == DType::f16) return gemm::ToF32(static_cast<const gemm::F16*>(data)[i]);
  return gemm::ToF32(static_cast<const gemm::Bf16*>(data)[i]);
}

// A volume in memory of its own with guard bytes on both sides, exactly as large as its strides need.
struct Held {
  static constexpr size_t kGuard = 64;
  std::vector<unsigned char> bytes;
  Volume v;
  Size size;

  enum Layout {
    kContiguous,
    kChannelsLast,
    kPadded,
    kOddOnes,
    kLayouts
  };  // kOddOnes: any order, size 1 has any stride

  Held(DType type, const Size& s, int layout, std::mt19937& random) : size(s) {
    v.dtype = type;
    std::array<size_t, 5> order{0, 1, 2, 3, 4};
    if (layout == kChannelsLast) order = {0, 2, 3, 4, 1};
    if (layout == kOddOnes) std::shuffle(order.begin(), order.end(), random);
    int64_t stride = 1;
    for (size_t i = 5; i-- > 0;) {
      v.stride[order[i]] = stride;
      stride *= std::max<int64_t>(1, s[order[i]]) + (layout == kPadded ? 1 : 0);
    }
    for (size_t d = 0; d < 5; ++d) {
      if (layout == kOddOnes && s[d] == 1) v.stride[d] = v.stride[random() % 5];  // most telling: another's
    }
    int64_t extent = 1;
    for (size_t d = 0; d < 5; ++d) extent += (s[d] - 1) * v.stride[d];
    bytes.assign(2 * kGuard + static_cast<size_t>(extent * ItemSize(type)), 0x5A);
    v.data = bytes.data() + kGuard;
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < extent; ++i) {
      const float x = uniform(random);
      if (type == DType::f32) static_cast<float*>(v.data)[i] = x;
      if (type == DType::f16) static_cast<gemm::F16*>(v.data)[i] = gemm::RoundTo<gemm::F16>(x);
      if (type == DType::bf16) static_cast<gemm::Bf16*>(v.data)[i] = gemm::RoundTo<gemm::Bf16>(x);
    }
  }
  double At(const Size& i) const {
    int64_t at = 0;
    for (size_t d = 0; d < 5; ++d) at += i[d] * v.stride[d];
    return static_cast<double>(ReadAt(v.data, v.dtype, at));
  }
  bool GuardsHold() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (bytes[i] != 0x5A || bytes[bytes.size() - 1 - i] != 0x5A) return false;
    }
    return true;
  }
};

template <class F>
void ForEach(const Size& size, const F& f) {
  Size i{};
  for (i[0] = 0; i[0] < size[0]; ++i[0])
    for (i[1] = 0; i[1] < size[1]; ++i[1])
      for (i[2] = 0; i[2] < size[2]; ++i[2])
        for (i[3] = 0; i[3] < size[3]; ++i[3])
          for (i[4] = 0; i[4] < size[4]; ++i[4]) f(i);
}

struct Case {
  Geometry g;
  DType type;
  int x_layout, y_layout, w_layout;
  bool bias;

  std::string Print() const {
    return fmt::format(
        "n {} groups {} c {}->{} in {}x{}x{} kernel {}x{}x{} stride {}x{}x{} pad {}x{}x{} dilation {}x{}x{} {} layouts "
        "{} {} {}",
        g.batch, g.groups, g.in_channels, g.out_channels, g.in[0], g.in[1], g.in[2], g.kernel[0], g.kernel[1],
        g.kernel[2], g.stride[0], g.stride[1], g.stride[2], g.pad[0], g.pad[1], g.pad[2], g.dilation[0], g.dilation[1],
        g.dilation[2], Name(type), x_layout, y_layout, w_layout);
  }
};

// All products of the convolution: f(image, out channel, in channel within the group, tap, input position, output
// position).
template <class F>
void ForProducts(const Geometry& g, const F& f) {
  const int64_t in = g.in_channels / g.groups, out = g.out_channels / g.groups;
  ForEach({g.batch, g.out_channels, g.out[0], g.out[1], g.out[2]}, [&](const Size& y) {
    ForEach({1, in, g.kernel[0], g.kernel[1], g.kernel[2]}, [&](const Size& w) {
      Size x{y[0], y[1] / out * in + w[1]};
      for (size_t d = 0; d < 3; ++d) {
        x[d + 2] = y[d + 2] * g.stride[d] - g.pad[d] + w[d + 2] * g.dilation[d];
        if (x[d + 2] < 0 || x[d + 2] >= g.in[d]) return;
      }
      f(x, Size{y[1], w[1], w[2], w[3], w[4]}, y);
    });
  });
}

struct Reference {
  std::vector<double> sum, magnitude;
  std::vector<int64_t> terms;
  Size size;
  explicit Reference(const Size& s) : size(s) {
    const auto n = static_cast<size_t>(s[0] * s[1] * s[2] * s[3] * s[4]);
    sum.resize(n), magnitude.resize(n), terms.resize(n);
  }
  void Add(const Size& i, double v) {
    const size_t at = Index(i);
    sum[at] += v;
    magnitude[at] += std::abs(v);
    ++terms[at];
  }
  size_t Index(const Size& i) const {
    return static_cast<size_t>((((i[0] * size[1] + i[1]) * size[2] + i[2]) * size[3] + i[3]) * size[4] + i[4]);
  }
  void Compare(const Held& got) const {
    const double eps = got.v.dtype == DType::f16 ? 0x1p-10 : got.v.dtype == DType::bf16 ? 0x1p-7 : 0x1p-23;
    // Half a step of the format where its numbers are no longer normal.
    const double least = got.v.dtype == DType::f16 ? 0x1p-25 : 1e-30;
    EXPECT_TRUE(got.GuardsHold());
    ForEach(size, [&](const Size& i) {
      if (testing::Test::HasFatalFailure()) return;
      const size_t at = Index(i);
      const double bound =
          std::abs(sum[at]) * eps * 0.51 + magnitude[at] * 0x1p-23 * static_cast<double>(terms[at] + 3) + least;
      ASSERT_LE(std::abs(got.At(i) - sum[at]), bound)
          << i[0] << " " << i[1] << " " << i[2] << " " << i[3] << " " << i[4];
    });
  }
};

void Check(const Case& c, Parallel& parallel, std::mt19937& random) {
  SCOPED_TRACE(c.Print());
  const Geometry& g = c.g;
  const Size xs{g.batch, g.in_channels, g.in[0], g.in[1], g.in[2]};
  const Size ys{g.batch, g.out_channels, g.out[0], g.out[1], g.out[2]};
  const Size ws{g.out_channels, g.in_channels / g.groups, g.kernel[0], g.kernel[1], g.kernel[2]};
  Held x(c.type, xs, c.x_layout, random), y(c.type, ys, c.y_layout, random), w(c.type, ws, c.w_layout, random);
  Held bias_out(c.type, {1, g.out_channels, 1, 1, 1}, Held::kContiguous, random);
  Held bias_in(c.type, {1, g.in_channels, 1, 1, 1}, Held::kContiguous, random);
  const Held dy(c.type, ys, c.y_layout, random);

  auto bias = [&](const Held& b) { return c.bias ? Bias{b.v.data, c.type, 1} : Bias{}; };
  Reference ry(ys), rx(xs), rw(ws);
  ForProducts(g, [&](const Size& ix, const Size& iw, const Size& iy) {
    ry.Add(iy, x.At(ix) * w.At(iw));
    rx.Add(ix, dy.At(iy) * w.At(iw));
    rw.Add(iw, dy.At(iy) * x.At(ix));
  });
  if (c.bias) {
    ForEach(ys, [&](const Size& i) { ry.Add(i, bias_out.At({0, i[1], 0, 0, 0})); });
    ForEach(xs, [&](const Size& i) { rx.Add(i, bias_in.At({0, i[1], 0, 0, 0})); });
  }
  {
    SCOPED_TRACE("forward");
    ASSERT_TRUE(Forward(parallel, g, x.v, w.v, bias(bias_out), y.v).ok());
    ry.Compare(y);
  }
  Held dx(c.type, xs, c.x_layout, random), dw(c.type, ws, c.w_layout, random);
  {
    SCOPED_TRACE("backward data");
    ASSERT_TRUE(BackwardData(parallel, g, dy.v, w.v, bias(bias_in), dx.v).ok());
    rx.Compare(dx);
  }
  {
    SCOPED_TRACE("backward weight");
    ASSERT_TRUE(BackwardWeight(parallel, g, dy.v, x.v, dw.v).ok());
    rw.Compare(dw);
  }
  {
    SCOPED_TRACE("backward bias");
    Held db(c.type, {1, g.out_channels, 1, 1, 1}, Held::kContiguous, random);
    BackwardBias(parallel, dy.v, ys, Bias{db.v.data, c.type, 1});
    Reference rb({1, g.out_channels, 1, 1, 1});
    ForEach(ys, [&](const Size& i) { rb.Add({0, i[1], 0, 0, 0}, dy.At(i)); });
    rb.Compare(db);
  }
}

Geometry Make(int64_t batch, int64_t groups, int64_t in, int64_t out, std::array<int64_t, 3> size,
              std::array<int64_t, 3> kernel, std::array<int64_t, 3> stride, std::array<int64_t, 3> pad,
              std::array<int64_t, 3> dilation) {
  Geometry g{batch, groups, in, out, size, {}, kernel, stride, pad, dilation};
  for (size_t d = 0; d < 3; ++d) g.out[d] = (size[d] + 2 * pad[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  return g;
}

std::vector<int64_t> Targets() {
  std::vector<int64_t> out;
  for (int64_t t : {HWY_SSE4, HWY_AVX2, HWY_AVX3, HWY_NEON}) {
    if (hwy::SupportedTargets() & t) out.push_back(t);
  }
  return out;
}

class EveryConvTarget : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { gemm::UseTarget(GetParam()); }
  void TearDown() override { gemm::UseTarget(0); }
};
INSTANTIATE_TEST_SUITE_P(Conv, EveryConvTarget, testing::ValuesIn(Targets()),
                         [](const auto& param) { return std::string(hwy::TargetName(param.param)); });

TEST_P(EveryConvTarget, RandomGeometries) {
  const uint32_t seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  TwoThreads parallel;
  auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 60; ++round) {
    const bool three = round % 6 == 5;
    std::array<int64_t, 3> size{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, pad{0, 0, 0}, dilation{1, 1, 1};
    for (size_t d = three ? 0 : round % 6 == 4 ? 2 : 1; d < 3; ++d) {
      kernel[d] = between(1, 4);
      stride[d] = between(1, 3);
      pad[d] = between(0, kernel[d]);
      dilation[d] = between(1, 2);
      size[d] = dilation[d] * (kernel[d] - 1) + between(1, three ? 5 : 20);
    }
    const int64_t groups = round % 3 == 0 ? between(2, 9) : 1;
    Case c{Make(between(1, 3), groups, groups * between(1, 5), groups * between(1, 18), size, kernel, stride, pad,
                dilation),
           round % 2 == 0   ? DType::f32
           : round % 4 == 1 ? DType::bf16
                            : DType::f16,
           static_cast<int>(random() % Held::kLayouts),
           static_cast<int>(random() % Held::kLayouts),
           static_cast<int>(random() % Held::kLayouts),
           round % 5 != 0};
    Check(c, parallel, random);
    if (HasFatalFailure()) return;
  }
}

// Rows of one position each whose planes lie apart: the stride of the height says nothing and must not join planes.
TEST_P(EveryConvTarget, StridesOfSizeOneSayNothing) {
  std::mt19937 random(std::random_device{}());
  TwoThreads parallel;
  const std::array<int64_t, 3> one{1, 1, 1}, none{0, 0, 0};
  for (size_t d = 0; d < 3; ++d) {
    for (int round = 0; round < 100; ++round) {
      std::array<int64_t, 3> size{4, 5, 7};
      size[d] = 1;
      Check({Make(1 + round % 2, 1, 3, 2, size, one, one, none, one), DType::f32, Held::kOddOnes, Held::kOddOnes,
             Held::kOddOnes, false},
            parallel, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(EveryConvTarget, ShapesOfUsualNetworks) {
  std::mt19937 random(std::random_device{}());
  TwoThreads parallel;
  const std::array<int64_t, 3> one{1, 1, 1}, none{0, 0, 0};
  Check({Make(4, 1, 3, 32, {1, 32, 32}, {1, 3, 3}, one, {0, 1, 1}, one), DType::f32, 0, 0, 0, true}, parallel, random);
  Check({Make(3, 1, 40, 24, {1, 8, 8}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, one), DType::f32, 0, 0, 0, false}, parallel,
        random);
  Check({Make(2, 1, 48, 70, {1, 14, 14}, one, one, none, one), DType::f32, 0, 0, 0, false}, parallel,
        random);  // read in place
  Check({Make(2, 24, 24, 24, {1, 12, 12}, {1, 3, 3}, one, {0, 1, 1}, one), DType::f32, 0, 0, 0, true}, parallel,
        random);
}

}  // namespace
}  // namespace npu::conv
