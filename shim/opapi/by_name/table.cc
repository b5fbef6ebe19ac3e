// The operators by type name. What an operator is can be read off its line; most are a view of an operand, copied.
#include <algorithm>
#include <bit>
#include <numeric>

#include "ops/rnn/dynamic.h"
#include "ops/vision/boxes.h"
#include "runtime/context/overflow.h"
#include "shim/opapi/by_name/call.h"

namespace npu::ops {
extern const OpDef op_BatchMatMul, op_Cast, op_Ceil, op_ConstantPadNd, op_EqScalar, op_EqTensor, op_GeScalar,
    op_GeTensor, op_GtScalar, op_GtTensor, op_InplaceFillScalar, op_LeScalar, op_LeTensor, op_LtScalar, op_LtTensor,
    op_NeScalar, op_NeTensor, op_MaxDim, op_MinDim, op_Mish, op_MishBackward, op_ReduceSum, op_Round, op_RoundDecimals,
    op_ScaledMaskedSoftmax, op_ScaledMaskedSoftmaxBackward, op_Silu, op_SiluBackward, op_Trunc, op_named_CdistGrad;
}

namespace npu::opapi {
namespace {

using Dims = std::vector<int64_t>;

size_t U(int64_t i) { return static_cast<size_t>(i); }
int64_t Count(const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); }

// self viewed by (size, stride) = src viewed by (size, stride). Offsets count from the operands' addresses.
Status ViewCopy(NamedCall& c) {
  NPU_TRY(c.CheckCounts(8, 1));
  Dims to_size, to_stride, to_offset, from_size, from_stride, from_offset;
  NPU_TRY(c.Ints(1, &to_size));
  NPU_TRY(c.Ints(2, &to_stride));
  NPU_TRY(c.Ints(3, &to_offset));
  NPU_TRY(c.Ints(5, &from_size));
  NPU_TRY(c.Ints(6, &from_stride));
  NPU_TRY(c.Ints(7, &from_offset));
  if (to_size.size() != to_stride.size() || from_size.size() != from_stride.size()) {
    return c
        .Refuse("sizes and strides have {} and {}, {} and {} values.", to_size.size(), to_stride.size(),
                from_size.size(), from_stride.size())
        .Remedy("Give one stride for each size.");
  }
  const auto first = [](const Dims& v) { return v.empty() ? 0 : v[0]; };
  return c.Run(ops::op_InplaceCopy, c.Tensor(c.InOperand(0), to_size, to_stride, first(to_offset)),
               c.Tensor(c.InOperand(4), from_size, from_stride, first(from_offset)));
}

Status AsStrided(NamedCall& c) {
  NPU_TRY(c.CheckCounts(4, 1));
  Dims size, stride, offset;
  NPU_TRY(c.Ints(1, &size));
  NPU_TRY(c.Ints(2, &stride));
  NPU_TRY(c.Ints(3, &offset));
  if (size.size() != stride.size())
    return c.Refuse("there are {} sizes and {} strides.", size.size(), stride.size())
        .Remedy("Give one stride for each size.");
  return c.CopyView(c.InOperand(0), size, stride, offset.empty() ? 0 : offset[0], 0);
}

Status Identity(NamedCall& c) {
  NPU_TRY(c.CheckCounts(1, 1));
  return c.Run(ops::op_InplaceCopy, c.Out(0), c.In(0));
}

Status Transposed(NamedCall& c, const Dims& shape, const Dims& perm) {
  const Dims strides = DenseStrides(shape);
  Dims out_shape, out_strides;
  Dims seen = perm;
  std::sort(seen.begin(), seen.end());
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen.size() != shape.size() || seen[i] != static_cast<int64_t>(i))
      return c.Refuse("perm does not name the {} dimensions once each.", shape.size());
  }
  for (int64_t p : perm) out_shape.push_back(shape[U(p)]), out_strides.push_back(strides[U(p)]);
  return c.CopyView(c.InOperand(0), out_shape, out_strides, 0, 0);
}

