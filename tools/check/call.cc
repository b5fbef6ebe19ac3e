#include "tools/check/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace npu::check {
namespace {

constexpr int kHostToDevice = 1, kDeviceToHost = 2;

int Bytes(int type) {
  if (type == kBool) return 1;
  if (type == kHalf || type == kBf16) return 2;
  return type == kInt64 || type == kDouble ? 8 : 4;
}

// Significand bits of a type, the hidden one included; its smallest normal exponent.
struct Floating {
  int bits, lowest;
};
Floating FormOf(int type) {
  return type == kHalf ? Floating{11, -14} : type == kBf16 ? Floating{8, -126} : Floating{24, -126};
}

// The bits of a half from a value that the type holds exactly.
uint16_t Pack(double value, int type) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const auto [bits, lowest] = FormOf(type);
  const int mantissa_bits = bits - 1, bias = 1 - lowest;
  const double size = std::fabs(value);
  if (size == 0) return sign;
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = std::max(exponent - 1, lowest);
  const auto mantissa = static_cast<uint32_t>(std::ldexp(size, mantissa_bits - exponent));
  // Below the normal range the hidden bit is missing and the field of the exponent is 0.
  const uint32_t field = mantissa >> mantissa_bits ? static_cast<uint32_t>(exponent + bias) : 0;
  return static_cast<uint16_t>(sign | field << mantissa_bits | (mantissa & ((1u << mantissa_bits) - 1)));
}

double Unpack(uint16_t word, int type) {
  const auto [bits, lowest] = FormOf(type);
  const int mantissa_bits = bits - 1, exponent_bits = 16 - bits;
  const uint32_t mantissa = word & ((1u << mantissa_bits) - 1);
  const uint32_t field = (word >> mantissa_bits) & ((1u << exponent_bits) - 1);
  double value = 0;
  if (field == (1u << exponent_bits) - 1)
    value = mantissa ? NAN : INFINITY;
  else if (field == 0)
    value = std::ldexp(mantissa, lowest - mantissa_bits);
  else
    value = std::ldexp(mantissa + (1u << mantissa_bits), static_cast<int>(field) - (1 - lowest) - mantissa_bits);
  return word & 0x8000 ? -value : value;
}

template <class T>
void Store(char* at, double v) {
  const T value = static_cast<T>(v);
  std::memcpy(at, &value, sizeof value);
}
template <class T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint64_t Word(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

double ToleranceOf(int type) {
  // Two units of the last place for the halves: functions round their result once and compute in more.
  return type == kFloat ? 1e-3 : type == kHalf ? 2e-3 : type == kBf16 ? 1.6e-2 : 0;
}

double AsType(double value, int type) {
  if (type != kHalf && type != kBf16 && type != kFloat) return std::trunc(value);
  const auto [bits, lowest] = FormOf(type);
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent, lowest + 1) - bits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}

Tensor::Tensor(const Client& client, const std::vector<int64_t>& shape, int type, int format)
    : client_(client), type_(type) {
  for (const int64_t size : shape) elements_ *= size;
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  why_ = client.Do("aclrtMalloc", &data_, static_cast<size_t>(elements_ * Bytes(type)), 0);
  auto* create =
      client.Call<void*(const int64_t*, uint64_t, int, const int64_t*, int64_t, int, const int64_t*, uint64_t, void*)>(
          "aclCreateTensor");
  if (why_.empty() && create == nullptr) why_ = "aclCreateTensor is not exported";
  if (why_.empty())
    object_ = create(shape.data(), shape.size(), type, strides.data(), 0, format, shape.data(), shape.size(), data_);
  if (why_.empty() && object_ == nullptr) why_ = "aclCreateTensor gives null";
}

Tensor::~Tensor() {
  if (object_ != nullptr && owned_) client_.Call<int(void*)>("aclDestroyTensor")(object_);
  if (data_ != nullptr) client_.Do("aclrtFree", data_);
}

