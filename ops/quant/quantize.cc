// Floats to int8 and back.
#include "ops/quant/quantize.h"

#include <cstring>
#include <vector>

#include "gen/abi/ops.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)
using quant::Bytes, quant::PerColumn, quant::Rounding, quant::ToByte;

namespace {

// `axis` of the scale; -1 is the last one. The elements behind it.
int64_t InnerOf(const Tensor& x, int axis) {
  int64_t n = 1;
  for (int d = axis + 1; d < x.rank; ++d) n *= x.shape[static_cast<size_t>(d)];
  return n;
}

Status PrepareQuant(Planning& p, TensorToken x, TensorToken scale, TensorToken offset, TensorToken y, int64_t axis,
                    std::string_view round) {
  if (!quant::RoundingOf(round))
    return p.Refuse("roundMode is '{}'.", round).Remedy("Pass round, floor, ceil or trunc.");
  NPU_TRY(quant::WantBytes(p, y));
  const Tensor& t = *p.args.Maybe(x);
  const int d = WrapDim(axis, t.rank);
  if (d < 0)
    return p.Refuse("axis is {}, but x has shape {}.", axis, ShapeText(t.Shape())).Remedy("Name a dimension of x.");
  const int64_t columns = t.rank == 0 ? 1 : t.shape[static_cast<size_t>(d)];
  NPU_TRY(quant::WantColumns(p, scale, columns));
  return quant::WantColumns(p, offset, columns);
}

// y = round(x · scale + offset), with scale² in sqrt mode.
Status RunQuant(const Call& c, const Tensor& x, const Tensor& scale, const Tensor* offset, bool squares, Rounding mode,
                int64_t axis, const Tensor& y) {
  const Values<float> in(x, c.parallel);
  const PerColumn factor(scale, c.parallel);
  std::optional<PerColumn> shift;
  if (offset != nullptr) shift.emplace(*offset, c.parallel);
  Bytes out(y, c.parallel);
  const int d = WrapDim(axis, x.rank);
  const int64_t columns = x.rank == 0 ? 1 : x.shape[static_cast<size_t>(d)], inner = InnerOf(x, d);
  c.parallel.For(in.size(), 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i / inner % columns;
      const float s = factor[column];
      out[i] = ToByte(in[i] * (squares ? s * s : s) + (shift ? (*shift)[column] : 0.0f), mode);
    }
  });
  return {};
}

template <class A>
consteval Builder Quantises() {
  return Op<A>()
      .Rules(FloatTensors(A::x, A::scale, A::offset), SameShape(A::x, A::y), AnyDtype(A::y))
      .Uses(A::sqrtMode, A::roundMode, A::dstType)
      .Tolerance("exact")
      .Like("quantised(x, scale, offset)");
}

}  // namespace

using abi::AscendQuant, abi::AscendQuantV3, abi::AscendAntiQuant, abi::DynamicQuant, abi::DynamicQuantV2,
    abi::TransQuantParamV2;

NPU_OP(AscendQuant) = Quantises<AscendQuant>()
                          .Prepares([](Planning& p) {
                            using A = AscendQuant;
                            return PrepareQuant(p, A::x, A::scale, A::offset, A::y, -1, p.args[A::roundMode]);
                          })
                          .Does([](const Call& c) {
                            using A = AscendQuant;
                            const Rounding mode = *quant::RoundingOf(c.args[A::roundMode]);
                            return RunQuant(c, c.args[A::x], c.args[A::scale], c.args[A::offset], c.args[A::sqrtMode],
                                            mode, -1, c.args[A::y]);
                          });
NPU_OP(AscendQuantV3) = Quantises<AscendQuantV3>()
                            .Uses(AscendQuantV3::axis)
                            .Prepares([](Planning& p) {
                              using A = AscendQuantV3;
                              return PrepareQuant(p, A::x, A::scale, A::offset, A::y, p.args[A::axis],
                                                  p.args[A::roundMode]);
                            })
                            .Does([](const Call& c) {
                              using A = AscendQuantV3;
                              const Rounding mode = *quant::RoundingOf(c.args[A::roundMode]);
                              return RunQuant(c, c.args[A::x], c.args[A::scale], c.args[A::offset], c.args[A::sqrtMode],
                                              mode, c.args[A::axis], c.args[A::y]);
                            });
