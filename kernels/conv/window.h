// An input as convolutions read it: f32, unit stride along width, so that a tap is an offset and a row of the output is
// a run of floats.
//
// Where the input is not like that (padding, another type, other strides, a stride along width) a padded copy is made,
// for as many images at a time as fit in cache. A copy keeps the columns of each residue of the width stride together,
// which turns a strided convolution into runs as well.
#pragma once

#include <vector>

#include "kernels/conv/conv.h"
#include "kernels/gemm/blocked.h"
#include "kernels/gemm/scratch.h"

namespace npu::conv {

// Positions of the output and the taps that read the input: element (t, p) is input[t * step + tap[p]], in elements of
// the unpadded input; what lies outside is zero.
struct Walk {
  int64_t images = 0, channels = 0;
  std::array<int64_t, 3> in{}, out{}, step{1, 1, 1};
  std::vector<std::array<int64_t, 3>> taps;
};

class Window {
 public:
  // Room for the copy of as many images as are handled at a time; no room when the input can be read in place.
  Window(const Walk& walk, const Volume& x);

  bool ok() const { return in_place_ || static_cast<bool>(scratch_); }
  int64_t ImagesAtATime() const { return chunk_; }
  // Makes images [first, first + count) readable.
  void Load(Parallel& parallel, const Volume& x, int64_t first, int64_t count);

  // Input channel and tap p of the position whose run begins at Run(image, d, h): Run(...) + Offset(channel, p) + w.
  const float* Run(int64_t image, int64_t d, int64_t h) const {
    return base_ + image * image_stride_ + d * walk_.step[0] * plane_ + h * walk_.step[1] * row_;
  }
  int64_t Offset(int64_t channel, int64_t tap) const { return *Offsets(channel, tap); }
  // The same for the taps that follow, over the ends of channels.
  const int64_t* Offsets(int64_t channel, int64_t tap) const {
    return offset_.data() + channel * static_cast<int64_t>(walk_.taps.size()) + tap;
  }
  // A vector may be read behind the end of a run.
  bool Overread() const { return !in_place_; }
  const Walk& walk() const { return walk_; }
  int64_t Rows() const { return walk_.out[0] * walk_.out[1]; }
  int64_t Positions() const { return Rows() * walk_.out[2]; }

 private:
  // From the offsets of one channel's taps.
  void FillOffsets(const std::vector<int64_t>& of_tap);

  const Walk& walk_;
  bool in_place_ = false;
  std::array<int64_t, 3> low_{}, size_{};  // first coordinate held and how many, by dimension
  int64_t phase_ = 0;                      // floats of one residue of the width step in a row
  int64_t row_ = 0, plane_ = 0, channel_stride_ = 0, image_stride_ = 0, chunk_ = 0;
  std::vector<int64_t> offset_;  // of all channels and taps
  gemm::Scratch scratch_;
  const float* base_ = nullptr;
};

// Columns are positions (image, d, h, w), rows of the product are (channel, tap): the B of forward and backward data.
class PositionColumns final : public gemm::PanelSource {
 public:
  PositionColumns(const Window& window, int64_t first_channel) : window_(window), first_channel_(first_channel) {}
  void Pack(int64_t i0, int count, int width, int64_t k0, int64_t k, float* dst) const override;

 private:
  const Window& window_;
  int64_t first_channel_;
};

// Columns are (channel, tap), terms are positions: the B of backward weight.
class TapColumns final : public gemm::PanelSource {
 public:
  TapColumns(const Window& window, int64_t first_channel) : window_(window), first_channel_(first_channel) {}
  void Pack(int64_t i0, int count, int width, int64_t k0, int64_t k, float* dst) const override;

 private:
  const Window& window_;
  int64_t first_channel_;
};

gemm::Element ElementOf(DType t);

}  // namespace npu::conv
