#include "kernels/conv/conv.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "kernels/conv/depthwise.h"
#include "kernels/conv/window.h"

namespace npu::conv {
namespace {

using gemm::PanelSource;

constexpr int64_t kDepthwiseWork = 1 << 16;  // multiplications worth a task

char* At(const Volume& v, int64_t elements) { return static_cast<char*>(v.data) + elements * ItemSize(v.dtype); }

// Rows are channels, terms are (channel of the other side, tap): weights in any layout.
class WeightRows final : public PanelSource {
 public:
  // Row i, term (c, tap): data + i * stride_i + c * stride_c + tap_offset[tap].
  WeightRows(const void* data, DType type, int64_t stride_i, int64_t stride_c, std::vector<int64_t> tap_offset)
      : data_(static_cast<const char*>(data)),
        element_(ElementOf(type)),
        stride_i_(stride_i),
        stride_c_(stride_c),
        tap_offset_(std::move(tap_offset)) {
    const auto taps = static_cast<int64_t>(tap_offset_.size());
    dense_ = stride_c == taps;
    for (int64_t t = 0; t < taps; ++t) dense_ = dense_ && tap_offset_[static_cast<size_t>(t)] == t;
  }
  void Pack(int64_t i0, int count, int width, int64_t k0, int64_t k, float* dst) const override {
    const auto& t = gemm::Kernels();
    const auto pack = t.pack[static_cast<size_t>(element_)];
    const int64_t size = gemm::SizeOf(element_);
    if (dense_) return pack(data_ + (i0 * stride_i_ + k0) * size, stride_i_, 1, count, width, k, dst);
    const auto taps = static_cast<int64_t>(tap_offset_.size());
    for (int64_t p = 0; p < k; ++p) {
      const int64_t q = k0 + p;
      const int64_t at = i0 * stride_i_ + q / taps * stride_c_ + tap_offset_[static_cast<size_t>(q % taps)];
      t.load_row[static_cast<size_t>(element_)](data_ + at * size, stride_i_, count, dst + p * width);
      std::fill(dst + p * width + count, dst + (p + 1) * width, 0.0f);
    }
  }

 private:
  const char* data_;
  gemm::Element element_;
  int64_t stride_i_, stride_c_;
  std::vector<int64_t> tap_offset_;
  bool dense_;
};

// Rows are channels of an image batch, terms are its positions.
class ImageRows final : public PanelSource {
 public:
  ImageRows(const Volume& v, int64_t first_image, int64_t first_channel, const std::array<int64_t, 3>& size)
      : v_(v), data_(At(v, first_image * v.stride[0] + first_channel * v.stride[1])), size_(size) {
    // Rows or planes that lie one behind the other are one run. The stride of a dimension of size 1 says nothing.
    run_ = size[2];
    if (v.stride[3] == run_ * v.stride[4] || size[1] == 1) {
      run_ *= size[1];
      if (v.stride[2] == run_ * v.stride[4] || size[0] == 1) run_ *= size[0];
    }
  }
  void Pack(int64_t i0, int count, int width, int64_t k0, int64_t k, float* dst) const override {
    const auto pack = gemm::Kernels().pack[static_cast<size_t>(ElementOf(v_.dtype))];
    const int64_t positions = size_[0] * size_[1] * size_[2];
    for (int64_t done = 0; done < k;) {
      const int64_t p = k0 + done;
      const int64_t image = p / positions, q = p % positions;
      const int64_t w = q % run_;
      const int64_t row = (q - w) / size_[2];
      const int64_t terms = std::min(k - done, run_ - w);
      const int64_t at = image * v_.stride[0] + i0 * v_.stride[1] + row / size_[1] * v_.stride[2] +
                         row % size_[1] * v_.stride[3] + w * v_.stride[4];
      pack(data_ + at * ItemSize(v_.dtype), v_.stride[1], v_.stride[4], count, width, terms, dst + done * width);
      done += terms;
    }
  }

