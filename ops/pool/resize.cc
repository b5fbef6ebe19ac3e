// Resizing in one, two and three dimensions: nearest, linear, cubic and antialiased. Each dimension is a short list of
// taps for each position; dimensions are done one after the other, and the gradient runs the same taps backwards. Plain
// loops; nearest and bilinear images have kernels of their own (upsample.cc).
#include <algorithm>
#include <cmath>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

enum class Filter : uint8_t { kNearest, kNearestExact, kLinear, kCubic, kLinearSmooth, kCubicSmooth };

// Slots of the family. Scales stand last, as many as dimensions.
constexpr size_t kX = 0, kOutputSize = 1, kInputSize = 2, kY = 3, kCorners = 4, kScales = 5;
constexpr int64_t kBackward = 16;  // OpDef::imm: filter, this, and dimensions << 8

size_t U(int64_t i) { return static_cast<size_t>(i); }
int DimsOfOp(const OpDef& op) { return static_cast<int>(op.imm >> 8); }

// out[p] = sum of weight * in[index] over `count` taps.
template <class T>
struct Taps {
  int64_t in = 0, out = 0, count = 0;
  std::vector<int64_t> index;
  std::vector<T> weight;
  void Add(int64_t i, T w) {
    index.push_back(std::clamp<int64_t>(i, 0, in - 1));
    weight.push_back(w);
  }
};

template <class T>
T Cubic(T x, T a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : T{0};
}

// Antialiased: the filter is as wide as a step of the output.
template <class T>
void AddSmooth(Taps<T>* t, T scale, bool cubic) {
  const T radius = (cubic ? T{2} : T{1}) * std::max(scale, T{1}), shrink = scale >= 1 ? 1 / scale : T{1};
  t->count = static_cast<int64_t>(std::ceil(radius)) * 2 + 1;
  for (int64_t p = 0; p < t->out; ++p) {
    const T center = scale * (static_cast<T>(p) + T(0.5));
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - radius + T(0.5)), 0);
    const int64_t last = std::min<int64_t>(static_cast<int64_t>(center + radius + T(0.5)), t->in);
    T sum = 0;
    for (int64_t k = 0; k < t->count; ++k) {
      const T x = (static_cast<T>(k + first) - center + T(0.5)) * shrink;
      const T w = first + k >= last ? T{0} : cubic ? Cubic(x, T(-0.5)) : std::max<T>(0, 1 - std::abs(x));
      t->Add(first + k, w);
      sum += w;
    }
    if (sum == 0) continue;
    for (int64_t k = 0; k < t->count; ++k) t->weight[U(p * t->count + k)] /= sum;
  }
}

template <class T>
Taps<T> TapsOf(Filter filter, int64_t in, int64_t out, bool corners, double factor) {
  Taps<T> t{in, out, 1, {}, {}};
  if (filter == Filter::kNearest || filter == Filter::kNearestExact) {
    // In float whatever the type, since a position near an integer falls on the side that torch's float falls.
    const float scale = factor > 0 ? static_cast<float>(1 / factor) : static_cast<float>(in) / static_cast<float>(out);
    const float shift = filter == Filter::kNearestExact ? 0.5F : 0.0F;
    for (int64_t p = 0; p < out; ++p) {
      auto at = static_cast<int64_t>(std::floor((static_cast<float>(p) + shift) * scale));
      if (filter == Filter::kNearest && in == out) at = p;  // torch settles these sizes before it looks at a scale
      if (filter == Filter::kNearest && 2 * in == out) at = p / 2;
      t.Add(at, 1);
    }
    return t;
  }
  T scale;
  if (corners)
    scale = out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T{0};
  else
    scale = factor > 0 ? static_cast<T>(1 / factor) : static_cast<T>(in) / static_cast<T>(out);
  if (filter == Filter::kLinearSmooth || filter == Filter::kCubicSmooth) {
    AddSmooth(&t, scale, filter == Filter::kCubicSmooth);
    return t;
  }
  t.count = filter == Filter::kLinear ? 2 : 4;
  for (int64_t p = 0; p < out; ++p) {
    T at = corners ? scale * static_cast<T>(p) : scale * (static_cast<T>(p) + T(0.5)) - T(0.5);
    if (filter == Filter::kLinear) {
      at = std::max<T>(at, 0);
      const auto i = std::min<int64_t>(static_cast<int64_t>(at), in - 1);
      const T part = std::min<T>(std::max<T>(at - static_cast<T>(i), 0), 1);
      if (in == out) {
        t.Add(p, 1);
        t.Add(p, 0);
        continue;
      }
      t.Add(i, 1 - part);
      t.Add(i + 1, part);
    } else {
      const T floor = std::floor(at), part = at - floor;
      for (int64_t k = -1; k < 3; ++k)
        t.Add(static_cast<int64_t>(floor) + k, Cubic(part - static_cast<T>(k), T(-0.75)));
    }
  }
  return t;
}

