// Max and average pooling in three dimensions, adaptive pooling, and the way back from pooled values to their places.
// Plain loops over dense planes; sums are in the compute type and rounded once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

// What one position of the output sees of a dimension: begin, begin + step, … below end. `full` counts padding as well.
struct Reach {
  int64_t begin, end, full;
};

struct Windows {
  std::vector<Reach> dim[3];
  int64_t step[3] = {1, 1, 1}, in[3] = {1, 1, 1};

  int64_t Out(size_t d) const { return static_cast<int64_t>(dim[d].size()); }
  int64_t Plane() const { return in[0] * in[1] * in[2]; }
  int64_t OutPlane() const { return Out(0) * Out(1) * Out(2); }
};

struct Numbers {
  std::span<const int64_t> kernel, stride, padding, dilation;
  bool ceil_mode = false;
};

int64_t Pick(std::span<const int64_t> list, size_t d, int64_t missing) {
  return list.empty() ? missing : list.size() == 1 ? list[0] : list[d];
}

Status CheckVolume(const Planning& p, const Tensor& t, TensorToken name, int dims = 3) {
  if (t.rank != dims + 1 && t.rank != dims + 2) {
    return p.Refuse("{} has {} dimensions.", p.ParamName(name), t.rank)
        .Remedy("Pass {} dimensions behind channels, with or without a batch.", dims);
  }
  for (int d = t.rank - dims - 1; d < t.rank; ++d) {
    if (t.shape[U(d)] < 1) {
      return p.Refuse("{} has shape {}.", p.ParamName(name), ShapeText(t.Shape()))
          .Remedy("Only the batch may be empty.");
    }
  }
  return {};
}

// The windows of a pooling call; false with a text when the numbers make no sense.
Status MakeWindows(std::string_view op, const Tensor& x, const Numbers& n, Windows* w) {
  for (const auto* list : {&n.kernel, &n.stride, &n.padding, &n.dilation}) {
    if (list->size() > 3 || list->size() == 2)
      return Error(Code::kInvalidParam, "{}: kernel size, stride, padding and dilation have {}, {}, {} and {} values.",
                   op, n.kernel.size(), n.stride.size(), n.padding.size(), n.dilation.size())
          .Remedy("Give one value or three.");
  }
  for (size_t d = 0; d < 3; ++d) {
    const int64_t k = Pick(n.kernel, d, 0), s = Pick(n.stride, d, k), p = Pick(n.padding, d, 0),
                  dil = Pick(n.dilation, d, 1);
    const int64_t in = w->in[d] = x.shape[U(x.rank - 3) + d];
    const int64_t rest = in + 2 * p - dil * (k - 1) - 1;
    if (k < 1 || s < 1 || dil < 1 || p < 0 || 2 * p > k || (rest < 0 && (!n.ceil_mode || rest + s - 1 < 0))) {
      return Error(Code::kInvalidParam, "{}: kernel {}, stride {}, padding {}, dilation {} for a dimension of {}.", op,
                   k, s, p, dil, in)
          .Remedy(
              "Kernel, stride and dilation are at least 1, padding is at most half the kernel, which fits the padded "
              "dimension.");
    }
    int64_t out = (rest + (n.ceil_mode ? s - 1 : 0)) / s + 1;
    if (n.ceil_mode && (out - 1) * s >= in + p) --out;
    w->step[d] = dil;
    for (int64_t o = 0; o < out; ++o) {
      int64_t begin = o * s - p;
      const int64_t full = std::min(begin + k, in + p) - begin;
      const int64_t end = std::min(begin + (k - 1) * dil + 1, in);
      while (begin < 0) begin += dil;
      w->dim[d].push_back({begin, std::max(begin, end), full});
    }
  }
  return {};
}