 private:
  const Volume& v_;
  const char* data_;
  std::array<int64_t, 3> size_;
  int64_t run_;
};

// Where positions of `size` go whose strides are those of `v` times `step`, as few runs as the strides allow.
gemm::Columns ColumnsOf(const Volume& v, int64_t images, const std::array<int64_t, 3>& size,
                        const std::array<int64_t, 3>& step) {
  gemm::Columns c;
  std::array<int64_t, 4> extent{images, size[0], size[1], size[2]};
  std::array<int64_t, 4> stride{v.stride[0], v.stride[2] * step[0], v.stride[3] * step[1], v.stride[4] * step[2]};
  c.step = stride[3];
  c.run = extent[3];
  int d = 2;
  for (; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    if (extent[i] != 1 && stride[i] != c.run * c.step) break;
    c.run *= extent[i];
  }
  for (int to = 2; d >= 0; --d, --to) {
    c.outer_size[static_cast<size_t>(to)] = extent[static_cast<size_t>(d)];
    c.outer_stride[static_cast<size_t>(to)] = stride[static_cast<size_t>(d)];
  }
  return c;
}

gemm::Sink SinkOf(const Volume& y, const Bias& bias, int64_t first_image, int64_t first_channel, int64_t offset) {
  gemm::Sink s{.data = At(y, first_image * y.stride[0] + first_channel * y.stride[1] + offset),
               .element = ElementOf(y.dtype),
               .row = y.stride[1]};
  if (bias.data != nullptr) {
    s.beta = 1;
    s.self = static_cast<const char*>(bias.data) + first_channel * bias.stride * ItemSize(bias.dtype);
    s.self_element = ElementOf(bias.dtype);
    s.self_row = bias.stride;
  }
  return s;
}

// Few groups are cut inside, many are shared out whole.
template <class Group>
Status ForGroups(Parallel& parallel, int64_t groups, const Group& group) {
  if (groups < int64_t{4} * parallel.Workers()) {
    for (int64_t g = 0; g < groups; ++g) NPU_TRY(group(parallel, g));
    return {};
  }
  std::atomic<bool> ok{true};
  parallel.For(groups, 1, [&](int64_t begin, int64_t end) {
    SerialParallel serial;
    for (int64_t g = begin; g < end; ++g) {
      if (!group(serial, g).ok()) ok.store(false, std::memory_order_relaxed);
    }
  });
  return ok.load(std::memory_order_relaxed) ? Status() : gemm::NoScratch();
}

// The product of weights with a window of `x`, for all groups; the shared part of Forward and BackwardData.
struct Sweep {
  const Walk& walk;
  const Volume& x;  // what is read
  const Volume& y;  // what is written
  const Bias& bias;
  int64_t groups, x_channels, y_channels;  // channels of one group
  std::array<int64_t, 3> y_step;           // distance of neighbouring positions in y
  int64_t y_offset;                        // elements of y before the first position
};

// Groups that read one channel: every row of the output straight from the window.
template <class MakeWeights>
void RunDepthwise(Parallel& parallel, const Sweep& s, const Window& window, int64_t first, int64_t count,
                  const MakeWeights& weights) {
  const auto taps = static_cast<int64_t>(s.walk.taps.size());
  const auto& t = gemm::Kernels();
  const auto store = t.store_row[static_cast<size_t>(ElementOf(s.y.dtype))];
  const int64_t width = s.walk.out[2], rows = s.walk.out[0] * s.walk.out[1];
  const int64_t grain = std::max<int64_t>(1, kDepthwiseWork / std::max<int64_t>(1, rows * width * taps));
  parallel.For(count * s.groups, grain, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> offset(static_cast<size_t>(taps));
    std::vector<float> weight(static_cast<size_t>(taps + gemm::kPanelSlackFloats)), line(static_cast<size_t>(width));
    for (int64_t x = begin; x < end; ++x) {
      const int64_t image = x / s.groups, group = x % s.groups;
      for (int64_t p = 0; p < taps; ++p) offset[static_cast<size_t>(p)] = window.Offset(group, p);
      const auto source = weights(group);
      for (int64_t c = 0; c < s.y_channels; ++c) {
        const int64_t channel = group * s.y_channels + c;
        source.Pack(c, 1, 1, 0, taps, weight.data());
        float bias = 0;
        if (s.bias.data != nullptr) {
          const char* at = static_cast<const char*>(s.bias.data) + channel * s.bias.stride * ItemSize(s.bias.dtype);
          t.load_row[static_cast<size_t>(ElementOf(s.bias.dtype))](at, 1, 1, &bias);
        }
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t d = r / s.walk.out[1], h = r % s.walk.out[1];
          Depthwise().forward(window.Run(image, d, h), offset.data(), weight.data(), taps, width, bias,
                              window.Overread(), line.data());
          const int64_t at = (first + image) * s.y.stride[0] + channel * s.y.stride[1] + s.y_offset +
                             d * s.y_step[0] * s.y.stride[2] + h * s.y_step[1] * s.y.stride[3];
          store(line.data(), width, At(s.y, at), s.y_step[2] * s.y.stride[4]);
        }
      }
    }
  });
}

