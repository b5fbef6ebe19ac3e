#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/check/operators.h"

namespace npu::check {
namespace {

using Judge = std::function<double(double, double, double)>;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double HardSigmoid(double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }
double Sinc(double x) { return x == 0 ? 1 : std::sin(M_PI * x) / (M_PI * x); }
// The inverse of erf by Newton's steps, from a bound that converges for |x| < 1.
double ErfInv(double x) {
  double y = 0;
  for (int i = 0; i < 60; ++i) y -= (std::erf(y) - x) / (2 / std::sqrt(M_PI) * std::exp(-y * y));
  return y;
}
// The remainder with the sign of the divisor, as Python's.
double Remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

struct Unary {
  const char* name;
  double (*f)(double);
  double low, high;
  bool in_place, list;  // also aclnnInplaceX, aclnnForeachX
  bool halves = false;
};

const Unary kUnary[] = {
    {"Abs", [](double x) { return std::fabs(x); }, -2, 2, false, true, true},
    {"Acos", std::acos, -0.9, 0.9, true, true},
    {"Acosh", std::acosh, 1.1, 4, true, false},
    {"Asin", std::asin, -0.9, 0.9, true, true},
    {"Asinh", std::asinh, -3, 3, true, false},
    {"Atan", std::atan, -3, 3, true, true},
    {"Atanh", std::atanh, -0.9, 0.9, true, false},
    {"Ceil", std::ceil, -5, 5, true, false, true},
    {"Cos", std::cos, -3, 3, true, true, true},
    {"Cosh", std::cosh, -3, 3, true, true},
    {"Erf", std::erf, -3, 3, true, true, true},
    {"Erfc", std::erfc, -2, 2, true, true},
    {"Erfinv", ErfInv, -0.9, 0.9, true, false},
    {"Exp", std::exp, -3, 3, true, true, true},
    {"Exp2", std::exp2, -3, 3, true, false},
    {"Expm1", std::expm1, -2, 2, true, true, true},
    {"Floor", std::floor, -5, 5, true, false, true},
    {"Frac", [](double x) { return x - std::trunc(x); }, -5, 5, true, false},
    {"Gelu", [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, -3, 3, false, false, true},
    {"Hardsigmoid", HardSigmoid, -5, 5, true, false, true},
    {"Hardswish", [](double x) { return x * HardSigmoid(x); }, -5, 5, true, false, true},
    {"Log", std::log, 0.1, 4, true, true, true},
    {"Log10", std::log10, 0.1, 4, true, true},
    {"Log1p", std::log1p, -0.5, 4, true, true, true},
    {"Log2", std::log2, 0.1, 4, true, true, true},
    {"LogSigmoid", [](double x) { return -std::log1p(std::exp(-x)); }, -4, 4, false, false, true},
    {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, -4, 4, true, false, true},
    {"Neg", [](double x) { return -x; }, -2, 2, false, true, true},
    {"Reciprocal", [](double x) { return 1 / x; }, 0.2, 4, true, true, true},
    {"Relu", [](double x) { return std::max(x, 0.0); }, -2, 2, true, false, true},
    {"Round", [](double x) { return std::nearbyint(x); }, -5, 5, false, false},
    {"Rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.2, 4, true, false, true},
    {"Sigmoid", Sigmoid, -4, 4, true, true, true},
    {"Sign", Sign, -2, 2, false, true, true},
    {"Silu", [](double x) { return x * Sigmoid(x); }, -4, 4, false, false, true},
    {"Sin", std::sin, -3, 3, true, true, true},
    {"Sinc", Sinc, 0.1, 3, true, false},
    {"Sinh", std::sinh, -3, 3, true, true},
    {"Sqrt", std::sqrt, 0.1, 4, true, true, true},
    {"Tan", std::tan, -1.2, 1.2, true, true},
    {"Tanh", std::tanh, -3, 3, true, true, true},
    {"Trunc", std::trunc, -5, 5, false, false},
};

struct Binary {
  const char* name;  // of the tensor form
  double (*f)(double, double);
  double low, high;
  bool in_place, truth, whole, halves = false;
};

const Binary kBinary[] = {
    {"Atan2", std::atan2, 0.2, 2, true, false, false},
    {"Div", [](double a, double b) { return a / b; }, 0.2, 3, true, false, false, true},
    {"Mul", [](double a, double b) { return a * b; }, -2, 2, true, false, false, true},
    {"Maximum", [](double a, double b) { return std::max(a, b); }, -2, 2, false, false, false, true},
    {"Minimum", [](double a, double b) { return std::min(a, b); }, -2, 2, false, false, false, true},
    {"ClampMaxTensor", [](double a, double b) { return std::min(a, b); }, -2, 2, true, false, false},
    {"ClampMinTensor", [](double a, double b) { return std::max(a, b); }, -2, 2, true, false, false},
    {"PowTensorTensor", [](double a, double b) { return std::pow(a, b); }, 0.2, 2, true, false, false},
    {"FmodTensor", [](double a, double b) { return std::fmod(a, b); }, 1, 50, true, false, true},
    {"RemainderTensorTensor", Remainder, 1, 50, true, false, true},
    {"FloorDivide", [](double a, double b) { return std::floor(a / b); }, 1, 50, true, false, true},
    {"LogAddExp", [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); }, -2, 2, false, false, false},
    {"LogAddExp2", [](double a, double b) { return std::log2(std::exp2(a) + std::exp2(b)); }, -2, 2, false, false,
     false},
    {"XLogYTensor", [](double a, double b) { return a * std::log(b); }, 0.2, 2, false, false, false},
    {"SigmoidBackward", [](double a, double b) { return a * b * (1 - b); }, 0.1, 0.9, false, false, false, true},
    {"TanhBackward", [](double a, double b) { return a * (1 - b * b); }, -0.9, 0.9, false, false, false, true},
    {"GeluBackward",
     [](double g, double x) {
       return g * (0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI));
     },
     -2, 2, false, false, false, true},
    {"SiluBackward", [](double g, double x) { return g * Sigmoid(x) * (1 + x * (1 - Sigmoid(x))); }, -2, 2, false,
     false, false, true},
    {"HardswishBackward", [](double g, double x) { return g * (x <= -3  ? 0
                                                               : x >= 3 ? 1
                                                                        : x / 3 + 0.5); }, -2.9, 2.9,
     false, false, false, true},
    {"HardsigmoidBackward", [](double g, double x) { return g * (x > -3 && x < 3 ? 1.0 / 6 : 0); }, -2.9, 2.9, false,
     false, false, true},
    {"EqTensor", [](double a, double b) { return double(a == b); }, 0, 3, true, true, true},
    {"NeTensor", [](double a, double b) { return double(a != b); }, 0, 3, true, true, true},
    {"GtTensor", [](double a, double b) { return double(a > b); }, 0, 3, true, true, true},
    {"GeTensor", [](double a, double b) { return double(a >= b); }, 0, 3, true, true, true},
    {"LtTensor", [](double a, double b) { return double(a < b); }, 0, 3, true, true, true},
    {"LeTensor", [](double a, double b) { return double(a <= b); }, 0, 3, true, true, true},
    {"LogicalAnd", [](double a, double b) { return double(a != 0 && b != 0); }, 0, 1, true, true, true},
    {"LogicalOr", [](double a, double b) { return double(a != 0 || b != 0); }, 0, 1, true, true, true},
    {"LogicalXor", [](double a, double b) { return double((a != 0) != (b != 0)); }, 0, 1, false, true, true},
    {"BitwiseOrTensor", [](double a, double b) { return double(int(a) | int(b)); }, 0, 1000, false, false, true},
    {"BitwiseXorTensor", [](double a, double b) { return double(int(a) ^ int(b)); }, 0, 1000, true, false, true},
    {"BitwiseAndTensor", [](double a, double b) { return double(int(a) & int(b)); }, 0, 1000, true, false, true},
};

struct Scalar {
  const char* name;
  double (*f)(double, double);
  double low, high;
  bool in_place, truth, whole;
};

const Scalar kScalar[] = {
    {"Muls", [](double a, double s) { return a * s; }, -2, 2, true, false, false},
    {"Divs", [](double a, double s) { return a / s; }, -2, 2, true, false, false},
    {"ClampMax", [](double a, double s) { return std::min(a, s); }, -4, 4, true, false, false},
    {"ClampMin", [](double a, double s) { return std::max(a, s); }, -4, 4, false, false, false},
    {"LeakyRelu", [](double a, double s) { return a > 0 ? a : a * s; }, -2, 2, true, false, false},
    {"Celu", [](double a, double s) { return std::max(a, 0.0) + std::min(0.0, s * std::expm1(a / s)); }, -2, 2, true,
     false, false},
    {"Hardshrink", [](double a, double s) { return std::fabs(a) > s ? a : 0; }, -6, 6, false, false, false},
    {"Softshrink", [](double a, double s) { return a > s    ? a - s
                                                   : a < -s ? a + s
                                                            : 0; }, -6, 6, false, false, false},
    {"PowTensorScalar", [](double a, double s) { return std::pow(a, s); }, 0.2, 2, true, false, false},
    {"FmodScalar", [](double a, double s) { return std::fmod(a, s); }, 0, 50, true, false, true},
    {"RemainderTensorScalar", Remainder, 0, 50, true, false, true},
    {"FloorDivides", [](double a, double s) { return std::floor(a / s); }, 0, 50, true, false, true},
    {"EqScalar", [](double a, double s) { return double(a == s); }, 0, 5, true, true, true},
    {"NeScalar", [](double a, double s) { return double(a != s); }, 0, 5, true, true, true},
    {"GtScalar", [](double a, double s) { return double(a > s); }, 0, 5, true, true, true},
    {"GeScalar", [](double a, double s) { return double(a >= s); }, 0, 5, true, true, true},
    {"LtScalar", [](double a, double s) { return double(a < s); }, 0, 5, true, true, true},
    {"LeScalar", [](double a, double s) { return double(a <= s); }, 0, 5, true, true, true},
    {"BitwiseAndScalar", [](double a, double s) { return double(int(a) & int(s)); }, 0, 1000, true, false, true},
    {"BitwiseOrScalar", [](double a, double s) { return double(int(a) | int(s)); }, 0, 1000, false, false, true},
    {"BitwiseXorScalar", [](double a, double s) { return double(int(a) ^ int(s)); }, 0, 1000, true, false, true},
};

// A second tensor and a number, or two numbers of which the last is alpha.
struct Alpha {
  const char *name, *shape;
  Judge judge;
  bool halves = false;
};
const Alpha kAlpha[] = {
    {"aclnnAdd", "ttso", [](double a, double b, double s) { return a + s * b; }, true},
    {"aclnnSub", "ttso", [](double a, double b, double s) { return a - s * b; }, true},
    {"aclnnRsub", "ttso", [](double a, double b, double s) { return b - s * a; }},
    {"aclnnInplaceAdd", "rts", [](double a, double b, double s) { return a + s * b; }},
    {"aclnnInplaceSub", "rts", [](double a, double b, double s) { return a - s * b; }},
    {"aclnnAdds", "tsso", [](double a, double, double s) { return a + s * s; }},
    {"aclnnSubs", "tsso", [](double a, double, double s) { return a - s * s; }},
    {"aclnnRsubs", "tsso", [](double a, double, double s) { return s - s * a; }},
    {"aclnnInplaceAdds", "rss", [](double a, double, double s) { return a + s * s; }},
    {"aclnnInplaceSubs", "rss", [](double a, double, double s) { return a - s * s; }},
    {"aclnnLerps", "ttso", [](double a, double b, double s) { return a + s * (b - a); }},
    {"aclnnInplaceLerps", "rts", [](double a, double b, double s) { return a + s * (b - a); }},
    {"aclnnThreshold", "tsso", [](double a, double, double s) { return a > s ? a : s; }},
    {"aclnnThresholdBackward", "ttso", [](double g, double x, double s) { return x > s ? g : 0; }, true},
    {"aclnnForeachMulList", "LLO", [](double a, double b, double) { return a * b; }},
    {"aclnnForeachMaximumList", "LLO", [](double a, double b, double) { return std::max(a, b); }},
    {"aclnnForeachMinimumList", "LLO", [](double a, double b, double) { return std::min(a, b); }},
};

Judge One(double (*f)(double)) {
  return [f](double a, double, double) { return f(a); };
}
Judge Two(double (*f)(double, double)) {
  return [f](double a, double b, double) { return f(a, b); };
}
Judge WithNumber(double (*f)(double, double)) {
  return [f](double a, double, double s) { return f(a, s); };
}

}  // namespace

std::vector<OperatorCase> ElementwiseCases() {
  std::vector<OperatorCase> cases;
  for (const Unary& u : kUnary) {
    const std::string name = u.name;
    cases.push_back(
        {.name = "aclnn" + name, .shape = "to", .judge = One(u.f), .low = u.low, .high = u.high, .halves = u.halves});
    if (u.in_place) cases.push_back({"aclnnInplace" + name, "r", One(u.f), u.low, u.high});
    if (u.list) cases.push_back({"aclnnForeach" + name, "LO", One(u.f), u.low, u.high});
  }
  for (const Binary& b : kBinary) {
    const std::string name = b.name;
    cases.push_back({.name = "aclnn" + name,
                     .shape = "tto",
                     .judge = Two(b.f),
                     .low = b.low,
                     .high = b.high,
                     .truth = b.truth,
                     .whole = b.whole,
                     .halves = b.halves});
    if (b.in_place) cases.push_back({"aclnnInplace" + name, "rt", Two(b.f), b.low, b.high, false, b.whole});
  }
  for (const Scalar& s : kScalar) {
    const std::string name = s.name;
    cases.push_back({"aclnn" + name, "tso", WithNumber(s.f), s.low, s.high, s.truth, s.whole});
    if (s.in_place) cases.push_back({"aclnnInplace" + name, "rs", WithNumber(s.f), s.low, s.high, false, s.whole});
  }
  for (const Alpha& a : kAlpha)
    cases.push_back({.name = a.name, .shape = a.shape, .judge = a.judge, .halves = a.halves});
  return cases;
}

}  // namespace npu::check
