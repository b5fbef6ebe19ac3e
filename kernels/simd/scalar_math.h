// One-element forms of operations whose definition is more than an expression. Semantics are torch's on the CPU.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace npu::simd {

// Integer division by zero has no value in torch (it raises); here it gives 0 as remainder and -1 as quotient, so that no
// signal leaves a kernel. The most negative number divided by -1 wraps.
template <class T>
inline T DivTruncOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return T(-1);
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
    return a / b;
  } else {
    return std::trunc(a / b);
  }
}

template <class T>
inline T DivFloorOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return T(-1);
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
    const T q = a / b;
    return q - static_cast<T>(a % b != 0 && (a < 0) != (b < 0));
  } else {
    if (b == 0) return a / b;
    T mod = std::fmod(a, b);
    T div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) div -= T(1);
    if (div == 0) return std::copysign(T(0), a / b);
    T floordiv = std::floor(div);
    if (div - floordiv > T(0.5)) floordiv += T(1);
    return floordiv;
  }
}

template <class T>
inline T RemainderOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0 || b == -1) return T(0);
    const T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  } else {
    const T m = std::fmod(a, b);
    return m != 0 && (b < 0) != (m < 0) ? m + b : m;
  }
}

template <class T>
inline T FmodOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) return b == 0 || b == -1 ? T(0) : a % b;
  else return std::fmod(a, b);
}

template <class T>
inline T GcdOf(T a, T b) {
  auto x = static_cast<std::make_unsigned_t<T>>(a), y = static_cast<std::make_unsigned_t<T>>(b);
  if (a < 0) x = 0 - x;
  if (b < 0) y = 0 - y;
  while (y != 0) {
    const auto t = x % y;
    x = y;
    y = t;
  }
  return static_cast<T>(x);
}

// Integers by squaring, wrapping; a negative exponent leaves only what is 1 or -1.
template <class T>
inline T PowOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b < 0) {
      if (a == 1) return T(1);
      if (a == -1) return b % 2 == 0 ? T(1) : T(-1);
      return T(0);
    }
    using U = std::make_unsigned_t<T>;
    U base = static_cast<U>(a), result = 1;
    for (auto e = static_cast<U>(b); e != 0; e >>= 1) {
      if (e & 1) result *= base;
      base *= base;
    }
    return static_cast<T>(result);
  } else {
    if constexpr (!std::is_floating_point_v<T>) {
      if (b == T(0)) return T(1);  // also of 0
    }
    return b == T(2) ? a * a : std::pow(a, b);
  }
}

template <class T>
inline T LogAddExpOf(T a, T b) {
  if (std::isinf(a) && a == b) return a;
  const T m = a > b ? a : b;
  return m + std::log1p(std::exp(-std::abs(a - b)));
}
template <class T>
inline T LogAddExp2Of(T a, T b) {
  constexpr T kLog2e = T(1.442695040888963407359924681001892137);
  if (std::isinf(a) && a == b) return a;
  const T m = a > b ? a : b;
  return m + std::log1p(std::exp2(-std::abs(a - b))) * kLog2e;
}

template <class T>
inline T SigmoidOf(T x) { return T(1) / (T(1) + std::exp(-x)); }
template <class T>
inline T SiluSlope(T x) {
  const T s = SigmoidOf(x);
  return s * (T(1) + x * (T(1) - s));
}
template <class T>
inline T GeluOf(T x) { return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440))); }
template <class T>
inline T GeluSlope(T x) {
  const T cdf = T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440)));
  return cdf + x * T(0.39894228040143267794) * std::exp(T(-0.5) * x * x);
}
template <class T>
inline T GeluTanhOf(T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + std::tanh(inner));
}
template <class T>
inline T GeluTanhSlope(T x) {
  const T kBeta = T(0.79788456080286535588), kKappa = T(0.044715);
  const T t = std::tanh(kBeta * (x + kKappa * x * x * x));
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * kBeta * (T(1) + T(3) * kKappa * x * x);
}
template <class T>
inline T SoftplusOf(T x) { return std::log1p(std::exp(x)); }
template <class T>
inline T SoftplusSlope(T x) {
  const T z = std::exp(x);
  return z / (z + T(1));
}
template <class T>
inline T LogSigmoidOf(T x) { return (x < T(0) ? x : T(0)) - std::log1p(std::exp(-std::abs(x))); }
template <class T>
inline T LogSigmoidSlope(T x) {
  const T z = std::exp(-std::abs(x));
  return (x < T(0) ? T(1) : T(0)) + (x < T(0) ? T(-1) : T(1)) * (z / (T(1) + z));
}
template <class T>
inline T MishOf(T x) { return x * std::tanh(std::log1p(std::exp(x))); }
template <class T>
inline T MishSlope(T x) {
  const T t = std::tanh(std::log1p(std::exp(x)));
  return t + x * SigmoidOf(x) * (T(1) - t * t);
}

// Inverse of erf: rational approximation, then two Newton steps in double.
inline double ErfinvOf(double y) {
  if (std::isnan(y) || y < -1 || y > 1) return std::numeric_limits<double>::quiet_NaN();
  if (y == 1) return std::numeric_limits<double>::infinity();
  if (y == -1) return -std::numeric_limits<double>::infinity();
  const double w = -std::log((1 - y) * (1 + y));
  const double c = 2 / (3.14159265358979323846 * 0.147) - w / 2;
  double x = std::copysign(std::sqrt(std::sqrt(c * c + w / 0.147) - c), y);
  for (int step = 0; step < 3; ++step) {
    // Away from zero the small difference to 1 is compared instead; y has the sign of x.
    const double error = std::abs(y) < 0.5 ? std::erf(x) - y : (1 - std::abs(y) - std::erfc(std::abs(x))) * (y < 0 ? -1 : 1);
    x -= error / (1.12837916709551257390 * std::exp(-x * x));
  }
  return x;
}

}  // namespace npu::simd