// to[o][p][i] = sum over taps of from[o][index][i], or the reverse: from has t.out positions and `to` t.in.
template <class T>
void Apply(const Taps<T>& t, bool backward, int64_t outer, int64_t inner, const T* from, T* to, Parallel& parallel) {
  const int64_t read = (backward ? t.out : t.in) * inner, written = (backward ? t.in : t.out) * inner;
  parallel.For(outer, Grain(written), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const T* x = from + o * read;
      T* y = to + o * written;
      if (backward || t.count > 1) std::fill(y, y + written, T{0});
      for (int64_t p = 0; p < t.out; ++p) {
        for (int64_t k = 0; k < t.count; ++k) {
          const T w = t.weight[U(p * t.count + k)];
          const int64_t at = t.index[U(p * t.count + k)];
          const T* source = x + (backward ? p : at) * inner;
          T* target = y + (backward ? at : p) * inner;
          if (!backward && t.count == 1) {
            std::copy(source, source + inner, target);
          } else {
            for (int64_t i = 0; i < inner; ++i) target[i] += w * source[i];
          }
        }
      }
    }
  });
}

Status CheckResize(Planning& p) {
  const OpDef& op = p.op;
  const int dims = DimsOfOp(op);
  const bool backward = (op.imm & kBackward) != 0;
  const TensorToken kx{{op.slots[kX]}}, ky{{op.slots[kY]}};
  const Tensor &x = *p.args.Maybe(kx), &y = *p.args.Maybe(ky);
  const auto size = p.args[IntsIn{{op.slots[kOutputSize]}}];
  for (const auto& [t, name] : {std::pair{&x, kx}, {&y, ky}}) {
    if (t->rank != dims + 2) {
      return p.Refuse("{} has {} dimensions.", p.ParamName(name), t->rank)
          .Remedy("Pass batch, channels and {} dimensions.", dims);
    }
  }
  const Tensor& image = backward ? y : x;
  bool fits = size.size() == U(dims);
  for (int d = 0; d < dims; ++d) fits = fits && size[U(d)] > 0 && image.shape[U(d + 2)] > 0;
  if (!fits) {
    return p.Refuse("outputSize is {} for an image of shape {}.", ShapeText(size), ShapeText(image.Shape()))
        .Remedy("Give {} sizes; sizes of both images are at least 1.", dims);
  }
  if (backward) {
    Dims given;
    for (int64_t n : p.args[IntsIn{{op.slots[kInputSize]}}].first(
             std::min<size_t>(kMaxRank, p.args[IntsIn{{op.slots[kInputSize]}}].size())))
      given.Push(n);
    NPU_TRY(WantShape(p, ky, given, "inputSize says so"));
  }
  Dims want = DimsOf(image);
  for (int d = 0; d < dims; ++d) want.size[U(d + 2)] = size[U(d)];
  return WantShape(p, backward ? kx : ky, want, "outputSize says so");
}