std::string Tensor::Put(const std::vector<double>& values) const {
  std::vector<char> host(static_cast<size_t>(elements_ * Bytes(type_)));
  for (int64_t i = 0; i < elements_; ++i) {
    char* at = host.data() + i * Bytes(type_);
    const double v = values[static_cast<size_t>(i)];
    if (type_ == kFloat) Store<float>(at, v);
    if (type_ == kInt32) Store<int32_t>(at, v);
    if (type_ == kInt64) Store<int64_t>(at, v);
    if (type_ == kBool) Store<uint8_t>(at, v);
    if (type_ == kHalf || type_ == kBf16) {
      const uint16_t packed = Pack(v, type_);
      std::memcpy(at, &packed, sizeof packed);
    }
  }
  void* to = data_;
  const void* from = host.data();
  return client_.Do("aclrtMemcpy", to, host.size(), from, host.size(), kHostToDevice);
}

std::string Tensor::Get(std::vector<double>* values) const {
  std::vector<char> host(static_cast<size_t>(elements_ * Bytes(type_)));
  void* to = host.data();
  const void* from = data_;
  std::string why = client_.Do("aclrtMemcpy", to, host.size(), from, host.size(), kDeviceToHost);
  values->resize(static_cast<size_t>(elements_));
  for (int64_t i = 0; i < elements_; ++i) {
    const char* at = host.data() + i * Bytes(type_);
    (*values)[static_cast<size_t>(i)] = type_ == kFloat                    ? Load<float>(at)
                                        : type_ == kInt32                  ? Load<int32_t>(at)
                                        : type_ == kInt64                  ? static_cast<double>(Load<int64_t>(at))
                                        : type_ == kHalf || type_ == kBf16 ? Unpack(Load<uint16_t>(at), type_)
                                                                           : Load<uint8_t>(at);
  }
  return why;
}

Argument In(const Input& input, int format) {
  return {.kind = Argument::kIn, .shape = input.shape, .values = input.values, .type = input.type, .format = format};
}
Argument Number(uint64_t number) { return {.kind = Argument::kNumber, .number = number}; }
Argument Real(double real) { return {.kind = Argument::kReal, .real = real}; }
Argument Ints(std::vector<int64_t> numbers) { return {.kind = Argument::kInts, .shape = std::move(numbers)}; }
Argument Bools(std::vector<int64_t> truths) { return {.kind = Argument::kBools, .shape = std::move(truths)}; }
Argument Text(const char* text) { return {.kind = Argument::kText, .text = text}; }
Argument Out(std::vector<int64_t> shape, int type, std::vector<double> wanted, int format) {
  return {
      .kind = Argument::kOut, .shape = std::move(shape), .values = std::move(wanted), .type = type, .format = format};
}
Argument Null() { return {}; }

std::string Differs(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::fabs(got[i] - wanted[i]) <= tolerance + tolerance * std::fabs(wanted[i])) continue;
    return fmt::format("element {} is {} instead of {}", i, got[i], wanted[i]);
  }
  return {};
}

std::vector<double> Bench::Draw(int64_t n, double low, double high, int type) {
  std::vector<double> values(static_cast<size_t>(n));
  std::uniform_real_distribution<double> real(low, high);
  const bool whole = type == kInt32 || type == kInt64;
  for (double& v : values) v = whole ? std::round(real(random_)) : AsType(real(random_), type);
  return values;
}

Input Bench::Drawn(std::vector<int64_t> shape, double low, double high, int type) {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return {std::move(shape), Draw(n, low, high, type), type};
}

void Bench::Tell(const std::string& name, const std::string& why) {
  if (why.empty())
    sink_.Passed(name);
  else
    sink_.Failed(name, why);
}

