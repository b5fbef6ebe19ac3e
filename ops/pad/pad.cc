// Padding by reflection and by the nearest edge in the last one, two or three dimensions, and its gradient. Plain loops
// over rows: elements are moved as they are, gradients are summed in the compute type and rounded once.
#include <algorithm>
#include <cstring>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int64_t kReflect = 8;  // OpDef::imm: number of padded dimensions, and this

size_t U(int64_t i) { return static_cast<size_t>(i); }

// Where each position of a padded dimension comes from.
std::vector<int64_t> Sources(int64_t size, int64_t before, int64_t after, bool reflect) {
  std::vector<int64_t> from(U(size + before + after));
  for (size_t o = 0; o < from.size(); ++o) {
    int64_t i = static_cast<int64_t>(o) - before;
    if (reflect) {
      if (i < 0) i = -i;
      if (i >= size) i = 2 * (size - 1) - i;
    }
    from[o] = std::clamp<int64_t>(i, 0, size - 1);
  }
  return from;
}

// Sources of the last three dimensions, the last one last; dimensions that are not padded map to themselves.
struct Map {
  std::vector<int64_t> from[3];
  int64_t outer = 1, in[3] = {1, 1, 1};

  Map(const Tensor& x, std::span<const int64_t> padding, int64_t imm) {
    const int dims = static_cast<int>(imm & 7);
    for (int back = 0; back < 3; ++back) {
      const bool padded = back < dims;
      const int64_t size = padded ? SizeAt(x, back) : 1;
      in[2 - back] = size;
      from[2 - back] = Sources(size, padded ? padding[U(2 * back)] : 0, padded ? padding[U(2 * back + 1)] : 0,
                               (imm & kReflect) != 0);
    }
    for (int d = 0; d < x.rank - dims; ++d) outer *= x.shape[U(d)];
  }
  int64_t Out(int d) const { return static_cast<int64_t>(from[d].size()); }
  int64_t OutRows() const { return outer * Out(0) * Out(1); }
  // The row of the input that row r of the output is made of.
  int64_t SourceRow(int64_t r) const {
    const int64_t y = r % Out(1), z = r / Out(1) % Out(0), o = r / (Out(1) * Out(0));
    return (o * in[0] + from[0][U(z)]) * in[1] + from[1][U(y)];
  }
};

Status WantPadded(const Planning& plan, const Tensor& x, TensorToken x_name, std::span<const int64_t> padding,
                  TensorToken out) {
  const int dims = static_cast<int>(plan.op.imm & 7);
  if (x.rank != dims + 1 && x.rank != dims + 2) {
    return plan.Refuse("{} has {} dimensions.", plan.ParamName(x_name), x.rank)
        .Remedy("Padding of {} dimensions takes {} or {}.", dims, dims + 1, dims + 2);
  }
  if (padding.size() != U(2 * dims)) {
    return plan.Refuse("padding has {} values.", padding.size())
        .Remedy("Give two for each of the last {} dimensions.", dims);
  }
  Dims want = DimsOf(x);
  for (int back = 0; back < dims; ++back) {
    const int64_t size = SizeAt(x, back), before = padding[U(2 * back)], after = padding[U(2 * back + 1)];
    const bool reflect = (plan.op.imm & kReflect) != 0;
    if (size < 1 || (reflect && (before >= size || after >= size)) || size + before + after < 1) {
      return plan.Refuse("padding {} and {} for a dimension of size {}.", before, after, size)
          .Remedy("Dimension and result have elements; each side of a reflection is smaller than the dimension.");
    }
    want.size[U(x.rank - 1 - back)] = size + before + after;
  }
  return WantShape(plan, out, want, "that is not the padded shape");
}

template <class Word>
void Move(const Map& map, const void* from, void* to, Parallel& parallel) {
  const int64_t width = map.Out(2);
  parallel.For(map.OutRows(), Grain(width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Word* row = static_cast<const Word*>(from) + map.SourceRow(r) * map.in[2];
      Word* out = static_cast<Word*>(to) + r * width;
      for (int64_t i = 0; i < width; ++i) out[i] = row[map.from[2][U(i)]];
    }
  });
}

struct Wide {
  uint64_t a, b;
};