Status RunResize(const Call& c) {
  const OpDef& op = c.op;
  const int dims = DimsOfOp(op);
  const bool backward = (op.imm & kBackward) != 0,
             corners = op.slots[kCorners] != 0xff && c.args[BoolIn{{op.slots[kCorners]}}];
  const Tensor &x = *c.args.Maybe(TensorToken{{op.slots[kX]}}), &y = *c.args.Maybe(TensorToken{{op.slots[kY]}});
  return WithFloat(x.dtype, [&]<class T>() -> Status {
    const Values<T> from(x, c.parallel);
    Results<T> to(y, c.parallel);
    Dims now = DimsOf(x);
    std::vector<T> buffers[2];
    const T* source = from.data();
    for (int step = 0; step < dims; ++step) {
      const int d = (backward ? step : dims - 1 - step) + 2;
      const uint8_t scale = op.slots[kScales + U(d - 2)];
      const Tensor &big = backward ? y : x, &small = backward ? x : y;
      const auto taps = TapsOf<T>(static_cast<Filter>(op.imm & 15), big.shape[U(d)], small.shape[U(d)], corners,
                                  scale != 0xff ? c.args[RealIn{{scale}}] : 0.0);
      int64_t outer = 1, inner = 1;
      for (int k = 0; k < now.rank; ++k) (k < d ? outer : inner) *= k == d ? 1 : now.size[U(k)];
      now.size[U(d)] = y.shape[U(d)];
      T* target = to.data();
      if (step + 1 < dims) {
        buffers[step & 1].resize(U(now.Numel()));
        target = buffers[step & 1].data();
      }
      Apply(taps, backward, outer, inner, source, target, c.parallel);
      source = target;
    }
    return {};
  });
}

template <class... T>
consteval Builder Resize(Builder b, int dims, Filter filter, TensorIn x, IntsIn size, TensorOut y,
                         std::string_view like, T... scales) {
  b = b.Rules(DtypeIn(x, filter <= Filter::kNearestExact ? kFloats | TypeSet{DType::u8} : kFloats), AnyShape(y),
              SameDtype(x, y))
          .Slot(kX, x)
          .Slot(kOutputSize, size)
          .Slot(kY, y)
          .Imm(static_cast<int64_t>(filter) | int64_t{dims} << 8)
          .Tolerance(filter <= Filter::kNearestExact ? "exact" : "accumulated")
          .Like(like)
          .Prepares(CheckResize)
          .Does(RunResize);
  size_t i = kScales;
  ((b = b.Slot(i++, scales)), ...);
  return b;
}

template <class... T>
consteval Builder ResizeBackward(Builder b, int dims, Filter filter, TensorIn dy, IntsIn size, IntsIn input_size,
                                 TensorOut dx, std::string_view like, T... scales) {
  b = b.Rules(DtypeIn(dy, kFloats), AnyShape(dx), SameDtype(dy, dx))
          .Slot(kX, dy)
          .Slot(kOutputSize, size)
          .Slot(kInputSize, input_size)
          .Slot(kY, dx)
          .Imm(static_cast<int64_t>(filter) | kBackward | int64_t{dims} << 8)
          .Tolerance("accumulated")
          .Like(like)
          .Prepares(CheckResize)
          .Does(RunResize);
  size_t i = kScales;
  ((b = b.Slot(i++, scales)), ...);
  return b;
}

}  // namespace

using abi::UpsampleNearest1d, abi::UpsampleNearest1dV2, abi::UpsampleNearestExact1d, abi::UpsampleLinear1d;
NPU_OP(UpsampleNearest1d) = Resize(Op<UpsampleNearest1d>(), 1, Filter::kNearest, UpsampleNearest1d::self,
                                   UpsampleNearest1d::outputSize, UpsampleNearest1d::out,
                                   "torch.ops.aten.upsample_nearest1d(self, outputSize)");