Status Transpose(NamedCall& c) {
  NPU_TRY(c.CheckCounts(2, 1));
  Dims perm;
  NPU_TRY(c.Ints(1, &perm));
  return Transposed(c, c.InOperand(0).dims, perm);
}

// transpose_first: permute, then reshape; else reshape to `shape`, then permute. In memory the reshape is nothing.
Status ConfusionTranspose(NamedCall& c) {
  NPU_TRY(c.CheckCounts(1, 1));
  const bool first = c.Bool("transpose_first", true);
  const Dims shape = first ? c.InOperand(0).dims : c.IntList("shape");
  if (Count(shape) != Count(c.InOperand(0).dims))
    return c.Refuse("shape has {} elements of {}.", Count(shape), Count(c.InOperand(0).dims));
  return Transposed(c, shape, c.IntList("perm"));
}

Status BroadcastTo(NamedCall& c) {
  NPU_TRY(c.CheckCounts(2, 1));
  Dims size;
  NPU_TRY(c.Ints(1, &size));
  const Dims &from = c.InOperand(0).dims, strides = DenseStrides(from);
  Dims view(size.size());
  if (from.size() > size.size()) return c.Refuse("{} dimensions cannot be broadcast to {}.", from.size(), size.size());
  for (size_t d = 0; d < from.size(); ++d) {
    const size_t to = size.size() - from.size() + d;
    if (from[d] != 1 && from[d] != size[to]) return c.Refuse("size {} cannot be broadcast to {}.", from[d], size[to]);
    view[to] = from[d] == 1 ? 0 : strides[d];
  }
  return c.CopyView(c.InOperand(0), size, view, 0, 0);
}

Status Slice(NamedCall& c) {
  NPU_TRY(c.CheckCounts(3, 1));
  Dims begin, size;
  NPU_TRY(c.Ints(1, &begin));
  NPU_TRY(c.Ints(2, &size));
  const Dims &from = c.InOperand(0).dims, strides = DenseStrides(from);
  if (begin.size() != from.size() || size.size() != from.size())
    return c.Refuse("there are {} offsets and {} sizes for {} dimensions.", begin.size(), size.size(), from.size());
  int64_t offset = 0;
  for (size_t d = 0; d < from.size(); ++d) {
    if (size[d] == -1) size[d] = from[d] - begin[d];
    if (begin[d] < 0 || size[d] < 0 || begin[d] + size[d] > from[d])
      return c.Refuse("{} elements from {} of dimension {} of size {}.", size[d], begin[d], d, from[d]);
    offset += begin[d] * strides[d];
  }
  return c.CopyView(c.InOperand(0), size, strides, offset, 0);
}

Status StridedSlice(NamedCall& c) {
  NPU_TRY(c.CheckCounts(4, 1));
  Dims begin, end, step;
  NPU_TRY(c.Ints(1, &begin));
  NPU_TRY(c.Ints(2, &end));
  NPU_TRY(c.Ints(3, &step));
  const int64_t begin_mask = c.Int("begin_mask", 0), end_mask = c.Int("end_mask", 0),
                shrink = c.Int("shrink_axis_mask", 0);
  if (c.Int("ellipsis_mask", 0) != 0 || c.Int("new_axis_mask", 0) != 0)
    return NotYet("Operator StridedSlice", "ellipsis_mask and new_axis_mask are not computed yet.");
  const Dims &from = c.InOperand(0).dims, strides = DenseStrides(from);
  if (begin.size() > from.size() || end.size() != begin.size() || step.size() != begin.size()) {
    return c.Refuse("begin, end and strides have {}, {} and {} values for {} dimensions.", begin.size(), end.size(),
                    step.size(), from.size());
  }
  Dims shape, view;
  int64_t offset = 0;
  for (size_t d = 0; d < from.size(); ++d) {
    if (d >= begin.size()) {
      shape.push_back(from[d]);
      view.push_back(strides[d]);
      continue;
    }
    if (step[d] < 1) return NotYet("Operator StridedSlice", "steps below 1 are not computed yet.");
    const auto wrap = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + from[d] : v, 0, from[d]); };
    const int64_t first = (begin_mask >> d & 1) != 0 ? 0 : wrap(begin[d]),
                  last = (end_mask >> d & 1) != 0 ? from[d] : wrap(end[d]);
    offset += first * strides[d];
    if ((shrink >> d & 1) != 0) {
      if (first >= from[d]) return c.Refuse("index {} of dimension {} of size {}.", begin[d], d, from[d]);
      continue;
    }
    shape.push_back(std::max<int64_t>(0, (last - first + step[d] - 1) / step[d]));
    view.push_back(strides[d] * step[d]);
  }
  if (Count(shape) == 0) return {};
  return c.CopyView(c.InOperand(0), shape, view, offset, 0);
}

