// Rotary position embedding: x · cos + turn(x) · sin, where turn pairs the halves of the last dimension or its
// neighbours. Plain loops in the compute type.
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

enum class Turn : int64_t { kHalf = 0, kNeighbours = 1 };

size_t U(int64_t i) { return static_cast<size_t>(i); }

// Partner of column i of n, and the sign it takes.
int64_t Partner(Turn turn, int64_t i, int64_t n, bool* negative) {
  if (turn == Turn::kHalf) {
    *negative = i < n / 2;
    return i < n / 2 ? i + n / 2 : i - n / 2;
  }
  *negative = i % 2 == 0;
  return i ^ 1;
}

Status CheckRotary(const Planning& p, const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t mode) {
  if (mode != 0 && mode != 1)
    return NotYet(p.op.name, fmt::format("mode {} is not computed yet; 0 (halves) and 1 (neighbours) are.", mode));
  if (x.rank < 1 || SizeAt(x, 0) % 2 != 0 || !npu::ExpandsTo(cos.Shape(), x.Shape()) ||
      !npu::SameShape(cos.Shape(), sin.Shape())) {
    return p
        .Refuse("x has shape {}, cos {} and sin {}.", ShapeText(x.Shape()), ShapeText(cos.Shape()),
                ShapeText(sin.Shape()))
        .Remedy("The last size is even; cos and sin have one shape, which expands to that of x.");
  }
  return {};
}

// y may be the memory of x.
Status Rotate(const Call& c, const Tensor& x, const Tensor& cos, const Tensor& sin, Turn turn, const Tensor& y) {
  return WithFloat(x.dtype, [&]<class T>() -> Status {
    const Values<T> in(x, c.parallel), cosines(Expanded(cos, x.Shape()), c.parallel),
        sines(Expanded(sin, x.Shape()), c.parallel);
    Results<T> out(y, c.parallel);
    const int64_t n = SizeAt(x, 0);
    c.parallel.For(n == 0 ? 0 : in.size() / n, Grain(n), [&](int64_t begin, int64_t end) {
      std::vector<T> row(U(n));
      for (int64_t r = begin; r < end; ++r) {
        std::copy(in.data() + r * n, in.data() + (r + 1) * n, row.data());
        for (int64_t i = 0; i < n; ++i) {
          bool negative = false;
          const T other = row[U(Partner(turn, i, n, &negative))];
          out[r * n + i] = row[U(i)] * cosines[r * n + i] + (negative ? -other : other) * sines[r * n + i];
        }
      }
    });
    return {};
  });
}

}  // namespace

using abi::RotaryPositionEmbedding, abi::RotaryPositionEmbeddingV2, abi::RotaryPositionEmbeddingGrad,
    abi::ApplyRotaryPosEmb, abi::ApplyRotaryPosEmbV2;
NPU_OP(RotaryPositionEmbedding) = Op<RotaryPositionEmbedding>()
                                      .Rules(FloatTensors(RotaryPositionEmbedding::x, RotaryPositionEmbedding::cos,
                                                          RotaryPositionEmbedding::sin, RotaryPositionEmbedding::out),
                                             SameShape(RotaryPositionEmbedding::x, RotaryPositionEmbedding::out))
                                      .Uses(RotaryPositionEmbedding::mode)
                                      .Tolerance("rounded")
                                      .Like("rotary(x, cos, sin, mode)")
                                      .Prepares([](Planning& p) {
                                        using A = RotaryPositionEmbedding;
                                        return CheckRotary(p, p.args[A::x], p.args[A::cos], p.args[A::sin],
                                                           p.args[A::mode]);
                                      })
                                      .Does([](const Call& c) {
                                        using A = RotaryPositionEmbedding;
                                        return Rotate(c, c.args[A::x], c.args[A::cos], c.args[A::sin],
                                                      static_cast<Turn>(c.args[A::mode]), c.args[A::out]);
                                      });
