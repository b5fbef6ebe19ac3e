// Calls of operators for the self-test: tensors on the device, the two phases, and the comparison with what the host
// computed.
//
//   Bench bench(client, sink, stream, seed);
//   bench.Call("aclnnSoftmax", "aclnnSoftmax", {In(a), Number(1), Out(shape, kFloat, wanted)});
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tools/check/client.h"
#include "tools/check/report.h"

namespace npu::check {

// aclDataType and aclFormat.
inline constexpr int kFloat = 0, kHalf = 1, kInt32 = 3, kInt64 = 9, kDouble = 11, kBool = 12, kBf16 = 27;
inline constexpr int kNchw = 0, kNd = 2;

// Relative and absolute bound of a type's results: the vendor's own for float32; for the halves some units of the last
// place.
double ToleranceOf(int type);
// The value as the type keeps it, to the nearest.
double AsType(double value, int type);

// A tensor on the device, with the host's view of its values.
class Tensor {
 public:
  Tensor(const Client& client, const std::vector<int64_t>& shape, int type, int format = kNd);
  ~Tensor();
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  const std::string& why() const { return why_; }
  void* object() const { return object_; }
  void GivenAway() { owned_ = false; }  // a list destroys its tensors
  std::string Put(const std::vector<double>& values) const;
  std::string Get(std::vector<double>* values) const;

 private:
  const Client& client_;
  const int type_;
  int64_t elements_ = 1;
  void *data_ = nullptr, *object_ = nullptr;
  bool owned_ = true;
  std::string why_;
};

struct Input {
  std::vector<int64_t> shape;
  std::vector<double> values;
  int type = kFloat;
};

// One argument of a function, in its place.
struct Argument {
  enum Kind { kIn, kNumber, kReal, kInts, kBools, kText, kOut, kNull } kind = kNull;
  std::vector<int64_t> shape = {};  // of a tensor; the numbers of kInts and kBools
  std::vector<double> values = {};  // of an input; what an output has to hold, empty when it is not looked at
  int type = kFloat, format = kNd;
  uint64_t number = 0;
  double real = 0;
  const char* text = nullptr;
  double tolerance = 0;  // of an output; 0: that of its type
};
Argument In(const Input& input, int format = kNd);
Argument Number(uint64_t number);
Argument Real(double real);
Argument Ints(std::vector<int64_t> numbers);
Argument Bools(std::vector<int64_t> truths);
Argument Text(const char* text);
Argument Out(std::vector<int64_t> shape, int type, std::vector<double> wanted, int format = kNd);
Argument Null();

class Bench {
 public:
  Bench(const Client& client, Sink& sink, void* stream, unsigned seed)
      : client_(client), sink_(sink), stream_(stream), random_(seed) {}

  const Client& client() const { return client_; }
  Sink& sink() const { return sink_; }
  // Values that a type keeps exactly.
  std::vector<double> Draw(int64_t n, double low, double high, int type = kFloat);
  Input Drawn(std::vector<int64_t> shape, double low, double high, int type = kFloat);
  void Tell(const std::string& name, const std::string& why);
  // Both phases, with words that travel in whole-number registers and reals that travel in the others: where they stand
  // among each other does not matter on x86-64 and arm64.
  std::string Raw(const std::string& function, const std::vector<uint64_t>& words,
                  const std::vector<double>& reals = {}) const;
  // A call and the comparison of its outputs; told under `name`.
  void Call(const std::string& name, const std::string& function, const std::vector<Argument>& arguments);

 private:
  std::string TryCall(const std::string& function, const std::vector<Argument>& arguments) const;

  const Client& client_;
  Sink& sink_;
  void* const stream_;
  std::mt19937 random_;
};

// Empty when all elements agree.
std::string Differs(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance);

}  // namespace npu::check