// A comparison: tensor with tensor, tensor with a number, and the one that is meant when the number stands on the left.
struct Comparison {
  const ops::OpDef &tensors, &right, &left;
};

Status Compare(NamedCall& c, const Comparison& op) {
  NPU_TRY(c.CheckCounts(2, 1));
  double value = 0;
  if (c.IsHost(0)) {
    NPU_TRY(c.Real(0, &value));
    return c.Run(op.left, c.In(1), c.Number(value), c.Out(0));
  }
  if (c.IsHost(1)) {
    NPU_TRY(c.Real(1, &value));
    return c.Run(op.right, c.In(0), c.Number(value), c.Out(0));
  }
  return c.Run(op.tensors, c.In(0), c.In(1), c.Out(0));
}

Status Fill(NamedCall& c) {
  NPU_TRY(c.CheckCounts(2, 1));
  if (!c.IsHost(1)) {
    const Dims zero(c.OutOperand(0).dims.size(), 0);
    return c.CopyView(c.InOperand(1), c.OutOperand(0).dims, zero, 0, 0);
  }
  double value = 0;
  NPU_TRY(c.Real(1, &value));
  return c.Run(ops::op_InplaceFillScalar, c.Out(0), c.Number(value));
}

Status BatchMatMul(NamedCall& c) {
  NPU_TRY(c.CheckCounts(2, 1));
  uint64_t words[2];
  for (size_t i = 0; i < 2; ++i) {
    Dims shape = c.InOperand(i).dims, strides = DenseStrides(shape);
    if (shape.size() < 2) return c.Refuse("input {} has {} dimensions.", i, shape.size());
    if (c.Bool(i == 0 ? "adj_x1" : "adj_x2", false)) {
      std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
      std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
    }
    words[i] = c.Tensor(c.InOperand(i), shape, strides, 0);
  }
  return c.Run(ops::op_BatchMatMul, words[0], words[1], c.Out(0), 0);
}

Status ReduceSum(NamedCall& c) {
  NPU_TRY(c.CheckCounts(2, 1));
  Dims dims;
  NPU_TRY(c.Ints(1, &dims));
  return c.Run(ops::op_ReduceSum, c.In(0), c.Array(dims), c.Bool("keep_dims", false),
               static_cast<int64_t>(c.OutOperand(0).dtype), c.Out(0));
}

Status Pad(NamedCall& c) {
  NPU_TRY(c.CheckCounts(2, 1));
  Dims pairs, pads;
  NPU_TRY(c.Ints(1, &pairs));
  for (size_t d = pairs.size() / 2; d-- > 0;)
    pads.insert(pads.end(), {pairs[2 * d], pairs[2 * d + 1]});  // the last dimension first
  return c.Run(ops::op_ConstantPadNd, c.In(0), c.Array(pads), c.Number(int64_t{0}), c.Out(0));
}

Status Extreme(NamedCall& c, const ops::OpDef& op) {
  NPU_TRY(c.CheckCounts(1, 2));
  return c.Run(op, c.In(0), c.Int("dimension", 0), c.Bool("keep_dims", false), c.Out(1), c.Out(0));
}

