// Rounding to 8 bits as the quantising operators share it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops::quant {

enum class Rounding : uint8_t { kNearest, kFloor, kCeil, kTrunc };

// Nothing for a word that is none.
inline std::optional<Rounding> RoundingOf(std::string_view text) {
  if (text == "round" || text == "rint" || text.empty()) return Rounding::kNearest;
  if (text == "floor") return Rounding::kFloor;
  if (text == "ceil") return Rounding::kCeil;
  if (text == "trunc") return Rounding::kTrunc;
  return std::nullopt;
}

inline int8_t ToByte(float v, Rounding mode = Rounding::kNearest) {
  switch (mode) {
    case Rounding::kNearest:
      v = std::nearbyint(v);
      break;
    case Rounding::kFloor:
      v = std::floor(v);
      break;
    case Rounding::kCeil:
      v = std::ceil(v);
      break;
    case Rounding::kTrunc:
      v = std::trunc(v);
      break;
  }
  return std::isnan(v) ? int8_t{0} : static_cast<int8_t>(std::clamp(v, -128.0f, 127.0f));
}

// The largest absolute value of a row over 127, and the row divided by it. A row of zeros has scale 0 and stays zero.
inline float RowToBytes(const float* row, int64_t n, int8_t* out) {
  float top = 0;
  for (int64_t i = 0; i < n; ++i) top = std::max(top, std::abs(row[i]));
  const float scale = top / 127.0f, back = scale == 0 ? 0.0f : 127.0f / top;
  for (int64_t i = 0; i < n; ++i) out[i] = ToByte(row[i] * back);
  return scale;
}

// int8 results of any layout.
class Bytes {
 public:
  Bytes(const Tensor& t, Parallel& parallel) : to_(t), parallel_(parallel), scratch_(t.Numel()) {
    data_ = t.Contiguous() ? t.As<int8_t>() : scratch_.data();
  }
  ~Bytes() {
    if (data_ == scratch_.data() && to_.Numel() > 0)
      simd::Copy(MakeContiguous(data_, DType::i8, to_.Shape()), to_, parallel_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  int8_t* data() { return data_; }
  int8_t& operator[](int64_t i) { return data_[i]; }

 private:
  Tensor to_;
  Parallel& parallel_;
  simd::Scratch<int8_t> scratch_;
  int8_t* data_;
};

// Four-bit results arrive as int32 or a type of their own.
inline Status WantBytes(const Planning& p, TensorToken out) {
  const Tensor* t = p.args.Maybe(out);
  if (t == nullptr || t->dtype == DType::i8) return {};
  return NotYet(p.op.name, fmt::format("results are made in int8; {} is {}", p.ParamName(out), Name(t->dtype)));
}

// One value for all, or one for each element of the last dimension.
struct PerColumn {
  const Values<float> values;
  PerColumn(const Tensor& t, Parallel& parallel) : values(t, parallel) {}
  float operator[](int64_t column) const { return values[values.size() == 1 ? 0 : column]; }
};
inline Status WantColumns(const Planning& p, TensorToken scale, int64_t columns) {
  const Tensor* t = p.args.Maybe(scale);
  if (t == nullptr || t->Numel() == 1 || t->Numel() == columns) return {};
  return p.Refuse("{} has shape {} for {} columns.", p.ParamName(scale), ShapeText(t->Shape()), columns)
      .Remedy("Give one value, or one for each column.");
}

}  // namespace npu::ops::quant