// y = (x + offset) · scale
NPU_OP(AscendAntiQuant) = Op<AscendAntiQuant>()
                              .Rules(DtypeIn(AscendAntiQuant::x, TypeSet{DType::i8}),
                                     FloatTensors(AscendAntiQuant::scale, AscendAntiQuant::offset, AscendAntiQuant::y),
                                     SameShape(AscendAntiQuant::x, AscendAntiQuant::y))
                              .Uses(AscendAntiQuant::dstType, AscendAntiQuant::sqrtMode)
                              .Tolerance("rounded")
                              .Like("(x + offset) * scale")
                              .Prepares([](Planning& p) -> Status {
                                using A = AscendAntiQuant;
                                NPU_TRY(quant::WantColumns(p, A::scale, SizeAt(p.args[A::x], 0)));
                                return quant::WantColumns(p, A::offset, SizeAt(p.args[A::x], 0));
                              })
                              .Does([](const Call& c) -> Status {
                                using A = AscendAntiQuant;
                                const Values<float> x(c.args[A::x], c.parallel);
                                const PerColumn scale(c.args[A::scale], c.parallel);
                                std::optional<PerColumn> offset;
                                if (c.args[A::offset] != nullptr) offset.emplace(*c.args[A::offset], c.parallel);
                                Results<float> y(c.args[A::y], c.parallel);
                                const int64_t n = SizeAt(c.args[A::x], 0);
                                const bool squares = c.args[A::sqrtMode];
                                c.parallel.For(x.size(), 16384, [&](int64_t begin, int64_t end) {
                                  for (int64_t i = begin; i < end; ++i) {
                                    const float s = scale[i % n];
                                    y[i] = (x[i] + (offset ? (*offset)[i % n] : 0.0f)) * (squares ? s * s : s);
                                  }
                                });
                                return {};
                              });

namespace {

Status WantRows(const Planning& p, TensorToken x, TensorToken smooth, TensorToken y, TensorToken scale) {
  NPU_TRY(quant::WantBytes(p, y));
  const Tensor& t = *p.args.Maybe(x);
  if (t.rank < 1) return p.Refuse("x has no dimension.").Remedy("Rows are along the last one.");
  NPU_TRY(quant::WantColumns(p, smooth, SizeAt(t, 0)));
  Dims rows = DimsOf(t);
  --rows.rank;
  return WantShape(p, scale, rows, "there is one for each row");
}

// The range of a row spread over -128 … 127: returns its scale.
float SpreadToBytes(const float* row, int64_t n, int8_t* to, float* offset) {
  float low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < n; ++i) low = std::min(low, row[i]), high = std::max(high, row[i]);
  const float scale = (high - low) / 255.0f;
  *offset = scale == 0 ? 0.0f : 127.0f - high / scale;
  for (int64_t i = 0; i < n; ++i) to[i] = scale == 0 ? int8_t{0} : ToByte(row[i] / scale + *offset);
  return scale;
}

template <class A>
Status RunRows(const Call& c, const Tensor* offset_out) {
  const Values<float> x(c.args[A::x], c.parallel);
  std::optional<PerColumn> smooth;
  if (c.args[A::smoothScalesOptional] != nullptr) smooth.emplace(*c.args[A::smoothScalesOptional], c.parallel);
  Bytes y(c.args[A::yOut], c.parallel);
  Results<float> scales(c.args[A::scaleOut], c.parallel);
  std::optional<Results<float>> offsets;
  if (offset_out != nullptr) offsets.emplace(*offset_out, c.parallel);
  const int64_t n = SizeAt(c.args[A::x], 0);
  c.parallel.For(scales.size(), Grain(n), [&](int64_t begin, int64_t end) {
    simd::Scratch<float> row(n);
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t i = 0; i < n; ++i) row[i] = x[r * n + i] * (smooth ? (*smooth)[i] : 1.0f);
      int8_t* to = y.data() + r * n;
      scales[r] = offsets ? SpreadToBytes(row.data(), n, to, &(*offsets)[r]) : quant::RowToBytes(row.data(), n, to);
    }
  });
  return {};
}

}  // namespace

NPU_OP(DynamicQuant) = Op<DynamicQuant>()
                           .Rules(FloatTensors(DynamicQuant::x, DynamicQuant::smoothScalesOptional,
                                               DynamicQuant::scaleOut),
                                  SameShape(DynamicQuant::x, DynamicQuant::yOut), AnyDtype(DynamicQuant::yOut),
                                  AnyShape(DynamicQuant::scaleOut))
                           .Tolerance("exact")
                           .Like("dynamic_quant(x, smoothScalesOptional)")
                           .Prepares([](Planning& p) {
                             using A = DynamicQuant;
                             return WantRows(p, A::x, A::smoothScalesOptional, A::yOut, A::scaleOut);
                           })
                           .Does([](const Call& c) { return RunRows<DynamicQuant>(c, nullptr); });
