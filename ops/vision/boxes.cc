// Regions of images: averages over them, and the choice among boxes that overlap.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"
#include "ops/vision/boxes.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)
using abi::ROIAlign, abi::ROIAlignBackward;

namespace {

struct Grid {
  int64_t height, width, pooled_height, pooled_width, samples;
  float scale;
};

// Calls f(position in the plane, weight) for the four pixels around a point; nothing outside of the image.
template <class F>
void Around(const Grid& g, float y, float x, F&& f) {
  const auto h = static_cast<float>(g.height), w = static_cast<float>(g.width);
  if (g.height < 1 || g.width < 1 || !(y >= -1 && y <= h && x >= -1 && x <= w)) return;
  y = std::max(y, 0.0f), x = std::max(x, 0.0f);
  auto y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x);
  int64_t y1 = y0 + 1, x1 = x0 + 1;
  if (y0 >= g.height - 1) y0 = y1 = g.height - 1, y = static_cast<float>(y0);
  if (x0 >= g.width - 1) x0 = x1 = g.width - 1, x = static_cast<float>(x0);
  const float fy = y - static_cast<float>(y0), fx = x - static_cast<float>(x0);
  f(y0 * g.width + x0, (1 - fy) * (1 - fx));
  f(y0 * g.width + x1, (1 - fy) * fx);
  f(y1 * g.width + x0, fy * (1 - fx));
  f(y1 * g.width + x1, fy * fx);
}

// The points of one axis of a bin that can lie in an image of `size`: a region may be as large as a float, most of it outside.
struct Points {
  double count;  // of the whole bin
  int64_t first = 0, last = -1;
  Points(float start, float bin, int64_t samples, int64_t size)
      : count(samples > 0 ? static_cast<double>(samples) : std::ceil(static_cast<double>(bin))) {
    const double step = static_cast<double>(bin) / count;
    const double low = std::floor((-1.0 - static_cast<double>(start)) / step) - 1;
    const double high = std::ceil((static_cast<double>(size) - static_cast<double>(start)) / step) + 1;
    const double from = std::max(low, 0.0), to = std::min(high, count - 1);
    if (!(from <= to) || !(to < 0x1p62)) return;  // none, or numbers that are not finite
    first = static_cast<int64_t>(from), last = static_cast<int64_t>(to);
  }
};

// All sample points of one bin of a region [image, x1, y1, x2, y2], with their weight.
template <class F>
void Bin(const Grid& g, const float* roi, int64_t py, int64_t px, F&& f) {
  const float x1 = roi[1] * g.scale, y1 = roi[2] * g.scale;
  const float width = std::max(roi[3] * g.scale - x1, 1.0f), height = std::max(roi[4] * g.scale - y1, 1.0f);
  const float bin_h = height / static_cast<float>(g.pooled_height), bin_w = width / static_cast<float>(g.pooled_width);
  const float top = y1 + static_cast<float>(py) * bin_h, left = x1 + static_cast<float>(px) * bin_w;
  const Points ys(top, bin_h, g.samples, g.height), xs(left, bin_w, g.samples, g.width);
  const auto ny = static_cast<float>(ys.count), nx = static_cast<float>(xs.count);
  const float share = 1.0f / (ny * nx);
  for (int64_t iy = ys.first; iy <= ys.last; ++iy) {
    const float y = top + (static_cast<float>(iy) + 0.5f) * bin_h / ny;
    for (int64_t ix = xs.first; ix <= xs.last; ++ix) {
      const float x = left + (static_cast<float>(ix) + 0.5f) * bin_w / nx;
      Around(g, y, x, [&](int64_t at, float weight) { f(at, weight * share); });
    }
  }
}

Status WantRegions(const Planning& p, const Tensor& rois, int64_t mode, int64_t height, int64_t width) {
  if (rois.rank != 2 || rois.shape[1] != 5)
    return p.Refuse("rois has shape {}.", ShapeText(rois.Shape())).Remedy("A region is image, x1, y1, x2, y2.");
  if (height < 1 || width < 1)
    return p.Refuse("the result has {} by {} bins.", height, width).Remedy("Both are at least 1.");
  if (mode != 0) return NotYet(p.op.name, fmt::format("roi_end_mode {} is not computed; 0 is", mode));
  return {};
}

Status BadImage(const Call& c, int64_t i, float image, int64_t images) {
  return Error(Code::kTaskException, "{}: rois[{}] names image {}, but there are {}.", c.op.name, i, image, images)
      .Remedy("Images are counted from 0.");
}

}  // namespace