Status MakeAdaptive(std::string_view op, const Tensor& x, std::span<const int64_t> size, Windows* w) {
  if (size.size() != 1 && size.size() != 3)
    return Error(Code::kInvalidParam, "{}: outputSize has {} values.", op, size.size()).Remedy("Give one or three.");
  for (size_t d = 0; d < 3; ++d) {
    const int64_t in = w->in[d] = x.shape[U(x.rank - 3) + d], out = Pick(size, d, 0);
    if (out < 1) return Error(Code::kInvalidParam, "{}: outputSize[{}] is {}.", op, d, out).Remedy("It is at least 1.");
    for (int64_t o = 0; o < out; ++o) {
      const int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
      w->dim[d].push_back({begin, end, end - begin});
    }
  }
  return {};
}

Status WantPooled(const Planning& p, const Tensor& x, const Windows& w, TensorToken y) {
  Dims want = DimsOf(x);
  for (size_t d = 0; d < 3; ++d) want.size[U(x.rank - 3) + d] = w.Out(d);
  return WantShape(p, y, want, "that is not the shape of the pooled input");
}

int64_t PlanesOf(const Tensor& t, int dims = 3) {
  int64_t n = 1;
  for (int d = 0; d < t.rank - dims; ++d) n *= t.shape[U(d)];
  return n;
}

// f(z, y, x reach, position of the output within its plane)
template <class F>
void EachWindow(const Windows& w, const F& f) {
  int64_t at = 0;
  for (const Reach& z : w.dim[0])
    for (const Reach& y : w.dim[1])
      for (const Reach& x : w.dim[2]) f(z, y, x, at++);
}
// f(position of the input within its plane)
template <class F>
void EachCell(const Windows& w, const Reach& z, const Reach& y, const Reach& x, const F& f) {
  for (int64_t i = z.begin; i < z.end; i += w.step[0])
    for (int64_t j = y.begin; j < y.end; j += w.step[1])
      for (int64_t k = x.begin; k < x.end; k += w.step[2]) f((i * w.in[1] + j) * w.in[2] + k);
}

struct Divisor {
  bool count_padding = true;
  int64_t given = 0;
  int64_t Of(const Reach& z, const Reach& y, const Reach& x) const {
    if (given != 0) return given;
    if (count_padding) return z.full * y.full * x.full;
    return (z.end - z.begin) * (y.end - y.begin) * (x.end - x.begin);
  }
};

Status Average(const Call& c, const Windows& w, const Divisor& divisor, const Tensor& x, const Tensor& y) {
  return WithFloat(x.dtype, [&]<class T>() -> Status {
    const Values<T> in(x, c.parallel);
    Results<T> out(y, c.parallel);
    c.parallel.For(PlanesOf(x), Grain(w.Plane()), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const T* from = in.data() + p * w.Plane();
        T* to = out.data() + p * w.OutPlane();
        EachWindow(w, [&](const Reach& z, const Reach& r, const Reach& q, int64_t at) {
          T sum = 0;
          bool any = false;
          EachCell(w, z, r, q, [&](int64_t i) { sum += from[i], any = true; });
          to[at] = any ? sum / static_cast<T>(divisor.Of(z, r, q)) : T{0};
        });
      }
    });
    return {};
  });
}

Status AverageBackward(const Call& c, const Windows& w, const Divisor& divisor, const Tensor& dy, const Tensor& dx) {
  return WithFloat(dx.dtype, [&]<class T>() -> Status {
    const Values<T> grad(dy, c.parallel);
    Results<T> out(dx, c.parallel);
    c.parallel.For(PlanesOf(dx), Grain(w.Plane()), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const T* from = grad.data() + p * w.OutPlane();
        T* to = out.data() + p * w.Plane();
        std::fill(to, to + w.Plane(), T{0});
        EachWindow(w, [&](const Reach& z, const Reach& r, const Reach& q, int64_t at) {
          const T part = from[at] / static_cast<T>(divisor.Of(z, r, q));
          EachCell(w, z, r, q, [&](int64_t i) { to[i] += part; });
        });
      }
    });
    return {};
  });
}

