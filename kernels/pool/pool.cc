#include "kernels/pool/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace npu::pool {
namespace {

// Rows or columns of x under one row or column of windows.
struct Span {
  int64_t begin, end;
};

// f(pointer) with the origins of a plane in their type.
template <class F>
void WithOrigins(const Origins& o, int64_t plane, const F& f) {
  char* at = static_cast<char*>(o.data) + plane * o.plane_bytes;
  if (o.dtype == DType::u16) return f(reinterpret_cast<uint16_t*>(at));
  if (o.dtype == DType::i32) return f(reinterpret_cast<int32_t*>(at));
  f(reinterpret_cast<int64_t*>(at));
}

Span Clipped(int64_t o, int64_t kernel, int64_t stride, int64_t pad, int64_t size) {
  const int64_t begin = o * stride - pad;
  return {std::max<int64_t>(begin, 0), std::min(begin + kernel, size)};
}

// What a window's sum is divided by: torch counts padding only up to the far edge of the padded image.
int64_t Divisor(const Window& w, const AverageRule& rule, int64_t h_size, int64_t w_size, int64_t oh, int64_t ow,
                const Span& h, const Span& v) {
  if (rule.divisor != 0) return rule.divisor;
  if (!rule.count_padding) return (h.end - h.begin) * (v.end - v.begin);
  const int64_t h0 = oh * w.stride[0] - w.pad[0], w0 = ow * w.stride[1] - w.pad[1];
  return (std::min(h0 + w.kernel[0], h_size + w.pad[0]) - h0) * (std::min(w0 + w.kernel[1], w_size + w.pad[1]) - w0);
}

Span Adaptive(int64_t o, int64_t in, int64_t out) { return {o * in / out, ((o + 1) * in + out - 1) / out}; }

float SumOf(const float* x, int64_t width, const Span& h, const Span& v) {
  float sum = 0;
  for (int64_t i = h.begin; i < h.end; ++i) {
    float row = 0;
    for (int64_t j = v.begin; j < v.end; ++j) row += x[i * width + j];
    sum += row;
  }
  return sum;
}

void AddTo(float* x, int64_t width, const Span& h, const Span& v, float value) {
  for (int64_t i = h.begin; i < h.end; ++i) {
    for (int64_t j = v.begin; j < v.end; ++j) x[i * width + j] += value;
  }
}

}  // namespace

namespace {

// Output positions [begin, end) whose window holds the input at offset `at` from the window's first element.
Span Inside(int64_t at, int64_t stride, int64_t in, int64_t out) {
  const int64_t begin = at >= 0 ? 0 : (-at + stride - 1) / stride;
  const int64_t end = at >= in ? 0 : (in - 1 - at) / stride + 1;
  return {std::min(begin, out), std::min(end, out)};
}

// A row of windows at once, tap after tap: the later of equal values loses, NaN wins, and a window of nothing but minus
// infinity has its first tap.
struct MaxRow {
  std::vector<float> best;
  std::vector<int32_t> tap;

  void Start(int64_t width) {
    best.assign(static_cast<size_t>(width), -std::numeric_limits<float>::infinity());
    tap.assign(static_cast<size_t>(width), -1);
  }
  void Take(const float* in, int64_t stride, const Span& to, int32_t which) {
    float* b = best.data();
    int32_t* t = tap.data();
    for (int64_t o = to.begin; o < to.end; ++o) {
      const float v = in[o * stride];
      const bool better = (v > b[o]) | (v != v) | (t[o] < 0);
      b[o] = better ? v : b[o];
      t[o] = better ? which : t[o];
    }
  }
};

// Where a tap reads, from the first element of its window.
struct Reach {
  int64_t h, w;
};
std::vector<Reach> ReachOfTaps(const Window& w) {
  std::vector<Reach> out;
  for (int64_t kh = 0; kh < w.kernel[0]; ++kh) {
    for (int64_t kw = 0; kw < w.kernel[1]; ++kw) out.push_back({kh * w.dilation[0], kw * w.dilation[1]});
  }
  return out;
}

}  // namespace

Status MaxPool(Parallel& parallel, const Image& x, const Window& w, const Image& y, const Origins& origins) {
  const std::vector<Reach> reach = ReachOfTaps(w);
  return ForPlanes(parallel, x, y, [&](int64_t plane, const float* in, float* out) {
    MaxRow row;
    for (int64_t oh = 0; oh < y.h; ++oh) {
      const int64_t h0 = oh * w.stride[0] - w.pad[0];
      row.Start(y.w);
      for (size_t t = 0; t < reach.size(); ++t) {
        const int64_t ih = h0 + reach[t].h, at = reach[t].w - w.pad[1];
        if (ih < 0 || ih >= x.h) continue;
        row.Take(in + ih * x.w + at, w.stride[1], Inside(at, w.stride[1], x.w, y.w), static_cast<int32_t>(t));
      }
      std::copy_n(row.best.data(), y.w, out + oh * y.w);
      if (origins.data == nullptr) continue;
      const int32_t* taps = row.tap.data();
      WithOrigins(origins, plane, [&](auto* to) {
        using T = std::remove_pointer_t<decltype(to)>;
        to += oh * y.w;
        for (int64_t ow = 0; ow < y.w; ++ow) {
          if constexpr (std::is_same_v<T, uint16_t>) {
            to[ow] = static_cast<T>(std::max(taps[ow], 0));
          } else if (taps[ow] < 0) {
            to[ow] = 0;
          } else {
            const Reach r = reach[static_cast<size_t>(taps[ow])];
            to[ow] = static_cast<T>((h0 + r.h) * x.w + ow * w.stride[1] - w.pad[1] + r.w);
          }
        }
      });
    }
  });
}

