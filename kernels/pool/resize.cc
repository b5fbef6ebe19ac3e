#include "kernels/pool/resize.h"

#include <cmath>
#include <vector>

namespace npu::pool {
namespace {

float Ratio(double scale, int64_t in, int64_t out) {
  return scale > 0 ? static_cast<float>(1.0 / scale) : static_cast<float>(in) / static_cast<float>(out);
}

// For each position of the output the position of the input it shows.
std::vector<int64_t> NearestMap(double scale, bool exact, int64_t in, int64_t out) {
  const float ratio = Ratio(scale, in, out);
  std::vector<int64_t> map(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o) {
    const float at = exact ? (static_cast<float>(o) + 0.5f) * ratio : static_cast<float>(o) * ratio;
    map[static_cast<size_t>(o)] = std::min(static_cast<int64_t>(std::floor(at)), in - 1);
    // Torch settles these sizes before it looks at a scale.
    if (!exact && in == out) map[static_cast<size_t>(o)] = o;
    if (!exact && 2 * in == out) map[static_cast<size_t>(o)] = o / 2;
  }
  return map;
}

// The two neighbours of each position and the weight of the second.
struct Pair {
  int64_t low, high;
  float weight;
};

std::vector<Pair> LinearMap(double scale, bool align, int64_t in, int64_t out) {
  float ratio = Ratio(scale, in, out);
  if (align) ratio = out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1) : 0.0f;
  std::vector<Pair> map(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o) {
    float at = align ? ratio * static_cast<float>(o) : ratio * (static_cast<float>(o) + 0.5f) - 0.5f;
    at = std::max(at, 0.0f);
    const int64_t low = std::min(static_cast<int64_t>(at), in - 1);
    map[static_cast<size_t>(o)] = {low, std::min(low + 1, in - 1),
                                   std::min(std::max(at - static_cast<float>(low), 0.0f), 1.0f)};
    if (in == out) map[static_cast<size_t>(o)] = {o, o, 0.0f};  // before torch looks at a scale
  }
  return map;
}

}  // namespace

Status Nearest(Parallel& parallel, const Image& x, const Scales& scales, bool exact, const Image& y) {
  const auto rows = NearestMap(scales.h, exact, x.h, y.h), cols = NearestMap(scales.w, exact, x.w, y.w);
  return ForPlanes(parallel, x, y, [&](int64_t, const float* in, float* out) {
    for (int64_t r : rows) {
      for (int64_t c : cols) *out++ = in[r * x.w + c];
    }
  });
}

Status NearestBackward(Parallel& parallel, const Image& dy, const Scales& scales, bool exact, const Image& dx) {
  const auto rows = NearestMap(scales.h, exact, dx.h, dy.h), cols = NearestMap(scales.w, exact, dx.w, dy.w);
  return ForPlanes(parallel, dy, dx, [&](int64_t, const float* in, float* out) {
    std::fill_n(out, dx.PlaneSize(), 0.0f);
    for (int64_t r : rows) {
      for (int64_t c : cols) out[r * dx.w + c] += *in++;
    }
  });
}

Status Bilinear(Parallel& parallel, const Image& x, const Scales& scales, bool align, const Image& y) {
  const auto rows = LinearMap(scales.h, align, x.h, y.h), cols = LinearMap(scales.w, align, x.w, y.w);
  return ForPlanes(parallel, x, y, [&](int64_t, const float* in, float* out) {
    for (const Pair& r : rows) {
      const float *low = in + r.low * x.w, *high = in + r.high * x.w;
      for (const Pair& c : cols) {
        const float top = (1 - c.weight) * low[c.low] + c.weight * low[c.high];
        const float bottom = (1 - c.weight) * high[c.low] + c.weight * high[c.high];
        *out++ = (1 - r.weight) * top + r.weight * bottom;
      }
    }
  });
}

Status BilinearBackward(Parallel& parallel, const Image& dy, const Scales& scales, bool align, const Image& dx) {
  const auto rows = LinearMap(scales.h, align, dx.h, dy.h), cols = LinearMap(scales.w, align, dx.w, dy.w);
  return ForPlanes(parallel, dy, dx, [&](int64_t, const float* in, float* out) {
    std::fill_n(out, dx.PlaneSize(), 0.0f);
    for (const Pair& r : rows) {
      float *low = out + r.low * dx.w, *high = out + r.high * dx.w;
      for (const Pair& c : cols) {
        const float v = *in++;
        low[c.low] += (1 - r.weight) * (1 - c.weight) * v;
        low[c.high] += (1 - r.weight) * c.weight * v;
        high[c.low] += r.weight * (1 - c.weight) * v;
        high[c.high] += r.weight * c.weight * v;
      }
    }
  });
}

}  // namespace npu::pool
