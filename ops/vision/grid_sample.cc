// Sampling images and volumes at the places of a grid, its gradients, and the grid of an affine map. Plain loops, one
// channel plane after the other at each place.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

enum class Mode : int64_t { kLinear, kNearest, kCubic };
enum class Border : int64_t { kZeros, kEdge, kReflect };

size_t U(int64_t i) { return static_cast<size_t>(i); }

// A coordinate and how it changes with the grid's value.
template <class T>
struct Place {
  T at, slope;
};

template <class T>
Place<T> Clip(Place<T> p, int64_t size) {
  const T last = static_cast<T>(size - 1);
  if (!(p.at > 0)) return {0, 0};
  if (p.at >= last) return {last, 0};
  return p;
}

template <class T>
Place<T> Reflect(Place<T> p, int64_t size, bool corners) {
  const T low = corners ? T{0} : T(-0.5), span = corners ? static_cast<T>(size - 1) : static_cast<T>(size);
  if (span == 0) return {0, 0};
  T x = p.at - low;
  T slope = p.slope;
  if (x < 0) x = -x, slope = -slope;
  const T extra = std::fmod(x, span);
  const bool even = std::fmod(std::floor(x / span), T{2}) == 0;
  return even ? Place<T>{extra + low, slope} : Place<T>{span - extra + low, -slope};
}

template <class T>
Place<T> Bound(Place<T> p, int64_t size, Border border, bool corners) {
  if (border == Border::kEdge) p = Clip(p, size);
  if (border == Border::kReflect) p = Clip(Reflect(p, size, corners), size);
  // Places that no integer holds lie outside.
  if (!(std::abs(p.at) < T(1e9))) p.at = -100;
  return p;
}

template <class T>
Place<T> Unnormalized(T g, int64_t size, bool corners) {
  if (corners) return {(g + 1) / 2 * static_cast<T>(size - 1), static_cast<T>(size - 1) / 2};
  return {((g + 1) * static_cast<T>(size) - 1) / 2, static_cast<T>(size) / 2};
}