NPU_OP(ROIAlign) =
    Op<ROIAlign>()
        .Rules(FloatTensors(ROIAlign::self, ROIAlign::rois, ROIAlign::result), RankIs(ROIAlign::self, 4),
               AnyShape(ROIAlign::result))
        .Uses(ROIAlign::spatial_scale_value, ROIAlign::pooled_height, ROIAlign::pooled_width, ROIAlign::sample_num,
              ROIAlign::roi_end_mode)
        .Tolerance("accumulated")
        .Like("roi_align(self, rois)")
        .Prepares([](Planning& p) -> Status {
          using A = ROIAlign;
          NPU_TRY(WantRegions(p, p.args[A::rois], p.args[A::roi_end_mode], p.args[A::pooled_height],
                              p.args[A::pooled_width]));
          return WantShape(
              p, A::result,
              {4,
               {p.args[A::rois].shape[0], p.args[A::self].shape[1], p.args[A::pooled_height], p.args[A::pooled_width]}},
              "there are the bins of each region and channel");
        })
        .Does([](const Call& c) -> Status {
          using A = ROIAlign;
          const Tensor& self = c.args[A::self];
          const Values<float> x(self, c.parallel), rois(c.args[A::rois], c.parallel);
          Results<float> out(c.args[A::result], c.parallel);
          const int64_t images = self.shape[0], channels = self.shape[1], plane = self.shape[2] * self.shape[3];
          const Grid g{
              self.shape[2],           self.shape[3],         c.args[A::pooled_height],
              c.args[A::pooled_width], c.args[A::sample_num], static_cast<float>(c.args[A::spatial_scale_value])};
          for (int64_t r = 0; r < rois.size() / 5; ++r)
            if (!(rois[r * 5] >= 0 && rois[r * 5] < static_cast<float>(images)))
              return BadImage(c, r, rois[r * 5], images);
          const int64_t bins = g.pooled_height * g.pooled_width;
          c.parallel.For(rois.size() / 5 * channels, Grain(bins * 16), [&](int64_t begin, int64_t end) {
            for (int64_t rc = begin; rc < end; ++rc) {
              const float* roi = rois.data() + rc / channels * 5;
              const float* from = x.data() + (static_cast<int64_t>(roi[0]) * channels + rc % channels) * plane;
              for (int64_t b = 0; b < bins; ++b) {
                double sum = 0;
                Bin(g, roi, b / g.pooled_width, b % g.pooled_width,
                    [&](int64_t at, float w) { sum += static_cast<double>(w * from[at]); });
                out[rc * bins + b] = static_cast<float>(sum);
              }
            }
          });
          return {};
        });
NPU_OP(ROIAlignBackward) =
    Op<ROIAlignBackward>()
        .Rules(FloatTensors(ROIAlignBackward::self, ROIAlignBackward::rois, ROIAlignBackward::result),
               RankIs(ROIAlignBackward::self, 4), AnyShape(ROIAlignBackward::result))
        .Uses(ROIAlignBackward::xdiff_shape, ROIAlignBackward::pooled_width, ROIAlignBackward::pooled_height,
              ROIAlignBackward::spatial_scale_value, ROIAlignBackward::sample_num, ROIAlignBackward::roi_end_mode_value)
        .Tolerance("accumulated")
        .Like("roi_align_backward(self, rois)")
        .Prepares([](Planning& p) -> Status {
          using A = ROIAlignBackward;
          const auto shape = p.args[A::xdiff_shape];
          NPU_TRY(WantRegions(p, p.args[A::rois], p.args[A::roi_end_mode_value], p.args[A::pooled_height],
                              p.args[A::pooled_width]));
          if (shape.size() != 4)
            return p.Refuse("xdiff_shape has {} sizes.", shape.size()).Remedy("It is the shape of the images.");
          NPU_TRY(WantShape(
              p, A::self, {4, {p.args[A::rois].shape[0], shape[1], p.args[A::pooled_height], p.args[A::pooled_width]}},
              "it is the gradient of the bins"));
          return WantShape(p, A::result, {4, {shape[0], shape[1], shape[2], shape[3]}},
                           "it is the gradient of the images");
        })
        .Does([](const Call& c) -> Status {
          using A = ROIAlignBackward;
          const Tensor& to = c.args[A::result];
          const Values<float> grad(c.args[A::self], c.parallel), rois(c.args[A::rois], c.parallel);
          Results<float> out(to, c.parallel);
          const int64_t images = to.shape[0], channels = to.shape[1], plane = to.shape[2] * to.shape[3],
                        count = rois.size() / 5;
          const Grid g{to.shape[2],
                       to.shape[3],
                       c.args[A::pooled_height],
                       c.args[A::pooled_width],
                       c.args[A::sample_num],
                       static_cast<float>(c.args[A::spatial_scale_value])};
          for (int64_t r = 0; r < count; ++r)
            if (!(rois[r * 5] >= 0 && rois[r * 5] < static_cast<float>(images)))
              return BadImage(c, r, rois[r * 5], images);
          const int64_t bins = g.pooled_height * g.pooled_width;
          // A plane belongs to one worker, which adds the regions in their order.
          c.parallel.For(images * channels, Grain(count * bins * 16), [&](int64_t begin, int64_t end) {
            std::vector<double> sum(static_cast<size_t>(plane));
            for (int64_t ic = begin; ic < end; ++ic) {
              std::fill(sum.begin(), sum.end(), 0.0);
              for (int64_t r = 0; r < count; ++r) {
                const float* roi = rois.data() + r * 5;
                if (static_cast<int64_t>(roi[0]) != ic / channels) continue;
                const float* from = grad.data() + (r * channels + ic % channels) * bins;
                for (int64_t b = 0; b < bins; ++b)
                  Bin(g, roi, b / g.pooled_width, b % g.pooled_width,
                      [&](int64_t at, float w) { sum[static_cast<size_t>(at)] += static_cast<double>(w * from[b]); });
              }
              for (int64_t i = 0; i < plane; ++i) out[ic * plane + i] = static_cast<float>(sum[static_cast<size_t>(i)]);
            }
          });
          return {};
        });

