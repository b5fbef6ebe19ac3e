// Philox 4x32-10 and the transforms that need vector arithmetic.
#include "kernels/simd/random/philox_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/random/philox.cc"
#include <hwy/foreach_target.h>  // NOLINT: must come before highway.h
#include <hwy/highway.h>

#include "kernels/simd/rows/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npu::simd::HWY_NAMESPACE {

// High and low half of 32 by 32 bit products.
template <class D32, class V>
HWY_INLINE void Product(D32 d32, V a, V m, V* high, V* low) {
  const hn::Repartition<uint64_t, D32> d64;
  const auto even = hn::MulEven(a, m);
  const auto odd = hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(hn::BitCast(d64, a))), m);
  *low = hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(odd)), hn::BitCast(d32, even));
  *high = hn::OddEven(hn::BitCast(d32, odd), hn::BitCast(d32, hn::ShiftRight<32>(even)));
}

void Words(uint64_t seed, uint64_t offset, uint64_t first, int64_t blocks, uint32_t* out) {
  const hn::ScalableTag<uint32_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  for (int64_t b = 0; b < blocks; b += lanes) {
    // The low word of a counter may run over within a vector: build both words lane by lane then.
    const uint64_t base = first + static_cast<uint64_t>(b);
    HWY_ALIGN uint32_t low[HWY_MAX_BYTES / 4];
    HWY_ALIGN uint32_t high[HWY_MAX_BYTES / 4];
    for (int64_t i = 0; i < lanes; ++i) {
      low[i] = static_cast<uint32_t>(base + static_cast<uint64_t>(i));
      high[i] = static_cast<uint32_t>((base + static_cast<uint64_t>(i)) >> 32);
    }
    auto c0 = hn::Load(d, low), c1 = hn::Load(d, high);
    auto c2 = hn::Set(d, static_cast<uint32_t>(offset)), c3 = hn::Set(d, static_cast<uint32_t>(offset >> 32));
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      decltype(c0) h0, l0, h1, l1;
      Product(d, c0, m0, &h0, &l0);
      Product(d, c2, m1, &h1, &l1);
      c0 = hn::Xor(hn::Xor(h1, c1), hn::Set(d, k0));
      c1 = l1;
      c2 = hn::Xor(hn::Xor(h0, c3), hn::Set(d, k1));
      c3 = l0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    if (b + lanes <= blocks) {
      hn::StoreInterleaved4(c0, c1, c2, c3, d, out + 4 * b);
    } else {
      HWY_ALIGN uint32_t buffer[HWY_MAX_BYTES];
      hn::StoreInterleaved4(c0, c1, c2, c3, d, buffer);
      std::memcpy(out + 4 * b, buffer, static_cast<size_t>(blocks - b) * 16);
    }
  }
}

// [0, 1) with 24 bits.
void Uniform(const uint32_t* words, float scale, float shift, float* out, int64_t n) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  const hn::RebindToSigned<decltype(df)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto unit = hn::Set(df, 0x1p-24f), sv = hn::Set(df, scale), bv = hn::Set(df, shift);
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t rest = n - i;
    const auto w = rest >= lanes ? hn::LoadU(du, words + i) : LoadTail(du, words + i, rest);
    const auto u = hn::Mul(hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRight<8>(w))), unit);
    const auto v = hn::MulAdd(u, sv, bv);
    if (rest >= lanes) hn::StoreU(v, df, out + i);
    else StoreTail(v, df, out + i, rest);
  }
}

// Box–Muller: pairs of words become pairs of independent normal numbers. n is even.
void Normal(const uint32_t* words, float* out, int64_t n) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  const hn::RebindToSigned<decltype(df)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  const auto unit = hn::Set(df, 0x1p-24f), turn = hn::Set(df, 0x1p-24f * 6.2831853071795865f), one = hn::Set(df, 1.0f);
  HWY_ALIGN uint32_t in[2 * HWY_MAX_BYTES / 4] = {};
  HWY_ALIGN float result[2 * HWY_MAX_BYTES / 4];
  for (int64_t i = 0; i < n; i += 2 * lanes) {
    const int64_t take = n - i < 2 * lanes ? n - i : 2 * lanes;
    const uint32_t* from = words + i;
    if (take < 2 * lanes) {
      std::memcpy(in, from, static_cast<size_t>(take) * 4);
      from = in;
    }
    hn::Vec<decltype(du)> a, b;
    hn::LoadInterleaved2(du, from, a, b);
    // (0, 1]: the logarithm stays finite.
    const auto u = hn::MulAdd(hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRight<8>(a))), unit, unit);
    const auto angle = hn::Mul(hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRight<8>(b))), turn);
    const auto log_u = hn::IfThenElse(hn::Eq(u, one), hn::Zero(df), hn::Log(df, u));
    const auto radius = hn::Sqrt(hn::Mul(hn::Set(df, -2.0f), log_u));
    const auto x = hn::Mul(radius, hn::Cos(df, angle)), y = hn::Mul(radius, hn::Sin(df, angle));
    if (take == 2 * lanes) {
      hn::StoreInterleaved2(x, y, df, out + i);
    } else {
      hn::StoreInterleaved2(x, y, df, result);
      std::memcpy(out + i, result, static_cast<size_t>(take) * 4);
    }
  }
}

const PhiloxTable* Table() {
  static constexpr PhiloxTable kTable = {Words, Uniform, Normal};
  return &kTable;
}

}  // namespace npu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::simd {
HWY_EXPORT(Table);
const PhiloxTable& PhiloxRows() {
  static const PhiloxTable& table = *HWY_DYNAMIC_DISPATCH(Table)();
  return table;
}
}  // namespace npu::simd
#endif  // HWY_ONCE