Status Largest(const Call& c, const Windows& w, const Tensor& x, const Tensor& y, const Tensor* indices) {
  return WithFloat(x.dtype, [&]<class T>() -> Status {
    const Values<T> in(x, c.parallel);
    Results<T> out(y, c.parallel);
    std::vector<int64_t> unwanted(indices == nullptr ? U(y.Numel()) : 0);
    std::optional<Results<int64_t>> wanted;
    if (indices != nullptr) wanted.emplace(*indices, c.parallel);
    int64_t* origin = wanted ? wanted->data() : unwanted.data();
    c.parallel.For(PlanesOf(x), Grain(w.Plane()), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const T* from = in.data() + p * w.Plane();
        EachWindow(w, [&](const Reach& z, const Reach& r, const Reach& q, int64_t at) {
          T best = -std::numeric_limits<T>::infinity();
          int64_t place = (z.begin * w.in[1] + r.begin) * w.in[2] + q.begin;
          EachCell(w, z, r, q, [&](int64_t i) {
            if (from[i] > best || std::isnan(from[i])) best = from[i], place = i;
          });
          out[p * w.OutPlane() + at] = best;
          origin[p * w.OutPlane() + at] = place;
        });
      }
    });
    return {};
  });
}

// to[plane][index] += or = from, where planes of from and index have `n` elements and planes of `to` have `size`.
Status Place(const Call& c, const Tensor& from, const Tensor& index, TensorToken index_name, const Tensor& to,
             int64_t planes, bool add) {
  return WithNumber(to.dtype, [&]<class T>() -> Status {
    const Values<T> values(from, c.parallel);
    const Values<int64_t> at(index, c.parallel);
    Results<T> out(to, c.parallel);
    const int64_t n = planes == 0 ? 0 : values.size() / planes, size = planes == 0 ? 0 : out.size() / planes;
    for (int64_t i = 0; i < at.size(); ++i) {
      if (at[i] < 0 || at[i] >= size) {
        return Error(Code::kTaskException, "{}: {}[{}] is {}, but a plane of the result has {} elements.", c.op.name,
                     c.op.params[index_name.index].name, i, at[i], size)
            .Remedy("Pass the indices that the pooling function gave.");
      }
    }
    c.parallel.For(planes, Grain(n + size), [&](int64_t begin, int64_t end) {
      std::fill(out.data() + begin * size, out.data() + end * size, T{0});
      for (int64_t p = begin; p < end; ++p) {
        for (int64_t i = p * n; i < (p + 1) * n; ++i) {
          T& target = out[p * size + at[i]];
          target = add ? target + values[i] : values[i];
        }
      }
    });
    return {};
  });
}

}  // namespace

using abi::AvgPool3d, abi::AvgPool3dBackward, abi::AdaptiveAvgPool3d, abi::AdaptiveAvgPool3dBackward;
template <class A>
Numbers AverageNumbers(const Args& a) {
  return {a[A::kernelSize], a[A::stride], a[A::padding], {}, a[A::ceilMode]};
}
NPU_OP(AvgPool3d) =
    Op<AvgPool3d>()
        .Rules(FloatTensors(AvgPool3d::self, AvgPool3d::out), SameDtype(AvgPool3d::self, AvgPool3d::out),
               AnyShape(AvgPool3d::out))
        .Uses(AvgPool3d::kernelSize, AvgPool3d::stride, AvgPool3d::padding, AvgPool3d::ceilMode,
              AvgPool3d::countIncludePad, AvgPool3d::divisorOverride)
        .Tolerance("accumulated")
        .Like(
            "torch.ops.aten.avg_pool3d(self, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride "
            "or None)")
        .Prepares([](Planning& p) -> Status {
          Windows w;
          NPU_TRY(CheckVolume(p, p.args[AvgPool3d::self], AvgPool3d::self));
          NPU_TRY(MakeWindows(p.op.name, p.args[AvgPool3d::self], AverageNumbers<AvgPool3d>(p.args), &w));
          return WantPooled(p, p.args[AvgPool3d::self], w, AvgPool3d::out);
        })
        .Does([](const Call& c) -> Status {
          Windows w;
          NPU_TRY(MakeWindows(c.op.name, c.args[AvgPool3d::self], AverageNumbers<AvgPool3d>(c.args), &w));
          return Average(c, w, {c.args[AvgPool3d::countIncludePad], c.args[AvgPool3d::divisorOverride]},
                         c.args[AvgPool3d::self], c.args[AvgPool3d::out]);
        });