NPU_OP(UpsampleNearest1dV2) = Resize(Op<UpsampleNearest1dV2>(), 1, Filter::kNearest, UpsampleNearest1dV2::self,
                                     UpsampleNearest1dV2::outputSize, UpsampleNearest1dV2::out,
                                     "torch.ops.aten.upsample_nearest1d(self, outputSize, scaleL or None)",
                                     UpsampleNearest1dV2::scaleL);
NPU_OP(UpsampleNearestExact1d) = Resize(Op<UpsampleNearestExact1d>(), 1, Filter::kNearestExact,
                                        UpsampleNearestExact1d::self, UpsampleNearestExact1d::outputSize,
                                        UpsampleNearestExact1d::out,
                                        "torch.ops.aten._upsample_nearest_exact1d(self, outputSize, scales or None)",
                                        UpsampleNearestExact1d::scales);
NPU_OP(UpsampleLinear1d) = Resize(Op<UpsampleLinear1d>().Slot(kCorners, UpsampleLinear1d::alignCorners), 1,
                                  Filter::kLinear, UpsampleLinear1d::self, UpsampleLinear1d::outputSize,
                                  UpsampleLinear1d::out,
                                  "torch.ops.aten.upsample_linear1d(self, outputSize, alignCorners, scale or None)",
                                  UpsampleLinear1d::scale);

using abi::UpsampleNearest1dBackward, abi::UpsampleNearestExact1dBackward, abi::UpsampleLinear1dBackward;
NPU_OP(UpsampleNearest1dBackward) = ResizeBackward(
    Op<UpsampleNearest1dBackward>(), 1, Filter::kNearest, UpsampleNearest1dBackward::gradOut,
    UpsampleNearest1dBackward::outputSize, UpsampleNearest1dBackward::inputSize, UpsampleNearest1dBackward::out,
    "torch.ops.aten.upsample_nearest1d_backward(gradOut, outputSize, inputSize, scales or None)",
    UpsampleNearest1dBackward::scales);
NPU_OP(UpsampleNearestExact1dBackward) = ResizeBackward(
    Op<UpsampleNearestExact1dBackward>(), 1, Filter::kNearestExact, UpsampleNearestExact1dBackward::gradOutput,
    UpsampleNearestExact1dBackward::outputSize, UpsampleNearestExact1dBackward::inputSize,
    UpsampleNearestExact1dBackward::out,
    "torch.ops.aten._upsample_nearest_exact1d_backward(gradOutput, outputSize, inputSize, scales or None)",
    UpsampleNearestExact1dBackward::scales);
NPU_OP(UpsampleLinear1dBackward) = ResizeBackward(
    Op<UpsampleLinear1dBackward>().Slot(kCorners, UpsampleLinear1dBackward::alignCorners), 1, Filter::kLinear,
    UpsampleLinear1dBackward::gradOut, UpsampleLinear1dBackward::outputSize, UpsampleLinear1dBackward::inputSize,
    UpsampleLinear1dBackward::out,
    "torch.ops.aten.upsample_linear1d_backward(gradOut, outputSize, inputSize, alignCorners, scales or None)",
    UpsampleLinear1dBackward::scales);

using abi::UpsampleNearest3d, abi::UpsampleNearestExact3d, abi::UpsampleTrilinear3d;
NPU_OP(UpsampleNearest3d) =
    Resize(Op<UpsampleNearest3d>(), 3, Filter::kNearest, UpsampleNearest3d::self, UpsampleNearest3d::outputSize,
           UpsampleNearest3d::out,
           "torch.ops.aten.upsample_nearest3d(self, outputSize, scalesD or None, scalesH or None, scalesW or None)",
           UpsampleNearest3d::scalesD, UpsampleNearest3d::scalesH, UpsampleNearest3d::scalesW);