template <class MakeWeights>
Status RunSweep(Parallel& parallel, const Sweep& s, const MakeWeights& weights) {
  const int64_t k = s.x_channels * static_cast<int64_t>(s.walk.taps.size());
  Window window(s.walk, s.x);
  if (!window.ok()) return gemm::NoScratch();
  for (int64_t first = 0; first < s.walk.images; first += window.ImagesAtATime()) {
    const int64_t count = std::min(window.ImagesAtATime(), s.walk.images - first);
    window.Load(parallel, s.x, first, count);
    if (s.x_channels == 1) {
      RunDepthwise(parallel, s, window, first, count, weights);
      continue;
    }
    auto group = [&](Parallel& threads, int64_t g) {
      const auto rows = weights(g);
      const PositionColumns columns(window, g * s.x_channels);
      gemm::Sink sink = SinkOf(s.y, s.bias, first, g * s.y_channels, s.y_offset);
      sink.columns = ColumnsOf(s.y, count, s.walk.out, s.y_step);
      return gemm::Blocked(threads, s.y_channels, count * window.Positions(), k, rows, columns, sink);
    };
    NPU_TRY(ForGroups(parallel, s.groups, group));
  }
  return {};
}

int64_t TapOffset(const Volume& w, const std::array<int64_t, 3>& at) {
  return at[0] * w.stride[2] + at[1] * w.stride[3] + at[2] * w.stride[4];
}

template <class F>
void ForTaps(const std::array<int64_t, 3>& kernel, const F& f) {
  std::array<int64_t, 3> at{};
  for (at[0] = 0; at[0] < kernel[0]; ++at[0]) {
    for (at[1] = 0; at[1] < kernel[1]; ++at[1]) {
      for (at[2] = 0; at[2] < kernel[2]; ++at[2]) f(at);
    }
  }
}

Walk ForwardWalk(const Geometry& g) {
  Walk walk{g.batch, g.in_channels, g.in, g.out, g.stride, {}};
  ForTaps(g.kernel, [&](const std::array<int64_t, 3>& at) {
    walk.taps.push_back(
        {at[0] * g.dilation[0] - g.pad[0], at[1] * g.dilation[1] - g.pad[1], at[2] * g.dilation[2] - g.pad[2]});
  });
  return walk;
}

}  // namespace

bool Supports(DType t) { return t == DType::f32 || IsHalf(t); }

Status Forward(Parallel& parallel, const Geometry& g, const Volume& x, const Volume& w, const Bias& bias,
               const Volume& y) {
  const Walk walk = ForwardWalk(g);
  std::vector<int64_t> offsets;
  ForTaps(g.kernel, [&](const std::array<int64_t, 3>& at) { offsets.push_back(TapOffset(w, at)); });
  const int64_t out = g.out_channels / g.groups;
  const Sweep sweep{walk, x, y, bias, g.groups, g.in_channels / g.groups, out, {1, 1, 1}, 0};
  return RunSweep(parallel, sweep, [&](int64_t group) {
    return WeightRows(At(w, group * out * w.stride[0]), w.dtype, w.stride[0], w.stride[1], offsets);
  });
}