NPU_OP(AvgPool3dBackward) =
    Op<AvgPool3dBackward>()
        .Rules(FloatTensors(AvgPool3dBackward::gradOutput, AvgPool3dBackward::self, AvgPool3dBackward::output),
               SameShape(AvgPool3dBackward::self, AvgPool3dBackward::output))
        .Uses(AvgPool3dBackward::kernelSize, AvgPool3dBackward::stride, AvgPool3dBackward::padding,
              AvgPool3dBackward::ceilMode, AvgPool3dBackward::countIncludePad, AvgPool3dBackward::divisorOverride)
        .Tolerance("accumulated")
        .Like(
            "torch.ops.aten.avg_pool3d_backward(gradOutput, self, kernelSize, stride, padding, ceilMode, "
            "countIncludePad, divisorOverride or None)")
        .Prepares([](Planning& p) -> Status {
          Windows w;
          NPU_TRY(CheckVolume(p, p.args[AvgPool3dBackward::self], AvgPool3dBackward::self));
          NPU_TRY(
              MakeWindows(p.op.name, p.args[AvgPool3dBackward::self], AverageNumbers<AvgPool3dBackward>(p.args), &w));
          return WantPooled(p, p.args[AvgPool3dBackward::self], w, AvgPool3dBackward::gradOutput);
        })
        .Does([](const Call& c) -> Status {
          Windows w;
          NPU_TRY(
              MakeWindows(c.op.name, c.args[AvgPool3dBackward::self], AverageNumbers<AvgPool3dBackward>(c.args), &w));
          return AverageBackward(
              c, w, {c.args[AvgPool3dBackward::countIncludePad], c.args[AvgPool3dBackward::divisorOverride]},
              c.args[AvgPool3dBackward::gradOutput], c.args[AvgPool3dBackward::output]);
        });
NPU_OP(AdaptiveAvgPool3d) =
    Op<AdaptiveAvgPool3d>()
        .Rules(FloatTensors(AdaptiveAvgPool3d::self, AdaptiveAvgPool3d::out),
               SameDtype(AdaptiveAvgPool3d::self, AdaptiveAvgPool3d::out), AnyShape(AdaptiveAvgPool3d::out))
        .Uses(AdaptiveAvgPool3d::outputSize)
        .Tolerance("accumulated")
        .Like("torch.ops.aten._adaptive_avg_pool3d(self, outputSize)")
        .Prepares([](Planning& p) -> Status {
          Windows w;
          NPU_TRY(CheckVolume(p, p.args[AdaptiveAvgPool3d::self], AdaptiveAvgPool3d::self));
          NPU_TRY(MakeAdaptive(p.op.name, p.args[AdaptiveAvgPool3d::self], p.args[AdaptiveAvgPool3d::outputSize], &w));
          return WantPooled(p, p.args[AdaptiveAvgPool3d::self], w, AdaptiveAvgPool3d::out);
        })
        .Does([](const Call& c) -> Status {
          Windows w;
          NPU_TRY(MakeAdaptive(c.op.name, c.args[AdaptiveAvgPool3d::self], c.args[AdaptiveAvgPool3d::outputSize], &w));
          return Average(c, w, {false}, c.args[AdaptiveAvgPool3d::self], c.args[AdaptiveAvgPool3d::out]);
        });