NPU_OP(RotaryPositionEmbeddingV2) =
    Op<RotaryPositionEmbeddingV2>()
        .Rules(FloatTensors(RotaryPositionEmbeddingV2::x, RotaryPositionEmbeddingV2::cos,
                            RotaryPositionEmbeddingV2::sin, RotaryPositionEmbeddingV2::out),
               SameShape(RotaryPositionEmbeddingV2::x, RotaryPositionEmbeddingV2::out))
        .Uses(RotaryPositionEmbeddingV2::mode, RotaryPositionEmbeddingV2::rotate)
        .Tolerance("rounded")
        .Like("rotary(x, cos, sin, mode)")
        .Prepares([](Planning& p) -> Status {
          using A = RotaryPositionEmbeddingV2;
          if (p.args[A::rotate] != nullptr)
            return NotYet(p.op.name, "a rotation matrix of the caller's own is not computed yet.");
          return CheckRotary(p, p.args[A::x], p.args[A::cos], p.args[A::sin], p.args[A::mode]);
        })
        .Does([](const Call& c) {
          using A = RotaryPositionEmbeddingV2;
          return Rotate(c, c.args[A::x], c.args[A::cos], c.args[A::sin], static_cast<Turn>(c.args[A::mode]),
                        c.args[A::out]);
        });
NPU_OP(RotaryPositionEmbeddingGrad) =
    Op<RotaryPositionEmbeddingGrad>()
        .Rules(FloatTensors(RotaryPositionEmbeddingGrad::dy, RotaryPositionEmbeddingGrad::cos,
                            RotaryPositionEmbeddingGrad::sin, RotaryPositionEmbeddingGrad::dxOut,
                            RotaryPositionEmbeddingGrad::dcosOut, RotaryPositionEmbeddingGrad::dsinOut),
               SameShape(RotaryPositionEmbeddingGrad::dy, RotaryPositionEmbeddingGrad::dxOut),
               AnyShapes(RotaryPositionEmbeddingGrad::dcosOut, RotaryPositionEmbeddingGrad::dsinOut),
               SameShape(RotaryPositionEmbeddingGrad::dy, RotaryPositionEmbeddingGrad::xOptional))
        .Uses(RotaryPositionEmbeddingGrad::mode)
        .Optional(RotaryPositionEmbeddingGrad::dcosOut, RotaryPositionEmbeddingGrad::dsinOut)
        .Tolerance("accumulated")
        .Like("rotary_backward(dy, cos, sin, xOptional, mode)")
        .Prepares([](Planning& p) -> Status {
          using A = RotaryPositionEmbeddingGrad;
          NPU_TRY(CheckRotary(p, p.args[A::dy], p.args[A::cos], p.args[A::sin], p.args[A::mode]));
          if (p.args[A::xOptional] == nullptr) return {};
          NPU_TRY(WantShape(p, A::dcosOut, DimsOf(p.args[A::cos]), "it is the gradient of cos"));
          return WantShape(p, A::dsinOut, DimsOf(p.args[A::sin]), "it is the gradient of sin");
        })
        .Does([](const Call& c) -> Status {
          using A = RotaryPositionEmbeddingGrad;
          const Tensor &dy = c.args[A::dy], &cos = c.args[A::cos];
          const auto turn = static_cast<Turn>(c.args[A::mode]);
          return WithFloat(dy.dtype, [&]<class T>() -> Status {
            const Values<T> grad(dy, c.parallel), cosines(Expanded(cos, dy.Shape()), c.parallel),
                sines(Expanded(c.args[A::sin], dy.Shape()), c.parallel);
            const int64_t n = SizeAt(dy, 0), rows = n == 0 ? 0 : grad.size() / n;
            {
              Results<T> dx(c.args[A::dxOut], c.parallel);
              for (int64_t r = 0; r < rows; ++r) {
                for (int64_t i = 0; i < n; ++i) {
                  bool negative = false;
                  const int64_t other = r * n + Partner(turn, i, n, &negative);
                  // turn is its own inverse but for the sign
                  const T turned = grad[other] * sines[other];
                  dx[r * n + i] = grad[r * n + i] * cosines[r * n + i] + (negative ? turned : -turned);
                }
              }
            }
            const Tensor *x = c.args[A::xOptional], *dcos = c.args.Maybe(A::dcosOut), *dsin = c.args.Maybe(A::dsinOut);
            if (x == nullptr || dcos == nullptr || dsin == nullptr || dcos->Numel() == 0) return {};
            const Values<T> in(*x, c.parallel);
            std::vector<double> cos_sum(U(cos.Numel())), sin_sum(U(cos.Numel()));
            // Where element i of dy falls in cos, whose broadcast dimensions have step 0.
            Tensor places = Expanded(MakeContiguous(nullptr, DType::f32, cos.Shape()), dy.Shape());
            for (int64_t i = 0; i < in.size(); ++i) {
              int64_t rest = i, at = 0;
              for (int d = dy.rank - 1; d >= 0; --d) {
                at += rest % dy.shape[U(d)] * places.strides[U(d)];
                rest /= dy.shape[U(d)];
              }
              bool negative = false;
              const T other = in[i / n * n + Partner(turn, i % n, n, &negative)];
              cos_sum[U(at)] += static_cast<double>(grad[i] * in[i]);
              sin_sum[U(at)] += static_cast<double>(grad[i] * (negative ? -other : other));
            }
            simd::Copy(MakeContiguous(cos_sum.data(), DType::f64, dcos->Shape()), *dcos, c.parallel);
            simd::Copy(MakeContiguous(sin_sum.data(), DType::f64, dsin->Shape()), *dsin, c.parallel);
            return {};
          });
        });