NPU_OP(UpsampleNearestExact3d) = Resize(
    Op<UpsampleNearestExact3d>(), 3, Filter::kNearestExact, UpsampleNearestExact3d::self,
    UpsampleNearestExact3d::outputSize, UpsampleNearestExact3d::out,
    "torch.ops.aten._upsample_nearest_exact3d(self, outputSize, scalesD or None, scalesH or None, scalesW or None)",
    UpsampleNearestExact3d::scalesD, UpsampleNearestExact3d::scalesH, UpsampleNearestExact3d::scalesW);
NPU_OP(UpsampleTrilinear3d) = Resize(Op<UpsampleTrilinear3d>().Slot(kCorners, UpsampleTrilinear3d::alignCorners), 3,
                                     Filter::kLinear, UpsampleTrilinear3d::self, UpsampleTrilinear3d::outputSize,
                                     UpsampleTrilinear3d::out,
                                     "torch.ops.aten.upsample_trilinear3d(self, outputSize, alignCorners, scalesD or "
                                     "None, scalesH or None, scalesW or None)",
                                     UpsampleTrilinear3d::scalesD, UpsampleTrilinear3d::scalesH,
                                     UpsampleTrilinear3d::scalesW);

using abi::UpsampleNearest3dBackward, abi::UpsampleNearestExact3dBackward, abi::UpsampleTrilinear3dBackward;
NPU_OP(UpsampleNearest3dBackward) = ResizeBackward(
    Op<UpsampleNearest3dBackward>(), 3, Filter::kNearest, UpsampleNearest3dBackward::gradOut,
    UpsampleNearest3dBackward::outputSize, UpsampleNearest3dBackward::inputSize, UpsampleNearest3dBackward::gradInput,
    "torch.ops.aten.upsample_nearest3d_backward(gradOut, outputSize, inputSize, scalesD or None, scalesH or None, "
    "scalesW or None)",
    UpsampleNearest3dBackward::scalesD, UpsampleNearest3dBackward::scalesH, UpsampleNearest3dBackward::scalesW);
NPU_OP(UpsampleNearestExact3dBackward) =
    ResizeBackward(Op<UpsampleNearestExact3dBackward>(), 3, Filter::kNearestExact,
                   UpsampleNearestExact3dBackward::gradOut, UpsampleNearestExact3dBackward::outputSize,
                   UpsampleNearestExact3dBackward::inputSize, UpsampleNearestExact3dBackward::gradInput,
                   "torch.ops.aten._upsample_nearest_exact3d_backward(gradOut, outputSize, inputSize, scalesD or None, "
                   "scalesH or None, scalesW or None)",
                   UpsampleNearestExact3dBackward::scalesD, UpsampleNearestExact3dBackward::scalesH,
                   UpsampleNearestExact3dBackward::scalesW);
NPU_OP(UpsampleTrilinear3dBackward) = ResizeBackward(
    Op<UpsampleTrilinear3dBackward>().Slot(kCorners, UpsampleTrilinear3dBackward::alignCorners), 3, Filter::kLinear,
    UpsampleTrilinear3dBackward::gradOut, UpsampleTrilinear3dBackward::outputSize,
    UpsampleTrilinear3dBackward::inputSize, UpsampleTrilinear3dBackward::gradInput,
    "torch.ops.aten.upsample_trilinear3d_backward(gradOut, outputSize, inputSize, alignCorners, scalesD or None, "
    "scalesH or None, scalesW or None)",
    UpsampleTrilinear3dBackward::scalesD, UpsampleTrilinear3dBackward::scalesH, UpsampleTrilinear3dBackward::scalesW);

using abi::UpsampleBicubic2d, abi::UpsampleBicubic2dAA, abi::UpsampleBilinear2dAA;
NPU_OP(UpsampleBicubic2d) =
    Resize(Op<UpsampleBicubic2d>().Slot(kCorners, UpsampleBicubic2d::alignCorners), 2, Filter::kCubic,
           UpsampleBicubic2d::self, UpsampleBicubic2d::outputSize, UpsampleBicubic2d::out,
           "torch.ops.aten.upsample_bicubic2d(self, outputSize, alignCorners, scalesH or None, scalesW or None)",
           UpsampleBicubic2d::scalesH, UpsampleBicubic2d::scalesW);
