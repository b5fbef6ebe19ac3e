#include "kernels/conv/window.h"

#include <algorithm>
#include <cstring>

namespace npu::conv {
namespace {

constexpr int64_t kChunkFloats = 2 << 20;  // of a padded copy at a time
constexpr int64_t kSlack = 64;             // floats behind the copy that a vector may read

int64_t FloorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

bool InPlace(const Walk& w, const Volume& x) {
  if (x.dtype != DType::f32 || x.stride[4] != 1 || w.step[2] != 1) return false;
  for (size_t d = 0; d < 3; ++d) {
    for (const auto& tap : w.taps) {
      if (tap[d] < 0 || tap[d] + (w.out[d] - 1) * w.step[d] >= w.in[d]) return false;
    }
  }
  return true;
}

// Copies one row of the input into its place in the padded copy; columns outside the input become zero.
template <class Read>
void CopyRow(float* dst, int64_t low, int64_t size, int64_t width, int64_t step, int64_t phase, const Read& read) {
  if (step == 1) {
    const int64_t from = std::clamp<int64_t>(-low, 0, size), to = std::clamp<int64_t>(width - low, from, size);
    std::fill(dst, dst + from, 0.0f);
    read(low + from, to - from, 1, dst + from);
    std::fill(dst + to, dst + size, 0.0f);
    return;
  }
  for (int64_t r = 0; r < step; ++r) {
    float* out = dst + r * phase;
    // Column r + q * step of the copy is column low + r + q * step of the input.
    const int64_t from = std::clamp<int64_t>(FloorDiv(-low - r + step - 1, step), 0, phase);
    const int64_t to = std::clamp<int64_t>(FloorDiv(width - 1 - low - r, step) + 1, from, phase);
    std::fill(out, out + from, 0.0f);
    if (to > from) read(low + r + from * step, to - from, step, out + from);
    std::fill(out + to, out + phase, 0.0f);
  }
}

// A plane of f32 rows with unit stride into its place in the padded copy: `top` rows and `left` columns of it come before
// the first of the input. Columns of each residue of `step` lie together, `phase` of them.
struct PaddedPlane {
  int64_t top, left, rows, width;  // of the copy
  int64_t step, phase;
  int64_t in_rows, in_width, in_row;

  void Copy(const float* src, float* dst) const {
    std::memset(dst, 0, static_cast<size_t>(rows * width) * sizeof(float));
    const int64_t end = std::min(rows, top + in_rows);
    for (int64_t r = std::max<int64_t>(0, top); r < end; ++r) {
      const float* line = src + (r - top) * in_row;
      float* to = dst + r * width;
      if (step == 1) {
        Row<1>(line, to, 0);
      } else if (step == 2) {
        Row<2>(line, to, 0);
        Row<2>(line, to + phase, 1);
      } else {
        for (int64_t x = 0; x < step; ++x) Row<0>(line, to + x * phase, x);
      }
    }
  }

