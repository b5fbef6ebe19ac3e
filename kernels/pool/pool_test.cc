#include "kernels/pool/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace npu::pool {
namespace {

struct Geometry {
  int64_t h, w, oh, ow;
  Window window;
};

Geometry RandomGeometry(std::mt19937& random) {
  auto below = [&](int n) { return static_cast<int64_t>(random() % static_cast<unsigned>(n)); };
  Geometry g{};
  std::array<int64_t, 2> in{}, out{};
  for (size_t d = 0; d < 2; ++d) {
    Window& w = g.window;
    w.kernel[d] = 1 + below(4), w.stride[d] = 1 + below(3), w.dilation[d] = 1 + below(2);
    w.pad[d] = below(static_cast<int>(w.kernel[d] / 2) + 1);
    const int64_t reach = (w.kernel[d] - 1) * w.dilation[d] + 1;
    in[d] = std::max<int64_t>(1, reach - 2 * w.pad[d]) + below(20);
    out[d] = (in[d] + 2 * w.pad[d] - reach) / w.stride[d] + 1;
  }
  g.h = in[0], g.w = in[1], g.oh = out[0], g.ow = out[1];
  return g;
}

Image ImageOf(std::vector<float>& memory, int64_t planes, int64_t h, int64_t w) {
  memory.resize(static_cast<size_t>(planes * h * w));
  return {memory.data(), DType::f32, 1, planes, h, w, {planes * h * w, h * w, w, 1}};
}

// The position of the maximum of a window by the definition: the first of equals, NaN beats numbers; -1 for no position.
int64_t Best(const float* plane, const Geometry& g, int64_t oh, int64_t ow, int64_t* tap) {
  int64_t best = -1;
  *tap = 0;
  for (int64_t kh = 0; kh < g.window.kernel[0]; ++kh) {
    for (int64_t kw = 0; kw < g.window.kernel[1]; ++kw) {
      const int64_t h = oh * g.window.stride[0] - g.window.pad[0] + kh * g.window.dilation[0];
      const int64_t w = ow * g.window.stride[1] - g.window.pad[1] + kw * g.window.dilation[1];
      if (h < 0 || h >= g.h || w < 0 || w >= g.w) continue;
      const float v = plane[h * g.w + w];
      if (best < 0 || v > plane[best] || std::isnan(v)) best = h * g.w + w, *tap = kh * g.window.kernel[1] + kw;
    }
  }
  return best;
}

TEST(MaxPool, FindsTheDefinedMaximumAndSendsTheGradientBackToIt) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  SerialParallel serial;
  for (int round = 0; round < 200; ++round) {
    const Geometry g = RandomGeometry(random);
    constexpr int64_t kPlanes = 3;
    std::vector<float> mx, my, mg, mdx;
    const Image x = ImageOf(mx, kPlanes, g.h, g.w), y = ImageOf(my, kPlanes, g.oh, g.ow);
    const Image dy = ImageOf(mg, kPlanes, g.oh, g.ow), dx = ImageOf(mdx, kPlanes, g.h, g.w);
    // Few values, so that equals happen; sometimes NaN and infinities.
    for (float& v : mx) {
      const auto kind = random() % 40;
      v = static_cast<float>(random() % 7) - 3;
      if (round % 3 == 0 && kind == 0) v = std::numeric_limits<float>::quiet_NaN();
      if (round % 3 == 1 && kind < 30) v = -std::numeric_limits<float>::infinity();
    }
    for (float& v : mg) v = static_cast<float>(random() % 100);
    for (const DType type : {DType::u16, DType::i32, DType::i64}) {
      std::vector<int64_t> memory(static_cast<size_t>(kPlanes * g.oh * g.ow), -7);
      const Origins origins{memory.data(), type, g.oh * g.ow * ItemSize(type)};
      ASSERT_TRUE(MaxPool(serial, x, g.window, y, origins).ok());
      ASSERT_TRUE(MaxPoolBackward(serial, dy, g.window, origins, dx).ok());
      bool all_have_one = true;
      std::vector<float> want_dx(mdx.size(), 0.0f);
      for (int64_t p = 0; p < kPlanes; ++p) {
        for (int64_t i = 0; i < g.oh * g.ow; ++i) {
          int64_t tap = 0;
          const int64_t best = Best(mx.data() + p * g.h * g.w, g, i / g.ow, i % g.ow, &tap);
          if (best < 0) {  // dilated taps that all fall into the padding
            ASSERT_EQ(my[static_cast<size_t>(p * g.oh * g.ow + i)], -std::numeric_limits<float>::infinity());
            all_have_one = false;
            continue;
          }
          const float got = my[static_cast<size_t>(p * g.oh * g.ow + i)];
          const float want = mx[static_cast<size_t>(p * g.h * g.w + best)];
          ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << got << " for " << want;
          const char* at = reinterpret_cast<const char*>(memory.data()) + p * origins.plane_bytes;
          if (type == DType::u16) {
            ASSERT_EQ(reinterpret_cast<const uint16_t*>(at)[i], tap);
          }
          if (type == DType::i32) {
            ASSERT_EQ(reinterpret_cast<const int32_t*>(at)[i], best);
          }
          if (type == DType::i64) {
            ASSERT_EQ(reinterpret_cast<const int64_t*>(at)[i], best);
          }
          want_dx[static_cast<size_t>(p * g.h * g.w + best)] += mg[static_cast<size_t>(p * g.oh * g.ow + i)];
        }
      }
      if (all_have_one) {
        ASSERT_EQ(mdx, want_dx);
      }
    }
  }
}

}  // namespace
}  // namespace npu::pool