namespace {

// Boxes are two opposite corners, in any order.
float Overlap(const float* a, const float* b) {
  const auto low = [](const float* box, int d) { return std::min(box[d], box[d + 2]); };
  const auto high = [](const float* box, int d) { return std::max(box[d], box[d + 2]); };
  float both = 1, area_a = 1, area_b = 1;
  for (int d = 0; d < 2; ++d) {
    both *= std::max(0.0f, std::min(high(a, d), high(b, d)) - std::max(low(a, d), low(b, d)));
    area_a *= high(a, d) - low(a, d);
    area_b *= high(b, d) - low(b, d);
  }
  return area_a <= 0 || area_b <= 0 ? 0.0f : both / (area_a + area_b - both);
}

double NumberOf(const Call& c, MaybeIn tensor, RealIn number) {
  const Tensor* t = c.args[tensor];
  return t == nullptr || t->Numel() == 0 ? c.args[number] : simd::LoadDouble(t->data, t->dtype);
}

}  // namespace

// The boxes with the highest scores that overlap none chosen before by more than the threshold.
constinit const OpDef op_named_NonMaxSuppression =
    Op<NonMaxSuppression>()
        .Rules(FloatTensors(NonMaxSuppression::boxes, NonMaxSuppression::scores, NonMaxSuppression::iouThreshold,
                            NonMaxSuppression::scoreThreshold),
               RankIs(NonMaxSuppression::boxes, 2), RankIs(NonMaxSuppression::scores, 1),
               AnyShapes(NonMaxSuppression::selected, NonMaxSuppression::valid),
               DtypeIn(NonMaxSuppression::selected, kIndexTypes), DtypeIn(NonMaxSuppression::valid, kIndexTypes))
        .Uses(NonMaxSuppression::maxOutputSize, NonMaxSuppression::maxOutputSizeNumber, NonMaxSuppression::iouNumber,
              NonMaxSuppression::scoreNumber)
        .Tolerance("exact")
        .Like("non_max_suppression(boxes, scores)")
        .Prepares([](Planning& p) -> Status {
          using A = NonMaxSuppression;
          const Tensor& boxes = p.args[A::boxes];
          if (boxes.shape[1] != 4 || p.args[A::scores].shape[0] != boxes.shape[0] || p.args[A::valid].Numel() != 1)
            return p
                .Refuse("boxes has shape {}, scores {} and valid_outputs {}.", ShapeText(boxes.Shape()),
                        ShapeText(p.args[A::scores].Shape()), ShapeText(p.args[A::valid].Shape()))
                .Remedy("Boxes are two corners each, with one score; valid_outputs is one number.");
          return {};
        })
        .Does([](const Call& c) -> Status {
          using A = NonMaxSuppression;
          const Values<float> boxes(c.args[A::boxes], c.parallel), scores(c.args[A::scores], c.parallel);
          const double iou = NumberOf(c, A::iouThreshold, A::iouNumber),
                       least = NumberOf(c, A::scoreThreshold, A::scoreNumber);
          const auto most = static_cast<int64_t>(NumberOf(c, A::maxOutputSize, A::maxOutputSizeNumber));
          Results<int64_t> selected(c.args[A::selected], c.parallel), valid(c.args[A::valid], c.parallel);
          std::vector<int64_t> order(static_cast<size_t>(scores.size()));
          std::iota(order.begin(), order.end(), int64_t{0});
          std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
          std::vector<int64_t> chosen;
          for (const int64_t i : order) {
            if (static_cast<int64_t>(chosen.size()) >= std::min(most, selected.size())) break;
            if (!(static_cast<double>(scores[i]) > least)) continue;
            const bool free = std::none_of(chosen.begin(), chosen.end(), [&](int64_t k) {
              return static_cast<double>(Overlap(boxes.data() + i * 4, boxes.data() + k * 4)) > iou;
            });
            if (free) chosen.push_back(i);
          }
          for (int64_t i = 0; i < selected.size(); ++i)
            selected[i] = i < static_cast<int64_t>(chosen.size()) ? chosen[static_cast<size_t>(i)] : 0;
          valid[0] = static_cast<int64_t>(chosen.size());
          return {};
        });

}  // namespace npu::ops