Status Rounded(NamedCall& c, const ops::OpDef& op) {
  NPU_TRY(c.CheckCounts(1, 1));
  if (!IsFloat(c.InOperand(0).dtype)) return c.Run(ops::op_InplaceCopy, c.Out(0), c.In(0));  // whole numbers stay
  return c.Run(op, c.In(0), c.Out(0));
}

uint64_t Real(double v) { return std::bit_cast<uint64_t>(v); }

Status CdistGrad(NamedCall& c) {
  NPU_TRY(c.CheckCounts(4, 1));
  return c.Run(ops::op_named_CdistGrad, c.In(0), c.In(1), c.In(2), c.In(3), Real(c.Float("p", 2)), c.Out(0));
}

// A limit on the host is a number, one on the device a tensor.
Status Suppress(NamedCall& c) {
  NPU_TRY(c.CheckCounts(5, 2));
  uint64_t tensors[3] = {};
  double numbers[3] = {};
  for (size_t i = 0; i < 3; ++i) {
    if (c.IsHost(2 + i)) NPU_TRY(c.Real(2 + i, &numbers[i]));
    else tensors[i] = c.In(2 + i);
  }
  return c.Run(ops::op_named_NonMaxSuppression, c.In(0), c.In(1), tensors[0], tensors[1], tensors[2], Real(numbers[0]), Real(numbers[1]),
               Real(numbers[2]), c.Out(0), c.Out(1));
}

// Optional inputs in the middle are passed as empty ones; at the end they may be left out.
uint64_t Reversed(NamedCall& c) { return c.Text("direction", "UNIDIRECTIONAL") == "UNIDIRECTIONAL" ? 0 : 1; }

Status DynamicRnn(NamedCall& c) {
  NPU_TRY(c.CheckCounts(2, 8));
  const std::string order = c.Text("gate_order", "ijfo");
  return c.Run(ops::op_named_DynamicRNN, c.In(0), c.In(1), c.MaybeIn(2), c.MaybeIn(3), c.MaybeIn(4), c.MaybeIn(5),
               Reversed(c), Real(c.Float("forget_bias", 0)), reinterpret_cast<uint64_t>(order.c_str()), c.Out(0),
               c.Out(1), c.Out(2), c.Out(3), c.Out(4), c.Out(5), c.Out(6), c.Out(7));
}
Status DynamicRnnGrad(NamedCall& c) {
  NPU_TRY(c.CheckCounts(16, 5));
  const std::string order = c.Text("gate_order", "ijfo");
  return c.Run(ops::op_named_DynamicRNNGrad, c.In(0), c.In(1), c.MaybeIn(4), c.MaybeIn(5), c.In(6), c.In(7),
               c.MaybeIn(8), c.MaybeIn(9), c.MaybeIn(10), c.In(11), c.In(12), c.In(13), c.In(14), c.In(15),
               c.MaybeIn(16), Reversed(c), reinterpret_cast<uint64_t>(order.c_str()), c.Out(0), c.Out(1), c.Out(2),
               c.Out(3), c.Out(4));
}
// The last input is the first state, with or without sequence lengths before it.
Status DynamicGru(NamedCall& c) {
  NPU_TRY(c.CheckCounts(5, 6));
  if (!c.Bool("reset_after", true))
    return NotYet("Operator DynamicGRUV2", "a reset before the product is not computed yet.");
  const std::string order = c.Text("gate_order", "zrh");
  const size_t state = c.request().in.size() > 6 ? 6 : 5;
  return c.Run(ops::op_named_DynamicGRUV2, c.In(0), c.In(1), c.In(2), c.MaybeIn(3), c.MaybeIn(4),
               state == 6 ? c.MaybeIn(5) : 0, c.MaybeIn(state), Reversed(c), reinterpret_cast<uint64_t>(order.c_str()),
               c.Out(0), c.Out(1), c.Out(2), c.Out(3), c.Out(4), c.Out(5));
}
Status DynamicGruGrad(NamedCall& c) {
  NPU_TRY(c.CheckCounts(12, 6));
  if (!c.Bool("reset_after", true))
    return NotYet("Operator DynamicGRUV2Grad", "a reset before the product is not computed yet.");
  const std::string order = c.Text("gate_order", "zrh");
  return c.Run(ops::op_named_DynamicGRUV2Grad, c.In(0), c.In(1), c.In(2), c.MaybeIn(4), c.In(5), c.MaybeIn(6),
               c.MaybeIn(7), c.In(8), c.In(9), c.In(10), c.In(11), c.MaybeIn(12), Reversed(c),
               reinterpret_cast<uint64_t>(order.c_str()), c.Out(0), c.Out(1), c.Out(2), c.Out(3), c.Out(4), c.Out(5));
}