// With an offset: the range of the row is spread over -128 … 127. Without a place for it: as DynamicQuant.
NPU_OP(DynamicQuantV2) = Op<DynamicQuantV2>()
                             .Optional(DynamicQuantV2::offsetOut)
                             .Rules(FloatTensors(DynamicQuantV2::x, DynamicQuantV2::smoothScalesOptional,
                                                 DynamicQuantV2::scaleOut, DynamicQuantV2::offsetOut),
                                    SameShape(DynamicQuantV2::x, DynamicQuantV2::yOut), AnyDtype(DynamicQuantV2::yOut),
                                    AnyShapes(DynamicQuantV2::scaleOut, DynamicQuantV2::offsetOut))
                             .Uses(DynamicQuantV2::groupIndexOptional, DynamicQuantV2::dstType)
                             .Tolerance("exact")
                             .Like("dynamic_quant_asymmetric(x, smoothScalesOptional)")
                             .Prepares([](Planning& p) -> Status {
                               using A = DynamicQuantV2;
                               if (p.args[A::groupIndexOptional] != nullptr)
                                 return NotYet(p.op.name, "smooth scales of groups of rows are not applied");
                               NPU_TRY(WantRows(p, A::x, A::smoothScalesOptional, A::yOut, A::scaleOut));
                               if (p.args.Maybe(A::offsetOut) == nullptr) return {};
                               return WantRows(p, A::x, A::smoothScalesOptional, A::yOut, A::offsetOut);
                             })
                             .Does([](const Call& c) {
                               return RunRows<DynamicQuantV2>(c, c.args.Maybe(DynamicQuantV2::offsetOut));
                             });

// The scale's upper 19 bits below bit 32, bit 46, and the offset as nine bits from bit 37 on.
NPU_OP(TransQuantParamV2) =
    Op<TransQuantParamV2>()
        .Required(TransQuantParamV2::scale)
        .Rules(DtypeIn(TransQuantParamV2::scale, TypeSet{DType::f32}),
               DtypeIn(TransQuantParamV2::offset, TypeSet{DType::f32}), AnyShape(TransQuantParamV2::out),
               DtypeIn(TransQuantParamV2::out, TypeSet{DType::i64, DType::u64}))
        .Tolerance("exact")
        .Like("quant_parameters(scale, offset)")
        .Prepares([](Planning& p) -> Status {
          using A = TransQuantParamV2;
          const int64_t n = p.args[A::scale]->Numel(),
                        m = p.args[A::offset] == nullptr ? 1 : p.args[A::offset]->Numel();
          if (m != 1 && n != 1 && m != n)
            return p.Refuse("scale has {} values and offset {}.", n, m).Remedy("Give one of either, or equally many.");
          if (p.args[A::out].Numel() == std::max(n, m)) return {};
          return p.Refuse("out has {} elements for {} parameters.", p.args[A::out].Numel(), std::max(n, m))
              .Remedy("Give one place for each.");
        })
        .Does([](const Call& c) -> Status {
          using A = TransQuantParamV2;
          const Values<float> scale(*c.args[A::scale], c.parallel);
          std::optional<Values<float>> offset;
          if (c.args[A::offset] != nullptr) offset.emplace(*c.args[A::offset], c.parallel);
          Tensor to = c.args[A::out];
          to.dtype = DType::i64;
          Results<int64_t> out(to, c.parallel);
          for (int64_t i = 0; i < out.size(); ++i) {
            uint32_t bits;
            const float s = scale[scale.size() == 1 ? 0 : i];
            std::memcpy(&bits, &s, sizeof bits);
            uint64_t word = (bits & 0xffffe000u) | uint64_t{1} << 46;
            if (offset) {
              const float o = std::clamp(std::nearbyint((*offset)[offset->size() == 1 ? 0 : i]), -256.0f, 255.0f);
              word |= (static_cast<uint64_t>(static_cast<int64_t>(std::isnan(o) ? 0 : o)) & 0x1ff) << 37;
            }
            out[i] = static_cast<int64_t>(word);
          }
          return {};
        });

}  // namespace npu::ops