NPU_OP(AdaptiveAvgPool3dBackward) =
    Op<AdaptiveAvgPool3dBackward>()
        .Rules(FloatTensors(AdaptiveAvgPool3dBackward::gradOutput, AdaptiveAvgPool3dBackward::self,
                            AdaptiveAvgPool3dBackward::out),
               SameShape(AdaptiveAvgPool3dBackward::self, AdaptiveAvgPool3dBackward::out))
        .Tolerance("accumulated")
        .Like("torch.ops.aten._adaptive_avg_pool3d_backward(gradOutput, self)")
        .Prepares([](Planning& p) -> Status {
          Windows w;
          const Tensor& dy = p.args[AdaptiveAvgPool3dBackward::gradOutput];
          NPU_TRY(CheckVolume(p, p.args[AdaptiveAvgPool3dBackward::self], AdaptiveAvgPool3dBackward::self));
          NPU_TRY(CheckVolume(p, dy, AdaptiveAvgPool3dBackward::gradOutput));
          NPU_TRY(MakeAdaptive(p.op.name, p.args[AdaptiveAvgPool3dBackward::self], dy.Shape().last(3), &w));
          return WantPooled(p, p.args[AdaptiveAvgPool3dBackward::self], w, AdaptiveAvgPool3dBackward::gradOutput);
        })
        .Does([](const Call& c) -> Status {
          Windows w;
          const Tensor& dy = c.args[AdaptiveAvgPool3dBackward::gradOutput];
          NPU_TRY(MakeAdaptive(c.op.name, c.args[AdaptiveAvgPool3dBackward::self], dy.Shape().last(3), &w));
          return AverageBackward(c, w, {false}, dy, c.args[AdaptiveAvgPool3dBackward::out]);
        });

using abi::AdaptiveMaxPool3d, abi::AdaptiveMaxPool3dBackward, abi::MaxPool3dWithArgmax,
    abi::MaxPool3dWithArgmaxBackward;
NPU_OP(AdaptiveMaxPool3d) = Op<AdaptiveMaxPool3d>()
                                .Rules(FloatTensors(AdaptiveMaxPool3d::self, AdaptiveMaxPool3d::outputOut),
                                       SameDtype(AdaptiveMaxPool3d::self, AdaptiveMaxPool3d::outputOut),
                                       AnyShapes(AdaptiveMaxPool3d::outputOut, AdaptiveMaxPool3d::indicesOut),
                                       DtypeIn(AdaptiveMaxPool3d::indicesOut, kIndexTypes))
                                .Uses(AdaptiveMaxPool3d::outputSize)
                                .Tolerance("exact")
                                .Like("torch.ops.aten.adaptive_max_pool3d(self, outputSize)")
                                .Prepares([](Planning& p) -> Status {
                                  Windows w;
                                  const Tensor& x = p.args[AdaptiveMaxPool3d::self];
                                  NPU_TRY(CheckVolume(p, x, AdaptiveMaxPool3d::self));
                                  NPU_TRY(MakeAdaptive(p.op.name, x, p.args[AdaptiveMaxPool3d::outputSize], &w));
                                  NPU_TRY(WantPooled(p, x, w, AdaptiveMaxPool3d::outputOut));
                                  return WantPooled(p, x, w, AdaptiveMaxPool3d::indicesOut);
                                })
                                .Does([](const Call& c) -> Status {
                                  Windows w;
                                  NPU_TRY(MakeAdaptive(c.op.name, c.args[AdaptiveMaxPool3d::self],
                                                       c.args[AdaptiveMaxPool3d::outputSize], &w));
                                  return Largest(c, w, c.args[AdaptiveMaxPool3d::self],
                                                 c.args[AdaptiveMaxPool3d::outputOut],
                                                 c.args[AdaptiveMaxPool3d::indicesOut]);
                                });