// The overflow flag of saturation mode, to all operands: older forms hand in the memory they want it in.
Status FloatStatus(NamedCall& c) {
  NPU_ASSIGN(Ref<rt::Stream> stream, rt::ResolveStream(c.request().stream, c.request().type.data()));
  for (const auto* operands : {&c.request().in, &c.request().out}) {
    for (const ops::named::Operand& o : *operands) {
      const auto as = IsFloat(o.dtype) ? rt::FlagAs::kFloat : rt::FlagAs::kInteger;
      if (ItemSize(o.dtype) != 4) return c.Refuse("a status has the type {}.", Name(o.dtype)).Remedy("Pass float32 or int32.");
      NPU_TRY(rt::QueueOverflowRead(o.data, o.bytes, as, *stream, c.request().type.data(), "status"));
    }
  }
  return {};
}
Status ClearFloatStatus(NamedCall& c) {
  NPU_ASSIGN(Ref<rt::Stream> stream, rt::ResolveStream(c.request().stream, c.request().type.data()));
  NPU_TRY(rt::QueueOverflowClear(*stream));
  return FloatStatus(c);
}
Status AllocFloatStatus(NamedCall& c) {
  NPU_TRY(c.CheckCounts(0, 1));
  return c.Run(ops::op_InplaceFillScalar, c.Out(0), c.Number(int64_t{0}));
}