std::string Bench::Raw(const std::string& function, const std::vector<uint64_t>& words,
                       const std::vector<double>& reals) const {
  constexpr size_t kMost = 26, kMostReals = 2;
  std::array<uint64_t, kMost> w{};
  std::array<double, kMostReals> r{};
  if (words.size() + 2 > kMost || reals.size() > kMostReals) return "more parameters than the check can pass";
  uint64_t bytes = 0;
  void* executor = nullptr;
  std::copy(words.begin(), words.end(), w.begin());
  std::copy(reals.begin(), reals.end(), r.begin());
  w[words.size()] = Word(&bytes);
  w[words.size() + 1] = Word(&executor);
  using U = uint64_t;
  auto* plan =
      client_.Call<int(U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, double, double)>(
          (function + "GetWorkspaceSize").c_str());
  auto* run = client_.Call<int(void*, uint64_t, void*, void*)>(function.c_str());
  if (plan == nullptr || run == nullptr) return function + " is not exported";
  std::string why =
      client_.Why(plan(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13], w[14],
                       w[15], w[16], w[17], w[18], w[19], w[20], w[21], w[22], w[23], w[24], w[25], r[0], r[1]),
                  "phase one");
  if (!why.empty()) return why;
  void* workspace = nullptr;
  if (bytes > 0) why = client_.Do("aclrtMalloc", &workspace, size_t{bytes}, 0);
  if (why.empty()) why = client_.Why(run(workspace, bytes, executor, stream_), "phase two");
  if (why.empty()) why = client_.Do("aclrtSynchronizeStream", stream_);
  if (workspace != nullptr) client_.Do("aclrtFree", workspace);
  return why;
}

std::string Bench::TryCall(const std::string& function, const std::vector<Argument>& arguments) const {
  std::vector<std::unique_ptr<Tensor>> tensors;
  std::vector<std::pair<const Argument*, const Tensor*>> outputs;
  std::vector<uint64_t> words;
  std::vector<double> reals;
  std::vector<std::pair<const char*, void*>> arrays;  // with what destroys them
  std::string why;
  for (const Argument& a : arguments) {
    if (!why.empty()) break;
    switch (a.kind) {
      case Argument::kIn:
      case Argument::kOut:
        tensors.push_back(std::make_unique<Tensor>(client_, a.shape, a.type, a.format));
        why = tensors.back()->why();
        if (why.empty() && a.kind == Argument::kIn) why = tensors.back()->Put(a.values);
        if (a.kind == Argument::kOut && !a.values.empty()) outputs.emplace_back(&a, tensors.back().get());
        words.push_back(Word(tensors.back()->object()));
        break;
      case Argument::kInts: {
        auto* create = client_.Call<void*(const int64_t*, uint64_t)>("aclCreateIntArray");
        void* made = create ? create(a.shape.data(), a.shape.size()) : nullptr;
        if (made == nullptr) why = "aclCreateIntArray gives null";
        arrays.emplace_back("aclDestroyIntArray", made);
        words.push_back(Word(made));
        break;
      }
      case Argument::kBools: {
        const std::unique_ptr<bool[]> truths(new bool[a.shape.size()]);
        std::copy(a.shape.begin(), a.shape.end(), truths.get());
        auto* create = client_.Call<void*(const bool*, uint64_t)>("aclCreateBoolArray");
        void* made = create ? create(truths.get(), a.shape.size()) : nullptr;
        if (made == nullptr) why = "aclCreateBoolArray gives null";
        arrays.emplace_back("aclDestroyBoolArray", made);
        words.push_back(Word(made));
        break;
      }
      case Argument::kReal:
        reals.push_back(a.real);
        break;
      case Argument::kNumber:
        words.push_back(a.number);
        break;
      case Argument::kText:
        words.push_back(Word(a.text));
        break;
      case Argument::kNull:
        words.push_back(0);
        break;
    }
  }
  if (why.empty()) why = Raw(function, words, reals);
  for (size_t i = 0; i < outputs.size() && why.empty(); ++i) {
    const auto& [argument, tensor] = outputs[i];
    std::vector<double> got;
    why = tensor->Get(&got);
    if (why.empty())
      why = Differs(got, argument->values, argument->tolerance > 0 ? argument->tolerance : ToleranceOf(argument->type));
    if (!why.empty() && outputs.size() > 1) why = fmt::format("output {}: {}", i + 1, why);
  }
  for (const auto& [destroy, array] : arrays) {
    if (array != nullptr && client_.Has(destroy)) client_.Call<int(void*)>(destroy)(array);
  }
  return why;
}

void Bench::Call(const std::string& name, const std::string& function, const std::vector<Argument>& arguments) {
  if (!client_.Has(function.c_str())) return sink_.LeftOut(name, "libopapi.so does not export it");
  Tell(name, TryCall(function, arguments));
}

}  // namespace npu::check