template <class T>
std::array<T, 4> CubicWeights(T t) {
  constexpr T a = T(-0.75);
  auto near = [](T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  auto far = [](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}
template <class T>
std::array<T, 4> CubicSlopes(T t) {
  constexpr T a = T(-0.75);
  auto near = [](T x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  auto far = [](T x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  return {far(t + 1), near(t), -near(1 - t), -far(2 - t)};
}

// What one place of the grid reads: positions in a plane (−1 outside), weights, and how weights change with each
// coordinate.
template <class T>
struct Reads {
  int count = 0;
  std::array<int64_t, 16> at;
  std::array<T, 16> weight;
  std::array<std::array<T, 3>, 16> slope;
};

struct Sampling {
  int dims = 2;
  std::array<int64_t, 3> size{};  // of the input, first dimension first
  Mode mode{};
  Border border{};
  bool corners = false;

  template <class T>
  void Read(const T* grid, Reads<T>* r) const {
    // The grid names the last dimension first.
    std::array<Place<T>, 3> p{};
    for (int d = 0; d < dims; ++d) {
      p[U(d)] = Unnormalized(grid[dims - 1 - d], size[U(d)], corners);
      if (mode != Mode::kCubic)
        p[U(d)] = Bound(p[U(d)], size[U(d)], border, corners);
      else if (!(std::abs(p[U(d)].at) < T(1e9)))
        p[U(d)].at = -100;
    }
    if (mode == Mode::kNearest) {
      r->count = 1;
      r->weight[0] = 1;
      r->slope[0] = {};
      r->at[0] = 0;
      for (int d = 0; d < dims; ++d) Step(static_cast<int64_t>(std::nearbyint(p[U(d)].at)), d, &r->at[0]);
    } else if (mode == Mode::kLinear) {
      r->count = 1 << dims;
      for (int k = 0; k < r->count; ++k) {
        r->at[U(k)] = 0;
        r->weight[U(k)] = 1;
        r->slope[U(k)] = {1, 1, 1};
        for (int d = 0; d < dims; ++d) {
          const bool high = (k >> (dims - 1 - d) & 1) != 0;
          const T floor = std::floor(p[U(d)].at), part = p[U(d)].at - floor, w = high ? part : 1 - part;
          Step(static_cast<int64_t>(floor) + (high ? 1 : 0), d, &r->at[U(k)]);
          r->weight[U(k)] *= w;
          for (int e = 0; e < dims; ++e) r->slope[U(k)][U(e)] *= e == d ? (high ? 1 : -1) * p[U(d)].slope : w;
        }
      }
    } else {
      r->count = 16;
      std::array<std::array<T, 4>, 2> w, s;
      std::array<int64_t, 2> first{};
      for (size_t d = 0; d < 2; ++d) {
        const T floor = std::floor(p[d].at);
        first[d] = static_cast<int64_t>(floor) - 1;
        w[d] = CubicWeights(p[d].at - floor);
        s[d] = CubicSlopes(p[d].at - floor);
      }
      for (size_t i = 0; i < 4; ++i) {
        for (size_t j = 0; j < 4; ++j) {
          const size_t k = i * 4 + j;
          r->at[k] = 0;
          const std::array<int64_t, 2> where{first[0] + static_cast<int64_t>(i), first[1] + static_cast<int64_t>(j)};
          for (int d = 0; d < 2; ++d) {
            const Place<T> bounded = Bound(Place<T>{static_cast<T>(where[U(d)]), 1}, size[U(d)], border, corners);
            Step(static_cast<int64_t>(bounded.at), d, &r->at[k]);
          }
          r->weight[k] = w[0][i] * w[1][j];
          r->slope[k] = {s[0][i] * w[1][j] * p[0].slope, w[0][i] * s[1][j] * p[1].slope, 0};
        }
      }
    }
  }

 private:
  void Step(int64_t i, int d, int64_t* at) const {
    if (*at < 0) return;
    *at = i < 0 || i >= size[U(d)] ? -1 : *at * size[U(d)] + i;
  }
};

Sampling SamplingOf(const Tensor& input, int64_t mode, int64_t padding, bool corners) {
  Sampling s;
  s.dims = input.rank - 2;
  for (int d = 0; d < s.dims; ++d) s.size[U(d)] = input.shape[U(d + 2)];
  s.mode = static_cast<Mode>(mode);
  s.border = static_cast<Border>(padding);
  s.corners = corners;
  return s;
}

template <class A>
Status CheckGrid(const Planning& p, int dims, TensorToken out) {
  const Tensor &x = p.args[A::input], &grid = p.args[A::grid];
  const int64_t mode = p.args[A::interpolationMode], padding = p.args[A::paddingMode];
  if (x.rank != dims + 2 || grid.rank != dims + 2 || SizeAt(grid, 0) != dims || x.shape[0] != grid.shape[0]) {
    return p.Refuse("input has shape {} and grid {}.", ShapeText(x.Shape()), ShapeText(grid.Shape()))
        .Remedy("Pass batch, channels and {} dimensions, and a grid of as many coordinates for the same batch.", dims);
  }
  for (int d = 0; d < dims; ++d)
    if (x.shape[U(d + 2)] < 1)
      return p.Refuse("input has shape {}.", ShapeText(x.Shape())).Remedy("Only the batch may be empty.");
  if (mode < 0 || mode > (dims == 2 ? 2 : 1) || padding < 0 || padding > 2) {
    return p.Refuse("interpolationMode is {} and paddingMode {}.", mode, padding)
        .Remedy("Modes: 0 linear, 1 nearest, 2 cubic (images only); paddings: 0 zeros, 1 border, 2 reflection.");
  }
  Dims want = DimsOf(grid);
  want.rank = 0;
  want.Push(x.shape[0]);
  want.Push(x.shape[1]);
  for (int d = 0; d < dims; ++d) want.Push(grid.shape[U(d + 1)]);
  return WantShape(p, out, want, "it has the channels of input at the places of grid");
}

template <class A>
Status Sample(const Call& c) {
  const Tensor &x = c.args[A::input], &grid = c.args[A::grid], &out = c.args[A::out];
  const Sampling s = SamplingOf(x, c.args[A::interpolationMode], c.args[A::paddingMode], c.args[A::alignCorners]);
  return WithFloat(x.dtype, [&]<class T>() -> Status {
    const Values<T> in(x, c.parallel), g(grid, c.parallel);
    Results<T> y(out, c.parallel);
    const int64_t channels = x.shape[1], plane = s.size[0] * s.size[1] * (s.dims == 3 ? s.size[2] : 1);
    const int64_t places = g.size() / s.dims / std::max<int64_t>(1, x.shape[0]);
    c.parallel.For(x.shape[0] * places, Grain(channels * 16), [&](int64_t begin, int64_t end) {
      Reads<T> r;
      for (int64_t i = begin; i < end; ++i) {
        s.Read(g.data() + i * s.dims, &r);
        const int64_t n = i / places, place = i % places;
        for (int64_t ch = 0; ch < channels; ++ch) {
          const T* from = in.data() + (n * channels + ch) * plane;
          T sum = 0;
          for (int k = 0; k < r.count; ++k)
            if (r.at[U(k)] >= 0) sum += r.weight[U(k)] * from[r.at[U(k)]];
          y[(n * channels + ch) * places + place] = sum;
        }
      }
    });
    return {};
  });
}

template <class A>
Status SampleBackward(const Call& c) {
  const Tensor &x = c.args[A::input], &grid = c.args[A::grid];
  const Sampling s = SamplingOf(x, c.args[A::interpolationMode], c.args[A::paddingMode], c.args[A::alignCorners]);
  const auto mask = c.args[A::outputMask];
  const bool wants_x = (mask.empty() || mask[0]) && c.args[A::inputGrad].Numel() > 0,
             wants_grid = (mask.size() < 2 || mask[1]) && c.args[A::gridGrad].Numel() > 0;
  return WithFloat(x.dtype, [&]<class T>() -> Status {
    const Values<T> in(x, c.parallel), g(grid, c.parallel), dy(c.args[A::gradOutput], c.parallel);
    std::optional<Results<T>> dx, dgrid;
    if (wants_x) dx.emplace(c.args[A::inputGrad], c.parallel);
    if (wants_grid) dgrid.emplace(c.args[A::gridGrad], c.parallel);
    const int64_t channels = x.shape[1], plane = s.size[0] * s.size[1] * (s.dims == 3 ? s.size[2] : 1);
    const int64_t places = g.size() / s.dims / std::max<int64_t>(1, x.shape[0]);
    c.parallel.For(x.shape[0], 1, [&](int64_t begin, int64_t end) {
      Reads<T> r;
      if (dx) std::fill(dx->data() + begin * channels * plane, dx->data() + end * channels * plane, T{0});
      for (int64_t i = begin * places; i < end * places; ++i) {
        s.Read(g.data() + i * s.dims, &r);
        const int64_t n = i / places, place = i % places;
        std::array<T, 3> slope{};
        for (int64_t ch = 0; ch < channels; ++ch) {
          const int64_t base = (n * channels + ch) * plane;
          const T grad = dy[(n * channels + ch) * places + place];
          for (int k = 0; k < r.count; ++k) {
            const int64_t at = r.at[U(k)];
            if (at < 0) continue;
            if (dx) (*dx)[base + at] += r.weight[U(k)] * grad;
            for (int d = 0; d < s.dims; ++d) slope[U(d)] += r.slope[U(k)][U(d)] * in[base + at] * grad;
          }
        }
        for (int d = 0; dgrid && d < s.dims; ++d) (*dgrid)[i * s.dims + s.dims - 1 - d] = slope[U(d)];
      }
    });
    return {};
  });
}

template <class A>
consteval Builder Sampler(int dims, std::string_view like) {
  return Op<A>()
      .Rules(FloatTensors(A::input, A::grid, A::out), SameDtype(A::input, A::grid), SameDtype(A::input, A::out),
             AnyShape(A::out))
      .Uses(A::interpolationMode, A::paddingMode, A::alignCorners)
      .Imm(dims)
      .Tolerance("accumulated")
      .Like(like)
      .Prepares([](Planning& p) { return CheckGrid<A>(p, static_cast<int>(p.op.imm), A::out); })
      .Does(Sample<A>);
}
template <class A>
consteval Builder SamplerBackward(int dims, std::string_view like) {
  return Op<A>()
      .Rules(FloatTensors(A::gradOutput, A::input, A::grid, A::inputGrad, A::gridGrad),
             AnyShapes(A::inputGrad, A::gridGrad))
      .Uses(A::interpolationMode, A::paddingMode, A::alignCorners, A::outputMask)
      .Imm(dims)
      .Tolerance("accumulated")
      .Like(like)
      .Prepares([](Planning& p) -> Status {
        NPU_TRY(CheckGrid<A>(p, static_cast<int>(p.op.imm), A::gradOutput));
        const auto mask = p.args[A::outputMask];
        if (mask.empty() || mask[0])
          NPU_TRY(WantShape(p, A::inputGrad, DimsOf(p.args[A::input]), "it is the gradient of input"));
        if (mask.size() < 2 || mask[1])
          NPU_TRY(WantShape(p, A::gridGrad, DimsOf(p.args[A::grid]), "it is the gradient of grid"));
        return {};
      })
      .Does(SampleBackward<A>);
}

}  // namespace

NPU_OP(GridSampler2D) = Sampler<abi::GridSampler2D>(
    2, "torch.ops.aten.grid_sampler_2d(input, grid, interpolationMode, paddingMode, alignCorners)");
NPU_OP(GridSampler3D) = Sampler<abi::GridSampler3D>(
    3, "torch.ops.aten.grid_sampler_3d(input, grid, interpolationMode, paddingMode, alignCorners)");
NPU_OP(GridSampler2DBackward) =
    SamplerBackward<abi::GridSampler2DBackward>(2,
                                                "torch.ops.aten.grid_sampler_2d_backward(gradOutput, input, grid, "
                                                "interpolationMode, paddingMode, alignCorners, outputMask)");
NPU_OP(GridSampler3DBackward) =
    SamplerBackward<abi::GridSampler3DBackward>(3,
                                                "torch.ops.aten.grid_sampler_3d_backward(gradOutput, input, grid, "
                                                "interpolationMode, paddingMode, alignCorners, outputMask)");

using abi::AffineGrid;
NPU_OP(AffineGrid) =
    Op<AffineGrid>()
        .Rules(FloatTensors(AffineGrid::theta, AffineGrid::out), SameDtype(AffineGrid::theta, AffineGrid::out),
               AnyShape(AffineGrid::out))
        .Uses(AffineGrid::size, AffineGrid::alignCorners)
        .Tolerance("accumulated")
        .Like("torch.nn.functional.affine_grid(theta, size, alignCorners)")
        .Prepares([](Planning& p) -> Status {
          const Tensor& theta = p.args[AffineGrid::theta];
          const auto size = p.args[AffineGrid::size];
          const int64_t dims = static_cast<int64_t>(size.size()) - 2;
          if ((dims != 2 && dims != 3) || theta.rank != 3 || theta.shape[0] != size[0] || theta.shape[1] != dims ||
              theta.shape[2] != dims + 1) {
            return p.Refuse("theta has shape {} and size is {}.", ShapeText(theta.Shape()), ShapeText(size))
                .Remedy("Pass [batch, d, d + 1] for sizes [batch, channels, d sizes], d 2 or 3.");
          }
          Dims want;
          want.Push(size[0]);
          for (int64_t d = 0; d < dims; ++d) want.Push(size[U(d + 2)]);
          want.Push(dims);
          return WantShape(p, AffineGrid::out, want, "there are as many coordinates at each place of size");
        })
        .Does([](const Call& c) -> Status {
          const auto size = c.args[AffineGrid::size];
          const int dims = static_cast<int>(size.size()) - 2;
          return WithFloat(c.args[AffineGrid::theta].dtype, [&]<class T>() -> Status {
            const Values<T> theta(c.args[AffineGrid::theta], c.parallel);
            Results<T> out(c.args[AffineGrid::out], c.parallel);
            const int64_t places = out.size() / dims / std::max<int64_t>(1, size[0]);
            for (int64_t i = 0; i < out.size() / dims; ++i) {
              std::array<T, 4> base{0, 0, 0, 0};  // last dimension first, and 1
              int64_t rest = i % places;
              for (int d = dims - 1; d >= 0; --d) {
                const int64_t n = size[U(d + 2)], k = rest % n;
                rest /= n;
                T at = n > 1 ? T(-1) + 2 * static_cast<T>(k) / static_cast<T>(n - 1) : T{0};
                if (!c.args[AffineGrid::alignCorners]) at *= static_cast<T>(n - 1) / static_cast<T>(n);
                base[U(dims - 1 - d)] = at;
              }
              base[U(dims)] = 1;
              for (int r = 0; r < dims; ++r) {
                T sum = 0;
                for (int k = 0; k <= dims; ++k) sum += base[U(k)] * theta[((i / places) * dims + r) * (dims + 1) + k];
                out[i * dims + r] = sum;
              }
            }
            return {};
          });
        });

}  // namespace npu::ops