NPU_OP(MaxPool3dWithArgmax) =
    Op<MaxPool3dWithArgmax>()
        .Rules(FloatTensors(MaxPool3dWithArgmax::self, MaxPool3dWithArgmax::out),
               SameDtype(MaxPool3dWithArgmax::self, MaxPool3dWithArgmax::out),
               AnyShapes(MaxPool3dWithArgmax::out, MaxPool3dWithArgmax::indices),
               DtypeIn(MaxPool3dWithArgmax::indices, kIndexTypes))
        .Uses(MaxPool3dWithArgmax::kernelSize, MaxPool3dWithArgmax::stride, MaxPool3dWithArgmax::padding,
              MaxPool3dWithArgmax::dilation, MaxPool3dWithArgmax::ceilMode)
        .Tolerance("exact")
        .Like("torch.ops.aten.max_pool3d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode)")
        .Prepares([](Planning& p) -> Status {
          using A = MaxPool3dWithArgmax;
          Windows w;
          const Args& a = p.args;
          NPU_TRY(CheckVolume(p, a[A::self], A::self));
          NPU_TRY(MakeWindows(p.op.name, a[A::self],
                              {a[A::kernelSize], a[A::stride], a[A::padding], a[A::dilation], a[A::ceilMode]}, &w));
          NPU_TRY(WantPooled(p, a[A::self], w, A::out));
          return WantPooled(p, a[A::self], w, A::indices);
        })
        .Does([](const Call& c) -> Status {
          using A = MaxPool3dWithArgmax;
          Windows w;
          const Args& a = c.args;
          NPU_TRY(MakeWindows(c.op.name, a[A::self],
                              {a[A::kernelSize], a[A::stride], a[A::padding], a[A::dilation], a[A::ceilMode]}, &w));
          return Largest(c, w, a[A::self], a[A::out], &a[A::indices]);
        });
NPU_OP(AdaptiveMaxPool3dBackward) =
    Op<AdaptiveMaxPool3dBackward>()
        .Rules(FloatTensors(AdaptiveMaxPool3dBackward::gradOutput, AdaptiveMaxPool3dBackward::self,
                            AdaptiveMaxPool3dBackward::gradInput),
               SameShape(AdaptiveMaxPool3dBackward::self, AdaptiveMaxPool3dBackward::gradInput),
               SameShape(AdaptiveMaxPool3dBackward::gradOutput, AdaptiveMaxPool3dBackward::indices),
               DtypeIn(AdaptiveMaxPool3dBackward::indices, kIndexTypes))
        .Tolerance("accumulated")
        .Like("torch.ops.aten.adaptive_max_pool3d_backward(gradOutput, self, indices)")
        .Prepares([](Planning& p) {
          return CheckVolume(p, p.args[AdaptiveMaxPool3dBackward::self], AdaptiveMaxPool3dBackward::self);
        })
        .Does([](const Call& c) {
          using A = AdaptiveMaxPool3dBackward;
          return Place(c, c.args[A::gradOutput], c.args[A::indices], A::indices, c.args[A::gradInput],
                       PlanesOf(c.args[A::self]), true);
        });