const NamedOp kOps[] = {
    {"ArgMaxWithValue", [](NamedCall& c) { return Extreme(c, ops::op_MaxDim); }},
    {"ArgMinWithValue", [](NamedCall& c) { return Extreme(c, ops::op_MinDim); }},
    {"AsStrided", AsStrided},
    {"BatchMatMul", BatchMatMul},
    {"BroadcastTo", BroadcastTo},
    {"Cast",
     [](NamedCall& c) -> Status {
       NPU_TRY(c.CheckCounts(1, 1));
       return c.Run(ops::op_Cast, c.In(0), static_cast<int64_t>(c.OutOperand(0).dtype), c.Out(0));
     }},
    {"CdistGrad", CdistGrad},
    {"Ceil", [](NamedCall& c) { return Rounded(c, ops::op_Ceil); }},
    {"ConfusionTransposeD", ConfusionTranspose},
    {"DynamicGRUV2", DynamicGru},
    {"DynamicGRUV2Grad", DynamicGruGrad},
    {"DynamicRNN", DynamicRnn},
    {"DynamicRNNGrad", DynamicRnnGrad},
    {"Fill", Fill},
    {"Equal",
     [](NamedCall& c) {
       return Compare(c, {ops::op_EqTensor, ops::op_EqScalar, ops::op_EqScalar});
     }},
    {"Greater",
     [](NamedCall& c) {
       return Compare(c, {ops::op_GtTensor, ops::op_GtScalar, ops::op_LtScalar});
     }},
    {"GreaterEqual",
     [](NamedCall& c) {
       return Compare(c, {ops::op_GeTensor, ops::op_GeScalar, ops::op_LeScalar});
     }},
    {"Less",
     [](NamedCall& c) {
       return Compare(c, {ops::op_LtTensor, ops::op_LtScalar, ops::op_GtScalar});
     }},
    {"LessEqual",
     [](NamedCall& c) {
       return Compare(c, {ops::op_LeTensor, ops::op_LeScalar, ops::op_GeScalar});
     }},
    {"NotEqual",
     [](NamedCall& c) {
       return Compare(c, {ops::op_NeTensor, ops::op_NeScalar, ops::op_NeScalar});
     }},
    {"Identity", Identity},
    {"Mish",
     [](NamedCall& c) -> Status {
       NPU_TRY(c.CheckCounts(1, 1));
       return c.Run(ops::op_Mish, c.In(0), c.Out(0));
     }},
    {"MishGrad",
     [](NamedCall& c) -> Status {
       NPU_TRY(c.CheckCounts(2, 1));
       return c.Run(ops::op_MishBackward, c.In(0), c.In(1), c.Out(0));
     }},
    {"NPUAllocFloatStatus", AllocFloatStatus},
    {"NPUClearFloatDebugStatus", ClearFloatStatus},
    {"NPUClearFloatStatus", ClearFloatStatus},
    {"NPUClearFloatStatusV2", ClearFloatStatus},
    {"NPUGetFloatDebugStatus", FloatStatus},
    {"NPUGetFloatStatus", FloatStatus},
    {"NPUGetFloatStatusV2", FloatStatus},
    {"NonMaxSuppressionV4", Suppress},
    {"Pad", Pad},
    {"ReduceSum", ReduceSum},
    {"Round",
     [](NamedCall& c) -> Status {
       NPU_TRY(c.CheckCounts(1, 1));
       const int64_t decimals = c.Int("decimals", 0);
       if (decimals == 0) return Rounded(c, ops::op_Round);
       if (!IsFloat(c.InOperand(0).dtype))
         return NotYet("Operator Round", "decimals of whole numbers are not computed yet.");
       return c.Run(ops::op_RoundDecimals, c.In(0), decimals, c.Out(0));
     }},
    {"ScaledMaskedSoftmax",
     [](NamedCall& c) -> Status {
       NPU_TRY(c.CheckCounts(2, 1));
       return c.Run(ops::op_ScaledMaskedSoftmax, c.In(0), c.In(1), Real(c.Float("scale", 1)), c.Bool("fixed_triu_mask", false), c.Out(0));
     }},
    {"ScaledMaskedSoftmaxGrad",
     [](NamedCall& c) -> Status {
       NPU_TRY(c.CheckCounts(3, 1));
       return c.Run(ops::op_ScaledMaskedSoftmaxBackward, c.In(0), c.In(1), c.In(2), Real(c.Float("scale", 1)), c.Bool("fixed_triu_mask", false), c.Out(0));
     }},
    {"Slice", Slice},
    {"StridedSlice", StridedSlice},
    {"Swish",
     [](NamedCall& c) -> Status {
       NPU_TRY(c.CheckCounts(1, 1));
       if (c.Float("scale", 1.0) != 1.0) return NotYet("Operator Swish", "a scale other than 1 is not computed yet.");
       return c.Run(ops::op_Silu, c.In(0), c.Out(0));
     }},
    {"SwishGrad",
     [](NamedCall& c) -> Status {
       NPU_TRY(c.CheckCounts(3, 1));
       return c.Run(ops::op_SiluBackward, c.In(0), c.In(1), c.Out(0));
     }},
    {"Transpose", Transpose},
    {"Trunc", [](NamedCall& c) { return Rounded(c, ops::op_Trunc); }},
    {"ViewCopy", ViewCopy},
};

Status RunNamed(const ops::named::Request& request) {
  for (const NamedOp& op : kOps) {
    if (request.type != op.type) continue;
    NamedCall call(request);
    return op.run(call);
  }
  return NotYet(fmt::format("Operator {} (aclopCompileAndExecute)", request.type));
}

[[maybe_unused]] const bool kReady = [] {
  ops::named::TheRunner().store(RunNamed, std::memory_order_release);
  return true;
}();

}  // namespace
}  // namespace npu::opapi