Status MaxPoolBackward(Parallel& parallel, const Image& dy, const Window& w, const Origins& origins, const Image& dx) {
  const bool taps = origins.dtype == DType::u16;
  const std::vector<Reach> reach = taps ? ReachOfTaps(w) : std::vector<Reach>();
  return ForPlanes(parallel, dy, dx, [&](int64_t plane, const float* in, float* out) {
    std::fill_n(out, dx.PlaneSize(), 0.0f);
    WithOrigins(origins, plane, [&](const auto* from) {
      for (int64_t oh = 0; oh < dy.h; ++oh) {
        const int64_t h0 = oh * w.stride[0] - w.pad[0];
        for (int64_t ow = 0; ow < dy.w; ++ow) {
          const auto origin = static_cast<int64_t>(from[oh * dy.w + ow]);
          int64_t index = origin;
          if (taps) {
            if (origin >= static_cast<int64_t>(reach.size())) continue;  // a mask that is not ours
            const Reach r = reach[static_cast<size_t>(origin)];
            const int64_t ih = h0 + r.h, iw = ow * w.stride[1] - w.pad[1] + r.w;
            index = ih >= 0 && ih < dx.h && iw >= 0 && iw < dx.w ? ih * dx.w + iw : -1;
          }
          if (index >= 0 && index < dx.PlaneSize()) out[index] += in[oh * dy.w + ow];
        }
      }
    });
  });
}

Status AvgPool(Parallel& parallel, const Image& x, const Window& w, const AverageRule& rule, const Image& y) {
  return ForPlanes(parallel, x, y, [&](int64_t, const float* in, float* out) {
    for (int64_t oh = 0; oh < y.h; ++oh) {
      const Span h = Clipped(oh, w.kernel[0], w.stride[0], w.pad[0], x.h);
      for (int64_t ow = 0; ow < y.w; ++ow) {
        const Span v = Clipped(ow, w.kernel[1], w.stride[1], w.pad[1], x.w);
        float mean = 0;
        if (h.begin < h.end && v.begin < v.end) {
          mean = SumOf(in, x.w, h, v) / static_cast<float>(Divisor(w, rule, x.h, x.w, oh, ow, h, v));
        }
        out[oh * y.w + ow] = mean;
      }
    }
  });
}

Status AvgPoolBackward(Parallel& parallel, const Image& dy, const Window& w, const AverageRule& rule, const Image& dx) {
  return ForPlanes(parallel, dy, dx, [&](int64_t, const float* in, float* out) {
    std::fill_n(out, dx.PlaneSize(), 0.0f);
    for (int64_t oh = 0; oh < dy.h; ++oh) {
      const Span h = Clipped(oh, w.kernel[0], w.stride[0], w.pad[0], dx.h);
      for (int64_t ow = 0; ow < dy.w; ++ow) {
        const Span v = Clipped(ow, w.kernel[1], w.stride[1], w.pad[1], dx.w);
        if (h.begin >= h.end || v.begin >= v.end) continue;
        AddTo(out, dx.w, h, v, in[oh * dy.w + ow] / static_cast<float>(Divisor(w, rule, dx.h, dx.w, oh, ow, h, v)));
      }
    }
  });
}

Status AdaptiveAvgPool(Parallel& parallel, const Image& x, const Image& y) {
  return ForPlanes(parallel, x, y, [&](int64_t, const float* in, float* out) {
    for (int64_t oh = 0; oh < y.h; ++oh) {
      const Span h = Adaptive(oh, x.h, y.h);
      for (int64_t ow = 0; ow < y.w; ++ow) {
        const Span v = Adaptive(ow, x.w, y.w);
        out[oh * y.w + ow] = SumOf(in, x.w, h, v) / static_cast<float>((h.end - h.begin) * (v.end - v.begin));
      }
    }
  });
}

Status AdaptiveAvgPoolBackward(Parallel& parallel, const Image& dy, const Image& dx) {
  return ForPlanes(parallel, dy, dx, [&](int64_t, const float* in, float* out) {
    std::fill_n(out, dx.PlaneSize(), 0.0f);
    for (int64_t oh = 0; oh < dy.h; ++oh) {
      const Span h = Adaptive(oh, dx.h, dy.h);
      for (int64_t ow = 0; ow < dy.w; ++ow) {
        const Span v = Adaptive(ow, dx.w, dy.w);
        AddTo(out, dx.w, h, v, in[oh * dy.w + ow] / static_cast<float>((h.end - h.begin) * (v.end - v.begin)));
      }
    }
  });
}

Status AdaptiveMaxPool(Parallel& parallel, const Image& x, const Image& y, const Origins& origins) {
  return ForPlanes(parallel, x, y, [&](int64_t plane, const float* in, float* out) {
    for (int64_t oh = 0; oh < y.h; ++oh) {
      const Span h = Adaptive(oh, x.h, y.h);
      for (int64_t ow = 0; ow < y.w; ++ow) {
        const Span v = Adaptive(ow, x.w, y.w);
        int64_t best = h.begin * x.w + v.begin;
        for (int64_t i = h.begin; i < h.end; ++i) {
          for (int64_t j = v.begin; j < v.end; ++j) {
            const float value = in[i * x.w + j];
            if (value > in[best] || value != value) best = i * x.w + j;
          }
        }
        out[oh * y.w + ow] = in[best];
        if (origins.data == nullptr) continue;
        WithOrigins(origins, plane, [&](auto* to) { to[oh * y.w + ow] = static_cast<std::remove_pointer_t<decltype(to)>>(best); });
      }
    }
  });
}

Status AdaptiveMaxPoolBackward(Parallel& parallel, const Image& dy, const Origins& origins, const Image& dx) {
  return MaxPoolBackward(parallel, dy, {}, origins, dx);
}

}  // namespace npu::pool