NPU_OP(UpsampleBicubic2dAA) =
    Resize(Op<UpsampleBicubic2dAA>().Slot(kCorners, UpsampleBicubic2dAA::alignCorners), 2, Filter::kCubicSmooth,
           UpsampleBicubic2dAA::x, UpsampleBicubic2dAA::outputSize, UpsampleBicubic2dAA::out,
           "torch.ops.aten._upsample_bicubic2d_aa(x, outputSize, alignCorners, scalesH or None, scalesW or None)",
           UpsampleBicubic2dAA::scalesH, UpsampleBicubic2dAA::scalesW);
NPU_OP(UpsampleBilinear2dAA) =
    Resize(Op<UpsampleBilinear2dAA>().Slot(kCorners, UpsampleBilinear2dAA::alignCorners), 2, Filter::kLinearSmooth,
           UpsampleBilinear2dAA::input, UpsampleBilinear2dAA::outputSize, UpsampleBilinear2dAA::out,
           "torch.ops.aten._upsample_bilinear2d_aa(input, outputSize, alignCorners, scalesH or None, scalesW or None)",
           UpsampleBilinear2dAA::scalesH, UpsampleBilinear2dAA::scalesW);

using abi::UpsampleBicubic2dBackward, abi::UpsampleBicubic2dAAGrad, abi::UpsampleBilinear2dAABackward;
NPU_OP(UpsampleBicubic2dBackward) =
    ResizeBackward(Op<UpsampleBicubic2dBackward>().Slot(kCorners, UpsampleBicubic2dBackward::alignCorners), 2,
                   Filter::kCubic, UpsampleBicubic2dBackward::gradOut, UpsampleBicubic2dBackward::outputSize,
                   UpsampleBicubic2dBackward::inputSize, UpsampleBicubic2dBackward::gradInput,
                   "torch.ops.aten.upsample_bicubic2d_backward(gradOut, outputSize, inputSize, alignCorners, scalesH "
                   "or None, scalesW or None)",
                   UpsampleBicubic2dBackward::scalesH, UpsampleBicubic2dBackward::scalesW);
NPU_OP(UpsampleBicubic2dAAGrad) =
    ResizeBackward(Op<UpsampleBicubic2dAAGrad>().Slot(kCorners, UpsampleBicubic2dAAGrad::alignCorners), 2,
                   Filter::kCubicSmooth, UpsampleBicubic2dAAGrad::gradOutput, UpsampleBicubic2dAAGrad::outputSize,
                   UpsampleBicubic2dAAGrad::inputSize, UpsampleBicubic2dAAGrad::out,
                   "torch.ops.aten._upsample_bicubic2d_aa_backward(gradOutput, outputSize, inputSize, alignCorners, "
                   "scalesH or None, scalesW or None)",
                   UpsampleBicubic2dAAGrad::scalesH, UpsampleBicubic2dAAGrad::scalesW);
NPU_OP(UpsampleBilinear2dAABackward) = ResizeBackward(
    Op<UpsampleBilinear2dAABackward>().Slot(kCorners, UpsampleBilinear2dAABackward::alignCorners), 2,
    Filter::kLinearSmooth, UpsampleBilinear2dAABackward::gradOutput, UpsampleBilinear2dAABackward::outputSize,
    UpsampleBilinear2dAABackward::inputSize, UpsampleBilinear2dAABackward::out,
    "torch.ops.aten._upsample_bilinear2d_aa_backward(gradOutput, outputSize, inputSize, alignCorners, scalesH or None, "
    "scalesW or None)",
    UpsampleBilinear2dAABackward::scalesH, UpsampleBilinear2dAABackward::scalesW);

}  // namespace npu::ops