namespace {

// Query and key in place. Layouts say where the heads stand; cos and sin have 1 there, so broadcasting is all there is
// to it.
Status RotateBoth(const Call& c, const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin, Turn turn) {
  NPU_TRY(Rotate(c, q, cos, sin, turn, q));
  return Rotate(c, k, cos, sin, turn, k);
}

}  // namespace
NPU_OP(ApplyRotaryPosEmb) = Op<ApplyRotaryPosEmb>()
                                .Rules(FloatTensors(ApplyRotaryPosEmb::queryRef, ApplyRotaryPosEmb::keyRef,
                                                    ApplyRotaryPosEmb::cos, ApplyRotaryPosEmb::sin))
                                .Uses(ApplyRotaryPosEmb::layout)
                                .Tolerance("rounded")
                                .Like("[rotary(queryRef, cos, sin, 0), rotary(keyRef, cos, sin, 0)]")
                                .Prepares([](Planning& p) -> Status {
                                  using A = ApplyRotaryPosEmb;
                                  NPU_TRY(CheckRotary(p, p.args[A::queryRef], p.args[A::cos], p.args[A::sin], 0));
                                  return CheckRotary(p, p.args[A::keyRef], p.args[A::cos], p.args[A::sin], 0);
                                })
                                .Does([](const Call& c) {
                                  using A = ApplyRotaryPosEmb;
                                  return RotateBoth(c, c.args[A::queryRef], c.args[A::keyRef], c.args[A::cos],
                                                    c.args[A::sin], Turn::kHalf);
                                });
NPU_OP(ApplyRotaryPosEmbV2) = Op<ApplyRotaryPosEmbV2>()
                                  .Rules(FloatTensors(ApplyRotaryPosEmbV2::queryRef, ApplyRotaryPosEmbV2::keyRef,
                                                      ApplyRotaryPosEmbV2::cos, ApplyRotaryPosEmbV2::sin))
                                  .Uses(ApplyRotaryPosEmbV2::layout, ApplyRotaryPosEmbV2::rotaryMode)
                                  .Tolerance("rounded")
                                  .Like("[rotary(queryRef, cos, sin, mode), rotary(keyRef, cos, sin, mode)]")
                                  .Prepares([](Planning& p) -> Status {
                                    using A = ApplyRotaryPosEmbV2;
                                    const std::string_view mode = p.args[A::rotaryMode];
                                    if (mode != "half" && mode != "interleave" && !mode.empty())
                                      return NotYet(p.op.name, fmt::format("rotaryMode {} is not computed yet.", mode));
                                    NPU_TRY(CheckRotary(p, p.args[A::queryRef], p.args[A::cos], p.args[A::sin], 0));
                                    return CheckRotary(p, p.args[A::keyRef], p.args[A::cos], p.args[A::sin], 0);
                                  })
                                  .Does([](const Call& c) {
                                    using A = ApplyRotaryPosEmbV2;
                                    return RotateBoth(
                                        c, c.args[A::queryRef], c.args[A::keyRef], c.args[A::cos], c.args[A::sin],
                                        c.args[A::rotaryMode] == "interleave" ? Turn::kNeighbours : Turn::kHalf);
                                  });

}  // namespace npu::ops
