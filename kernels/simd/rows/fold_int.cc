// Folds of i64 rows. Integers narrower than 64 bits are widened by rows/convert.h first.
#include <algorithm>
#include <limits>

#include "kernels/simd/rows/rows.h"

namespace npu::simd {
namespace {

// Through unsigned, where wrapping is defined.
int64_t Add(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t Mul(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }

template <Fold kFold>
int64_t Of(int64_t x, int64_t c) {
  switch (kFold) {
    case kSumSquare: return Mul(x, x);
    case kSumAbs: case kMaxAbs: case kMinAbs: return x < 0 ? Mul(x, -1) : x;
    case kSumCentered: return Mul(Add(x, Mul(c, -1)), Add(x, Mul(c, -1)));
    case kNonZero: return x != 0;
    case kNotNan: return 1;
    default: return x;
  }
}
template <Fold kFold>
int64_t Combine(int64_t a, int64_t b) {
  switch (kFold) {
    case kProd: return Mul(a, b);
    case kMax: case kMaxAbs: return std::max(a, b);
    case kMin: case kMinAbs: return std::min(a, b);
    default: return Add(a, b);
  }
}
template <Fold kFold>
constexpr int64_t Identity() {
  switch (kFold) {
    case kProd: return 1;
    case kMax: case kMaxAbs: return std::numeric_limits<int64_t>::min();
    case kMin: case kMinAbs: return std::numeric_limits<int64_t>::max();
    default: return 0;
  }
}

template <Fold kFold>
int64_t FoldRow(const int64_t* x, int64_t n, int64_t c) {
  int64_t acc = Identity<kFold>();
  for (int64_t i = 0; i < n; ++i) acc = Combine<kFold>(acc, Of<kFold>(x[i], c));
  return acc;
}
template <Fold kFold>
void FoldInto(int64_t* acc, const int64_t* x, const int64_t* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) acc[i] = Combine<kFold>(acc[i], Of<kFold>(x[i], c != nullptr ? c[i] : 0));
}
int64_t Find(const int64_t* x, int64_t v, int64_t n) { return std::find(x, x + n, v) - x; }

}  // namespace

template <>
const FoldTable<int64_t>& Folds<int64_t>() {
#define NPU_EACH_FOLD(F)                                                                                      \
  {F<kSum>,  F<kSumSquare>, F<kSumAbs>, F<kSumCentered>, F<kSumExp>, F<kNanSum>, F<kNonZero>, F<kNotNan>, F<kProd>, \
   F<kMax>, F<kMin>, F<kMaxAbs>, F<kMinAbs>}
  static constexpr FoldTable<int64_t> kTable = {NPU_EACH_FOLD(FoldRow), NPU_EACH_FOLD(FoldInto), Find};
#undef NPU_EACH_FOLD
  return kTable;
}

}  // namespace npu::simd