NPU_OP(MaxPool3dWithArgmaxBackward) =
    Op<MaxPool3dWithArgmaxBackward>()
        .Rules(FloatTensors(MaxPool3dWithArgmaxBackward::gradOutput, MaxPool3dWithArgmaxBackward::self,
                            MaxPool3dWithArgmaxBackward::gradInput),
               SameShape(MaxPool3dWithArgmaxBackward::self, MaxPool3dWithArgmaxBackward::gradInput),
               SameShape(MaxPool3dWithArgmaxBackward::gradOutput, MaxPool3dWithArgmaxBackward::indices),
               DtypeIn(MaxPool3dWithArgmaxBackward::indices, kIndexTypes))
        .Uses(MaxPool3dWithArgmaxBackward::kernelSize, MaxPool3dWithArgmaxBackward::stride,
              MaxPool3dWithArgmaxBackward::padding, MaxPool3dWithArgmaxBackward::dilation,
              MaxPool3dWithArgmaxBackward::ceilMode)
        .Tolerance("accumulated")
        .Like(
            "torch.ops.aten.max_pool3d_with_indices_backward(gradOutput, self, kernelSize, stride, padding, dilation, "
            "ceilMode, indices)")
        .Prepares([](Planning& p) {
          return CheckVolume(p, p.args[MaxPool3dWithArgmaxBackward::self], MaxPool3dWithArgmaxBackward::self);
        })
        .Does([](const Call& c) {
          using A = MaxPool3dWithArgmaxBackward;
          return Place(c, c.args[A::gradOutput], c.args[A::indices], A::indices, c.args[A::gradInput],
                       PlanesOf(c.args[A::self]), true);
        });

using abi::MaxUnpool2d, abi::MaxUnpool3d;
namespace {
template <class A>
Status WantUnpooled(const Planning& p, TensorToken out, int dims) {
  const Tensor& x = p.args[A::self];
  const auto size = p.args[A::outputSize];
  NPU_TRY(CheckVolume(p, x, A::self, dims));
  if (size.size() != U(dims)) return p.Refuse("outputSize has {} values.", size.size()).Remedy("Give {}.", dims);
  Dims want = DimsOf(x);
  for (int d = 0; d < dims; ++d) want.size[U(x.rank - dims + d)] = size[U(d)];
  return WantShape(p, out, want, "outputSize says so");
}
}  // namespace
NPU_OP(MaxUnpool2d) = Op<MaxUnpool2d>()
                          .Rules(DtypeIn(MaxUnpool2d::self, kNumbers), SameDtype(MaxUnpool2d::self, MaxUnpool2d::out),
                                 AnyShape(MaxUnpool2d::out), SameShape(MaxUnpool2d::self, MaxUnpool2d::indices),
                                 DtypeIn(MaxUnpool2d::indices, kIndexTypes))
                          .Uses(MaxUnpool2d::outputSize)
                          .Tolerance("exact")
                          .Like("torch.ops.aten.max_unpool2d(self, indices, outputSize)")
                          .Prepares([](Planning& p) { return WantUnpooled<MaxUnpool2d>(p, MaxUnpool2d::out, 2); })
                          .Does([](const Call& c) {
                            using A = MaxUnpool2d;
                            return Place(c, c.args[A::self], c.args[A::indices], A::indices, c.args[A::out],
                                         PlanesOf(c.args[A::self], 2), false);
                          });
NPU_OP(MaxUnpool3d) = Op<MaxUnpool3d>()
                          .Rules(DtypeIn(MaxUnpool3d::self, kNumbers),
                                 SameDtype(MaxUnpool3d::self, MaxUnpool3d::outRef), AnyShape(MaxUnpool3d::outRef),
                                 SameShape(MaxUnpool3d::self, MaxUnpool3d::indices),
                                 DtypeIn(MaxUnpool3d::indices, kIndexTypes))
                          .Uses(MaxUnpool3d::outputSize, MaxUnpool3d::stride, MaxUnpool3d::padding)
                          .Tolerance("exact")
                          .Like("torch.ops.aten.max_unpool3d(self, indices, outputSize, stride, padding)")
                          .Prepares([](Planning& p) { return WantUnpooled<MaxUnpool3d>(p, MaxUnpool3d::outRef, 3); })
                          .Does([](const Call& c) {
                            using A = MaxUnpool3d;
                            return Place(c, c.args[A::self], c.args[A::indices], A::indices, c.args[A::outRef],
                                         PlanesOf(c.args[A::self], 3), false);
                          });

}  // namespace npu::ops