  // Column q of the residue is column first + q * step of the input.
  template <int kStep>
  void Row(const float* src, float* dst, int64_t residue) const {
    const int64_t by = kStep == 0 ? step : kStep;
    const int64_t first = residue - left;
    const int64_t from = std::clamp<int64_t>(FloorDiv(by - 1 - first, by), 0, phase);
    const int64_t to = std::clamp<int64_t>(FloorDiv(in_width - 1 - first, by) + 1, from, phase);
    const float* in = src + first;
    if (kStep == 1) {
      // Rows are short: a call of memcpy would cost more than the copy.
      int64_t q = from;
      for (; q + 4 <= to; q += 4) std::memcpy(dst + q, in + q, 4 * sizeof(float));
      for (; q < to; ++q) dst[q] = in[q];
    } else {
      for (int64_t q = from; q < to; ++q) dst[q] = in[q * by];
    }
  }
};

}  // namespace

gemm::Element ElementOf(DType t) {
  return t == DType::f32 ? gemm::Element::kF32 : t == DType::f16 ? gemm::Element::kF16 : gemm::Element::kBf16;
}

Window::Window(const Walk& walk, const Volume& x) : walk_(walk), in_place_(InPlace(walk, x)) {
  const size_t taps = walk.taps.size();
  std::vector<int64_t> of_tap(taps);
  if (in_place_) {
    row_ = x.stride[3];
    plane_ = x.stride[2];
    channel_stride_ = x.stride[1];
    image_stride_ = x.stride[0];
    chunk_ = std::max<int64_t>(1, walk.images);
    for (size_t p = 0; p < taps; ++p) {
      of_tap[p] = walk.taps[p][0] * plane_ + walk.taps[p][1] * row_ + walk.taps[p][2];
    }
    FillOffsets(of_tap);
    return;
  }
  for (size_t d = 0; d < 3; ++d) {
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (const auto& tap : walk.taps) {
      low = std::min(low, tap[d]);
      high = std::max(high, tap[d] + (walk.out[d] - 1) * walk.step[d]);
    }
    low_[d] = low;
    size_[d] = std::max<int64_t>(0, high - low + 1);
  }
  const int64_t step = walk.step[2];
  phase_ = gemm::CeilDiv(size_[2], step);
  row_ = phase_ * step;
  plane_ = size_[1] * row_;
  channel_stride_ = size_[0] * plane_;
  image_stride_ = walk.channels * channel_stride_;
  chunk_ =
      std::clamp<int64_t>(kChunkFloats / std::max<int64_t>(1, image_stride_), 1, std::max<int64_t>(1, walk.images));
  for (size_t p = 0; p < taps; ++p) {
    const int64_t w = walk.taps[p][2] - low_[2];
    of_tap[p] =
        (walk.taps[p][0] - low_[0]) * plane_ + (walk.taps[p][1] - low_[1]) * row_ + w % step * phase_ + w / step;
  }
  FillOffsets(of_tap);
  scratch_ = gemm::Scratch(static_cast<size_t>(chunk_ * image_stride_ + kSlack) * sizeof(float));
}

void Window::FillOffsets(const std::vector<int64_t>& of_tap) {
  offset_.reserve(static_cast<size_t>(walk_.channels) * of_tap.size());
  for (int64_t c = 0; c < walk_.channels; ++c) {
    for (const int64_t offset : of_tap) offset_.push_back(c * channel_stride_ + offset);
  }
}

void Window::Load(Parallel& parallel, const Volume& x, int64_t first, int64_t count) {
  const int64_t item = ItemSize(x.dtype);
  const char* data = static_cast<const char*>(x.data) + first * x.stride[0] * item;
  if (in_place_) {
    base_ = reinterpret_cast<const float*>(data);
    return;
  }
  float* copy = scratch_.As();
  base_ = copy;
  const auto load_row = gemm::Kernels().load_row[static_cast<size_t>(ElementOf(x.dtype))];
  const int64_t rows = size_[0] * size_[1];
  std::memset(copy + count * image_stride_, 0, kSlack * sizeof(float));
  const bool plain = x.dtype == DType::f32 && x.stride[4] == 1 && size_[0] == 1 && low_[0] == 0;
  const PaddedPlane plane{-low_[1], -low_[2], size_[1],      row_,         walk_.step[2],
                          phase_,   walk_.in[1], walk_.in[2], x.stride[3]};
  parallel.For(count * walk_.channels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, channel_stride_)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t nc = begin; nc < end; ++nc) {
                   const char* channel =
                       data + (nc / walk_.channels * x.stride[0] + nc % walk_.channels * x.stride[1]) * item;
                   float* dst = copy + nc * channel_stride_;
                   if (plain) {
                     plane.Copy(reinterpret_cast<const float*>(channel), dst);
                     continue;
                   }
                   for (int64_t r = 0; r < rows; ++r, dst += row_) {
                     const int64_t d = low_[0] + r / size_[1], h = low_[1] + r % size_[1];
                     if (d < 0 || d >= walk_.in[0] || h < 0 || h >= walk_.in[1]) {
                       std::fill(dst, dst + row_, 0.0f);
                       continue;
                     }
                     const char* line = channel + (d * x.stride[2] + h * x.stride[3]) * item;
                     CopyRow(dst, low_[2], size_[2], walk_.in[2], walk_.step[2], phase_,
                             [&](int64_t w, int64_t n, int64_t step, float* out) {
                               load_row(line + w * x.stride[4] * item, step * x.stride[4], n, out);
                             });
                   }
                 }
               });
}

void PositionColumns::Pack(int64_t i0, int count, int width, int64_t k0, int64_t k, float* dst) const {
  const auto& t = gemm::Kernels();
  const auto taps = static_cast<int64_t>(window_.walk().taps.size());
  const int64_t w_size = window_.walk().out[2], h_size = window_.walk().out[1];
  const float* run[32];
  int length[32];
  int runs = 0;
  for (int done = 0; done < count; ++runs) {
    const int64_t i = i0 + done;
    const int64_t row = i / w_size, w = i - row * w_size;
    const int64_t image = row / window_.Rows(), dh = row - image * window_.Rows();
    run[runs] = window_.Run(image, dh / h_size, dh % h_size) + w;
    length[runs] = static_cast<int>(std::min<int64_t>(count - done, w_size - w));
    done += length[runs];
  }
  t.pack_runs(run, length, runs, window_.Offsets(first_channel_ + k0 / taps, k0 % taps), window_.Overread(), width, k,
              dst);
}

void TapColumns::Pack(int64_t i0, int count, int width, int64_t k0, int64_t k, float* dst) const {
  const auto& t = gemm::Kernels();
  const auto taps = static_cast<int64_t>(window_.walk().taps.size());
  const int64_t w_size = window_.walk().out[2], h_size = window_.walk().out[1];
  const int64_t* offset = window_.Offsets(first_channel_ + i0 / taps, i0 % taps);
  for (int64_t done = 0; done < k;) {
    const int64_t p = k0 + done;
    const int64_t row = p / w_size, w = p - row * w_size;
    const int64_t image = row / window_.Rows(), dh = row - image * window_.Rows();
    const float* base = window_.Run(image, dh / h_size, dh % h_size) + w;
    const int64_t terms = std::min(k - done, w_size - w);
    const float* rows[32];
    for (int i = 0; i < count; ++i) rows[i] = base + offset[i];
    t.pack_rows(rows, count, width, terms, dst + done * width);
    done += terms;
  }
}

}  // namespace npu::conv