// Input position i gets dy[o] * w[tap] wherever o * stride - pad + tap * dilation == i. For each residue of i modulo
// the stride the taps that can hit are a fixed set, and o moves in steps of one with i in steps of the stride.
Status BackwardData(Parallel& parallel, const Geometry& g, const Volume& dy, const Volume& w, const Bias& bias,
                    const Volume& dx) {
  const int64_t in = g.in_channels / g.groups, out = g.out_channels / g.groups;
  Status status;
  ForTaps(g.stride, [&](const std::array<int64_t, 3>& residue) {
    if (!status.ok()) return;
    Walk walk{g.batch, g.out_channels, g.out, {}, {1, 1, 1}, {}};
    for (size_t d = 0; d < 3; ++d) walk.out[d] = (g.in[d] - residue[d] + g.stride[d] - 1) / g.stride[d];
    if (*std::min_element(walk.out.begin(), walk.out.end()) <= 0) return;
    std::vector<int64_t> offsets;
    ForTaps(g.kernel, [&](const std::array<int64_t, 3>& at) {
      std::array<int64_t, 3> o{};
      for (size_t d = 0; d < 3; ++d) {
        const int64_t distance = residue[d] + g.pad[d] - at[d] * g.dilation[d];
        if (distance % g.stride[d] != 0) return;
        o[d] = distance / g.stride[d];
      }
      walk.taps.push_back(o);
      offsets.push_back(TapOffset(w, at));
    });
    if (walk.taps.empty()) {  // nothing reaches these positions: a product of no terms writes zero or the bias
      walk.taps.push_back({});
    }
    const int64_t first = residue[0] * dx.stride[2] + residue[1] * dx.stride[3] + residue[2] * dx.stride[4];
    const Sweep sweep{walk, dy, dx, bias, g.groups, offsets.empty() ? 0 : out, in, g.stride, first};
    if (offsets.empty()) offsets.push_back(0);
    status = RunSweep(parallel, sweep, [&](int64_t group) {
      return WeightRows(At(w, group * out * w.stride[0]), w.dtype, w.stride[1], w.stride[0], offsets);
    });
  });
  return status;
}

namespace {

// The gradient of weights that read one channel: sums of products of rows, for the images of a chunk.
void DepthwiseWeight(Parallel& parallel, const Geometry& g, const Volume& dy, const Window& window, int64_t first,
                     int64_t count, float* sums) {
  const int64_t taps = g.Taps(), width = g.out[2], rows = g.out[0] * g.out[1], out = g.out_channels / g.groups;
  const auto load = gemm::Kernels().load_row[static_cast<size_t>(ElementOf(dy.dtype))];
  const int64_t grain = std::max<int64_t>(1, kDepthwiseWork / std::max<int64_t>(1, count * rows * width * taps));
  parallel.For(g.out_channels, grain, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> offset(static_cast<size_t>(taps));
    std::vector<double> sum(static_cast<size_t>(taps));
    std::vector<float> line(static_cast<size_t>(width));
    for (int64_t c = begin; c < end; ++c) {
      for (int64_t p = 0; p < taps; ++p) offset[static_cast<size_t>(p)] = window.Offset(c / out, p);
      std::fill(sum.begin(), sum.end(), 0.0);
      for (int64_t image = 0; image < count; ++image) {
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t d = r / g.out[1], h = r % g.out[1];
          const int64_t at = (first + image) * dy.stride[0] + c * dy.stride[1] + d * dy.stride[2] + h * dy.stride[3];
          load(At(dy, at), dy.stride[4], width, line.data());
          Depthwise().weight(line.data(), window.Run(image, d, h), offset.data(), taps, width, sum.data());
        }
      }
      for (int64_t p = 0; p < taps; ++p) sums[c * taps + p] += static_cast<float>(sum[static_cast<size_t>(p)]);
    }
  });
}

}  // namespace