template <class A>
consteval Builder Padded(int64_t imm, std::string_view like) {
  return Op<A>()
      .Rules(DtypeIn(A::self, kAnyType), AnyShape(A::out), SameDtype(A::self, A::out))
      .Uses(A::padding)
      .Imm(imm)
      .Tolerance("exact")
      .Like(like)
      .Prepares([](Planning& p) { return WantPadded(p, p.args[A::self], A::self, p.args[A::padding], A::out); })
      .Does([](const Call& c) -> Status {
        const Map map(c.args[A::self], c.args[A::padding], c.op.imm);
        const simd::DenseIn x(c.args[A::self], c.parallel);
        const simd::DenseOut y(c.args[A::out], c.parallel);
        switch (ItemSize(x->dtype)) {
          case 1:
            Move<uint8_t>(map, x->data, y->data, c.parallel);
            break;
          case 2:
            Move<uint16_t>(map, x->data, y->data, c.parallel);
            break;
          case 4:
            Move<uint32_t>(map, x->data, y->data, c.parallel);
            break;
          case 8:
            Move<uint64_t>(map, x->data, y->data, c.parallel);
            break;
          default:
            Move<Wide>(map, x->data, y->data, c.parallel);
        }
        return {};
      });
}

template <class A>
consteval Builder PaddedBackward(int64_t imm, std::string_view like) {
  return Op<A>()
      .Rules(DtypeIn(A::self, kFloats | kComplexes), SameShape(A::self, A::gradInput), SameDtype(A::self, A::gradInput),
             SameDtype(A::self, A::gradOutput))
      .Uses(A::padding)
      .Imm(imm)
      .Tolerance("accumulated")
      .Like(like)
      .Prepares([](Planning& p) { return WantPadded(p, p.args[A::self], A::self, p.args[A::padding], A::gradOutput); })
      .Does([](const Call& c) -> Status {
        const Map map(c.args[A::self], c.args[A::padding], c.op.imm);
        return WithFloatOrComplex(c.args[A::self].dtype, [&]<class T>() -> Status {
          const Values<T> dy(c.args[A::gradOutput], c.parallel);
          Results<T> dx(c.args[A::gradInput], c.parallel);
          const int64_t plane = map.in[0] * map.in[1] * map.in[2], rows = map.Out(0) * map.Out(1), width = map.Out(2);
          c.parallel.For(map.outer, Grain(plane), [&](int64_t begin, int64_t end) {
            std::fill(dx.data() + begin * plane, dx.data() + end * plane, T{});
            for (int64_t r = begin * rows; r < end * rows; ++r) {
              T* to = dx.data() + map.SourceRow(r) * map.in[2];
              for (int64_t i = 0; i < width; ++i) to[map.from[2][U(i)]] += dy[r * width + i];
            }
          });
          return {};
        });
      });
}

}  // namespace

NPU_OP(ReflectionPad1d) = Padded<abi::ReflectionPad1d>(1 | kReflect, "torch.ops.aten.reflection_pad1d(self, padding)");
NPU_OP(ReflectionPad2d) = Padded<abi::ReflectionPad2d>(2 | kReflect, "torch.ops.aten.reflection_pad2d(self, padding)");
NPU_OP(ReflectionPad3d) = Padded<abi::ReflectionPad3d>(3 | kReflect, "torch.ops.aten.reflection_pad3d(self, padding)");
NPU_OP(ReplicationPad1d) = Padded<abi::ReplicationPad1d>(1, "torch.ops.aten.replication_pad1d(self, padding)");
NPU_OP(ReplicationPad2d) = Padded<abi::ReplicationPad2d>(2, "torch.ops.aten.replication_pad2d(self, padding)");
NPU_OP(ReplicationPad3d) = Padded<abi::ReplicationPad3d>(3, "torch.ops.aten.replication_pad3d(self, padding)");
NPU_OP(ReflectionPad1dBackward) = PaddedBackward<abi::ReflectionPad1dBackward>(
    1 | kReflect, "torch.ops.aten.reflection_pad1d_backward(gradOutput, self, padding)");
NPU_OP(ReflectionPad2dBackward) = PaddedBackward<abi::ReflectionPad2dBackward>(
    2 | kReflect, "torch.ops.aten.reflection_pad2d_backward(gradOutput, self, padding)");
NPU_OP(ReflectionPad3dBackward) = PaddedBackward<abi::ReflectionPad3dBackward>(
    3 | kReflect, "torch.ops.aten.reflection_pad3d_backward(gradOutput, self, padding)");
NPU_OP(ReplicationPad1dBackward) = PaddedBackward<abi::ReplicationPad1dBackward>(
    1, "torch.ops.aten.replication_pad1d_backward(gradOutput, self, padding)");
NPU_OP(ReplicationPad2dBackward) = PaddedBackward<abi::ReplicationPad2dBackward>(
    2, "torch.ops.aten.replication_pad2d_backward(gradOutput, self, padding)");
NPU_OP(ReplicationPad3dBackward) = PaddedBackward<abi::ReplicationPad3dBackward>(
    3, "torch.ops.aten.replication_pad3d_backward(gradOutput, self, padding)");

}  // namespace npu::ops
