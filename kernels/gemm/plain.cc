#include "kernels/gemm/plain.h"

#include <algorithm>
#include <complex>
#include <type_traits>

namespace npu::gemm {
namespace {

constexpr int64_t kCols = 64;
constexpr int64_t kWork = 1 << 15;  // multiplications worth a task

// Integers wrap: sums are unsigned, where overflow is defined. c64 is summed in double precision.
template <class T, bool kInt = std::is_integral_v<T>>
struct Sum {
  using type = T;
};
template <>
struct Sum<std::complex<float>, false> {
  using type = std::complex<double>;
};
template <class T>
struct Sum<T, true> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};

// Complex products are written out: the operator of std::complex repairs NaNs in a call.
template <class S>
inline void AddProduct(S& sum, S x, S y) {
  if constexpr (std::is_arithmetic_v<S>) {
    sum += x * y;
  } else {
    sum = S(sum.real() + (x.real() * y.real() - x.imag() * y.imag()), sum.imag() + (x.real() * y.imag() + x.imag() * y.real()));
  }
}

template <class T>
void Rows(const Problem& p, const Operand& oa, const Operand& ob, const Operand& oc, const Operand& os, int64_t begin,
          int64_t end) {
  using S = typename Sum<T>::type;
  const T* a = static_cast<const T*>(oa.data);
  const T* b = static_cast<const T*>(ob.data);
  const T* self = static_cast<const T*>(os.data);
  T* c = static_cast<T*>(oc.data);
  S alpha, beta;
  if constexpr (std::is_integral_v<T>) {
    alpha = static_cast<S>(static_cast<int64_t>(p.alpha.real()));
    beta = static_cast<S>(static_cast<int64_t>(p.beta.real()));
  } else if constexpr (std::is_floating_point_v<T>) {
    alpha = static_cast<S>(p.alpha.real());
    beta = static_cast<S>(p.beta.real());
  } else {
    alpha = p.alpha;
    beta = p.beta;
  }
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j0 = 0; j0 < p.n; j0 += kCols) {
      const int64_t cols = std::min(kCols, p.n - j0);
      S sum[kCols];
      std::fill_n(sum, kCols, S{0});
      for (int64_t k = 0; k < p.k; ++k) {
        const S x = static_cast<S>(a[i * oa.row + k * oa.col]);
        const T* row = b + k * ob.row + j0 * ob.col;
        if (ob.col == 1) {
          for (int64_t j = 0; j < cols; ++j) AddProduct(sum[j], x, static_cast<S>(row[j]));
        } else {
          for (int64_t j = 0; j < cols; ++j) AddProduct(sum[j], x, static_cast<S>(row[j * ob.col]));
        }
      }
      for (int64_t j = 0; j < cols; ++j) {
        S v = alpha * sum[j];
        if (self != nullptr) v += beta * static_cast<S>(self[i * os.row + (j0 + j) * os.col]);
        c[i * oc.row + (j0 + j) * oc.col] = static_cast<T>(v);
      }
    }
  }
}

template <class T>
void Run(Parallel& parallel, const Problem& p, const Operand& a, const Operand& b, const Operand& c, const Operand& s) {
  const int64_t grain = std::max<int64_t>(1, kWork / std::max<int64_t>(1, p.n * p.k));
  parallel.For(p.m, grain, [&](int64_t begin, int64_t end) { Rows<T>(p, a, b, c, s, begin, end); });
}

}  // namespace

Status Plain(Parallel& parallel, const Problem& p, const Operand& a, const Operand& b, const Operand& c,
             const Operand& self) {
  switch (c.dtype) {
    case DType::f64:
      Run<double>(parallel, p, a, b, c, self);
      break;
    case DType::c64:
      Run<std::complex<float>>(parallel, p, a, b, c, self);
      break;
    case DType::c128:
      Run<std::complex<double>>(parallel, p, a, b, c, self);
      break;
    case DType::i64:
      Run<int64_t>(parallel, p, a, b, c, self);
      break;
    case DType::u64:
      Run<uint64_t>(parallel, p, a, b, c, self);
      break;
    case DType::i32:
      Run<int32_t>(parallel, p, a, b, c, self);
      break;
    case DType::u32:
      Run<uint32_t>(parallel, p, a, b, c, self);
      break;
    case DType::i16:
      Run<int16_t>(parallel, p, a, b, c, self);
      break;
    case DType::u16:
      Run<uint16_t>(parallel, p, a, b, c, self);
      break;
    case DType::i8:
      Run<int8_t>(parallel, p, a, b, c, self);
      break;
    case DType::u8:
      Run<uint8_t>(parallel, p, a, b, c, self);
      break;
    default:
      return Error(Code::kUnsupportedDType, "A matrix product of {} is not computed.", Name(c.dtype))
          .Remedy("Use float32, float16, bfloat16, float64, complex64, complex128 or an integer type.");
  }
  return {};
}

}  // namespace npu::gemm