Status BackwardWeight(Parallel& parallel, const Geometry& g, const Volume& dy, const Volume& x, const Volume& dw) {
  const Walk walk = ForwardWalk(g);
  const int64_t in = g.in_channels / g.groups, out = g.out_channels / g.groups, taps = g.Taps();
  Window window(walk, x);
  if (!window.ok()) return gemm::NoScratch();
  // Sums run over chunks of images, so they are kept in f32 and in the order (out, in, taps) of the product.
  const int64_t per_group = out * in * taps;
  gemm::Scratch sums(static_cast<size_t>(g.groups * per_group) * sizeof(float));
  if (!sums) return gemm::NoScratch();
  std::fill_n(sums.As(), g.groups * per_group, 0.0f);
  for (int64_t first = 0; first < g.batch; first += window.ImagesAtATime()) {
    const int64_t count = std::min(window.ImagesAtATime(), g.batch - first);
    window.Load(parallel, x, first, count);
    if (in == 1) {
      DepthwiseWeight(parallel, g, dy, window, first, count, sums.As());
      continue;
    }
    auto group = [&](Parallel& threads, int64_t i) {
      const ImageRows rows(dy, first, i * out, g.out);
      const TapColumns columns(window, i * in);
      gemm::Sink sink{.data = sums.As() + i * per_group, .row = in * taps};
      sink.beta = 1;
      sink.self = sink.data;
      sink.self_row = sink.row;
      sink.self_col = 1;
      sink.in_place = true;
      return gemm::Blocked(threads, out, in * taps, count * window.Positions(), rows, columns, sink);
    };
    NPU_TRY(ForGroups(parallel, g.groups, group));
  }
  const auto store = gemm::Kernels().store_row[static_cast<size_t>(ElementOf(dw.dtype))];
  // Taps one behind the other; a stride along one position says nothing.
  const bool dense = (g.kernel[2] == 1 || dw.stride[4] == 1) && (g.kernel[1] == 1 || dw.stride[3] == g.kernel[2]) &&
                     (g.kernel[0] == 1 || dw.stride[2] == g.kernel[1] * g.kernel[2]) && (in == 1 || dw.stride[1] == taps);
  parallel.For(g.out_channels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, in * taps)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t o = begin; o < end; ++o) {
                   const float* from = sums.As() + o * in * taps;
                   if (dense) {
                     store(from, in * taps, At(dw, o * dw.stride[0]), 1);
                     continue;
                   }
                   for (int64_t c = 0; c < in; ++c) {
                     ForTaps(g.kernel, [&](const std::array<int64_t, 3>& at) {
                       store(from++, 1, At(dw, o * dw.stride[0] + c * dw.stride[1] + TapOffset(dw, at)), 1);
                     });
                   }
                 }
               });
  return {};
}

void BackwardBias(Parallel& parallel, const Volume& dy, const std::array<int64_t, 5>& size, const Bias& dbias) {
  const auto& t = gemm::Kernels();
  const auto load = t.load_row[static_cast<size_t>(ElementOf(dy.dtype))];
  const auto store = t.store_row[static_cast<size_t>(ElementOf(dbias.dtype))];
  constexpr int64_t kRun = 1024, kSums = 16;
  // Rows that lie one behind the other are summed as one.
  int64_t run = size[4], rows = size[2] * size[3];
  if (dy.stride[3] == run * dy.stride[4]) run *= size[3], rows = size[2];
  if (rows == size[2] && dy.stride[2] == run * dy.stride[4]) run *= size[2], rows = 1;
  const int64_t per_plane = rows / std::max<int64_t>(1, size[2]) > 0 ? rows / std::max<int64_t>(1, size[2]) : 1;
  parallel.For(size[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double total = 0;
      for (int64_t n = 0; n < size[0]; ++n) {
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t at =
              n * dy.stride[0] + c * dy.stride[1] + r / per_plane * dy.stride[2] + r % per_plane * dy.stride[3];
          for (int64_t w = 0; w < run; w += kRun) {
            const int64_t count = std::min(kRun, run - w);
            float values[kRun];
            load(At(dy, at + w * dy.stride[4]), dy.stride[4], count, values);
            float sums[kSums] = {};
            int64_t i = 0;
            for (; i + kSums <= count; i += kSums) {
              for (int64_t s = 0; s < kSums; ++s) sums[s] += values[i + s];
            }
            for (; i < count; ++i) sums[0] += values[i];
            for (float s : sums) total += static_cast<double>(s);
          }
        }
      }
      const float value = static_cast<float>(total);
      store(&value, 1, static_cast<char*>(const_cast<void*>(dbias.data)) + c * dbias.stride * ItemSize(dbias.dtype), 1);
    }
  });
}

}  // namespace npu::conv
