// Windows of images as columns of a matrix, and back. Plain loops.
#include <algorithm>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

struct Columns {
  int64_t n = 1, channels = 1;
  int64_t in[2], out[2], kernel[2], dilation[2], padding[2], stride[2];

  int64_t Kernel() const { return kernel[0] * kernel[1]; }
  int64_t Places() const { return out[0] * out[1]; }
  // f(row of the column matrix, place, position in the image plane or −1)
  template <class F>
  void Each(const F& f) const {
    for (int64_t k = 0; k < Kernel(); ++k) {
      const int64_t ky = k / kernel[1] * dilation[0] - padding[0], kx = k % kernel[1] * dilation[1] - padding[1];
      for (int64_t p = 0; p < Places(); ++p) {
        const int64_t y = p / out[1] * stride[0] + ky, x = p % out[1] * stride[1] + kx;
        f(k, p, y >= 0 && y < in[0] && x >= 0 && x < in[1] ? y * in[1] + x : -1);
      }
    }
  }
};

Status Read(std::string_view op, std::span<const int64_t> image, std::span<const int64_t> kernel,
            std::span<const int64_t> dilation, std::span<const int64_t> padding, std::span<const int64_t> stride,
            Columns* c) {
  for (size_t d = 0; d < 2; ++d) {
    auto pick = [&](std::span<const int64_t> list) { return list.empty() ? -1 : list[std::min(d, list.size() - 1)]; };
    c->in[d] = image[image.size() - 2 + d];
    c->kernel[d] = pick(kernel), c->dilation[d] = pick(dilation), c->padding[d] = pick(padding),
    c->stride[d] = pick(stride);
    const int64_t rest = c->in[d] + 2 * c->padding[d] - c->dilation[d] * (c->kernel[d] - 1) - 1;
    if (c->kernel[d] < 1 || c->dilation[d] < 1 || c->padding[d] < 0 || c->stride[d] < 1 || rest < 0) {
      return Error(Code::kInvalidParam, "{}: kernel {}, dilation {}, padding {}, stride {} for a dimension of {}.", op,
                   c->kernel[d], c->dilation[d], c->padding[d], c->stride[d], c->in[d])
          .Remedy("Kernel, dilation and stride are at least 1; the kernel fits into the padded image.");
    }
    c->out[d] = rest / c->stride[d] + 1;
  }
  return {};
}

}  // namespace

using abi::Im2col, abi::Im2colBackward;
NPU_OP(Im2col) = Op<Im2col>()
                     .Rules(DtypeIn(Im2col::self, kFloats), SameDtype(Im2col::self, Im2col::out), AnyShape(Im2col::out))
                     .Uses(Im2col::kernelSize, Im2col::dilation, Im2col::padding, Im2col::stride)
                     .Tolerance("exact")
                     .Like("torch.ops.aten.im2col(self, kernelSize, dilation, padding, stride)")
                     .Prepares([](Planning& p) -> Status {
                       const Tensor& x = p.args[Im2col::self];
                       if (x.rank != 3 && x.rank != 4)
                         return p.Refuse("self has {} dimensions.", x.rank)
                             .Remedy("Pass [channels, height, width], with or without a batch.");
                       Columns c;
                       NPU_TRY(Read(p.op.name, x.Shape(), p.args[Im2col::kernelSize], p.args[Im2col::dilation],
                                    p.args[Im2col::padding], p.args[Im2col::stride], &c));
                       Dims want;
                       if (x.rank == 4) want.Push(x.shape[0]);
                       want.Push(SizeAt(x, 2) * c.Kernel());
                       want.Push(c.Places());
                       return WantShape(p, Im2col::out, want, "there is one column for each window");
                     })
                     .Does([](const Call& call) -> Status {
                       const Tensor& x = call.args[Im2col::self];
                       Columns c;
                       NPU_TRY(Read(call.op.name, x.Shape(), call.args[Im2col::kernelSize], call.args[Im2col::dilation],
                                    call.args[Im2col::padding], call.args[Im2col::stride], &c));
                       return WithFloat(x.dtype, [&]<class T>() -> Status {
                         const Values<T> in(x, call.parallel);
                         Results<T> out(call.args[Im2col::out], call.parallel);
                         const int64_t plane = c.in[0] * c.in[1], block = c.Kernel() * c.Places();
                         call.parallel.For(in.size() / plane, Grain(block), [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i)
                             c.Each([&](int64_t k, int64_t p, int64_t at) {
                               out[i * block + k * c.Places() + p] = at < 0 ? T{0} : in[i * plane + at];
                             });
                         });
                         return {};
                       });
                     });
NPU_OP(Im2colBackward) =
    Op<Im2colBackward>()
        .Rules(DtypeIn(Im2colBackward::gradOutput, kFloats), SameDtype(Im2colBackward::gradOutput, Im2colBackward::out),
               AnyShape(Im2colBackward::out))
        .Uses(Im2colBackward::inputSize, Im2colBackward::kernelSize, Im2colBackward::dilation, Im2colBackward::padding,
              Im2colBackward::stride)
        .Tolerance("accumulated")
        .Like("torch.ops.aten.col2im(gradOutput, inputSize, kernelSize, dilation, padding, stride)")
        .Prepares([](Planning& p) -> Status {
          using A = Im2colBackward;
          const Tensor& dy = p.args[A::gradOutput];
          Columns c;
          if (p.args[A::inputSize].size() != 2)
            return p.Refuse("inputSize has {} values.", p.args[A::inputSize].size()).Remedy("Give height and width.");
          NPU_TRY(Read(p.op.name, p.args[A::inputSize], p.args[A::kernelSize], p.args[A::dilation], p.args[A::padding],
                       p.args[A::stride], &c));
          if ((dy.rank != 2 && dy.rank != 3) || SizeAt(dy, 1) % c.Kernel() != 0 || SizeAt(dy, 0) != c.Places()) {
            return p.Refuse("gradOutput has shape {}.", ShapeText(dy.Shape()))
                .Remedy("Pass a multiple of {} rows and {} columns.", c.Kernel(), c.Places());
          }
          Dims want;
          if (dy.rank == 3) want.Push(dy.shape[0]);
          want.Push(SizeAt(dy, 1) / c.Kernel());
          want.Push(c.in[0]);
          want.Push(c.in[1]);
          return WantShape(p, A::out, want, "that is not the shape of the image");
        })
        .Does([](const Call& call) -> Status {
          using A = Im2colBackward;
          Columns c;
          NPU_TRY(Read(call.op.name, call.args[A::inputSize], call.args[A::kernelSize], call.args[A::dilation],
                       call.args[A::padding], call.args[A::stride], &c));
          return WithFloat(call.args[A::out].dtype, [&]<class T>() -> Status {
            const Values<T> dy(call.args[A::gradOutput], call.parallel);
            Results<T> out(call.args[A::out], call.parallel);
            const int64_t plane = c.in[0] * c.in[1], block = c.Kernel() * c.Places();
            call.parallel.For(out.size() / plane, Grain(block), [&](int64_t begin, int64_t end) {
              std::fill(out.data() + begin * plane, out.data() + end * plane, T{0});
              for (int64_t i = begin; i < end; ++i)
                c.Each([&](int64_t k, int64_t p, int64_t at) {
                  if (at >= 0) out[i * plane + at] += dy[i * block + k * c.Places() + p];
                });
            });
            return {};
          });
        });

}  // namespace npu::ops
