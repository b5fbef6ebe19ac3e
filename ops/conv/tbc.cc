// Convolution over time with [time, batch, channels], and its gradient: one matrix product for each tap.
#include "gen/abi/ops.h"
#include "kernels/gemm/gemm.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

using abi::ConvTbc, abi::ConvTbcBackward;

struct Taps {
  int64_t time, batch, in, out, taps, pad, out_time;
  // Steps of the output that tap k reaches, and where it reads.
  int64_t Begin(int64_t k) const { return std::max<int64_t>(0, pad - k); }
  int64_t End(int64_t k) const { return std::min(out_time, time + pad - k); }
};

Taps TapsOf(const Tensor& x, const Tensor& w, int64_t pad) {
  return {x.shape[0], x.shape[1], x.shape[2], w.shape[2], w.shape[0], pad, x.shape[0] + 2 * pad - w.shape[0] + 1};
}

Status CheckTaps(const Planning& p, const Tensor& x, TensorToken x_name, const Tensor& w, const Tensor& bias,
                 int64_t pad, TensorToken y) {
  if (x.rank != 3 || w.rank != 3 || x.shape[2] != w.shape[1] || pad < 0 || bias.Numel() != w.shape[2] ||
      TapsOf(x, w, pad).out_time < 1) {
    return p
        .Refuse("{} has shape {}, weight {}, bias {} and pad is {}.", p.ParamName(x_name), ShapeText(x.Shape()),
                ShapeText(w.Shape()), ShapeText(bias.Shape()), pad)
        .Remedy(
            "Pass [time, batch, channels], [taps, channels, outputs] and [outputs]; the taps fit into the padded "
            "time.");
  }
  const Taps t = TapsOf(x, w, pad);
  return WantShape(p, y, {3, {t.out_time, t.batch, t.out}}, "that is not the shape of the convolution");
}

template <class T>
gemm::Operand Of(const T* data, int64_t row, int64_t col) {
  return {const_cast<T*>(data), TypeOf<T>(), row, col, {}};
}
// c += a b
template <class T>
Status Add(Parallel& parallel, int64_t m, int64_t n, int64_t k, const gemm::Operand& a, const gemm::Operand& b, T* c) {
  if (m <= 0 || n <= 0 || k <= 0) return {};
  gemm::Problem p;
  p.m = m, p.n = n, p.k = k, p.a = a, p.b = b, p.beta = 1;
  p.c = p.self = Of(c, n, 1);
  return gemm::Gemm(parallel, p);
}

}  // namespace

NPU_OP(ConvTbc) = Op<ConvTbc>()
                      .Rules(FloatTensors(ConvTbc::self, ConvTbc::weight, ConvTbc::bias, ConvTbc::output),
                             AnyShape(ConvTbc::output))
                      .Uses(ConvTbc::pad, ConvTbc::cubeMathType)
                      .Tolerance("accumulated")
                      .Like("torch.conv_tbc(self, weight, bias, pad)")
                      .Prepares([](Planning& p) {
                        return CheckTaps(p, p.args[ConvTbc::self], ConvTbc::self, p.args[ConvTbc::weight],
                                         p.args[ConvTbc::bias], p.args[ConvTbc::pad], ConvTbc::output);
                      })
                      .Does([](const Call& c) -> Status {
                        const Taps t = TapsOf(c.args[ConvTbc::self], c.args[ConvTbc::weight], c.args[ConvTbc::pad]);
                        return WithFloat(c.args[ConvTbc::self].dtype, [&]<class T>() -> Status {
                          const Values<T> x(c.args[ConvTbc::self], c.parallel), w(c.args[ConvTbc::weight], c.parallel),
                              bias(c.args[ConvTbc::bias], c.parallel);
                          Results<T> y(c.args[ConvTbc::output], c.parallel);
                          for (int64_t i = 0; i < y.size(); ++i) y[i] = bias[i % t.out];
                          for (int64_t k = 0; k < t.taps; ++k) {
                            const int64_t from = t.Begin(k);
                            if (t.End(k) <= from) continue;
                            NPU_TRY(Add(c.parallel, (t.End(k) - from) * t.batch, t.out, t.in,
                                        Of(x.data() + (from + k - t.pad) * t.batch * t.in, t.in, 1),
                                        Of(w.data() + k * t.in * t.out, t.out, 1), y.data() + from * t.batch * t.out));
                          }
                          return {};
                        });
                      });
NPU_OP(ConvTbcBackward) =
    Op<ConvTbcBackward>()
        .Rules(FloatTensors(ConvTbcBackward::self, ConvTbcBackward::input, ConvTbcBackward::weight,
                            ConvTbcBackward::gradInput, ConvTbcBackward::gradWeight, ConvTbcBackward::gradBias),
               SameShape(ConvTbcBackward::input, ConvTbcBackward::gradInput),
               SameShape(ConvTbcBackward::weight, ConvTbcBackward::gradWeight),
               SameShape(ConvTbcBackward::bias, ConvTbcBackward::gradBias))
        .Uses(ConvTbcBackward::pad, ConvTbcBackward::cubeMathType)
        .Tolerance("accumulated")
        .Like("torch.ops.aten.conv_tbc_backward(self, input, weight, bias, pad)")
        .Prepares([](Planning& p) {
          using B = ConvTbcBackward;
          return CheckTaps(p, p.args[B::input], B::input, p.args[B::weight], p.args[B::bias], p.args[B::pad], B::self);
        })
        .Does([](const Call& c) -> Status {
          using B = ConvTbcBackward;
          const Taps t = TapsOf(c.args[B::input], c.args[B::weight], c.args[B::pad]);
          return WithFloat(c.args[B::input].dtype, [&]<class T>() -> Status {
            const Values<T> x(c.args[B::input], c.parallel), w(c.args[B::weight], c.parallel),
                dy(c.args[B::self], c.parallel);
            Results<T> dx(c.args[B::gradInput], c.parallel), dw(c.args[B::gradWeight], c.parallel),
                db(c.args[B::gradBias], c.parallel);
            std::fill(dx.data(), dx.data() + dx.size(), T{0});
            std::fill(dw.data(), dw.data() + dw.size(), T{0});
            std::fill(db.data(), db.data() + db.size(), T{0});
            for (int64_t i = 0; i < dy.size(); ++i) db[i % t.out] += dy[i];
            for (int64_t k = 0; k < t.taps; ++k) {
              const int64_t from = t.Begin(k), rows = (t.End(k) - from) * t.batch, at = (from + k - t.pad) * t.batch;
              if (rows <= 0) continue;
              const T* grad = dy.data() + from * t.batch * t.out;
              NPU_TRY(Add(c.parallel, rows, t.in, t.out, Of(grad, t.out, 1), Of(w.data() + k * t.in * t.out, 1, t.out),
                          dx.data() + at * t.in));
              NPU_TRY(Add(c.parallel, t.in, t.out, rows, Of(x.data() + at * t.in, 1, t.in), Of(grad, t.out, 1),
                          dw.data() + k * t.in * t.out));
            }
            return {};
          });
        });

}  // namespace npu::ops
