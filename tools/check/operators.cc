#include "tools/check/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "tools/check/check.h"

namespace npu::check {
namespace {

constexpr int kFloat = 0, kInt32 = 3, kInt64 = 9, kDouble = 11, kBool = 12, kNd = 2;  // aclDataType, aclFormat
constexpr int kHostToDevice = 1, kDeviceToHost = 2;
constexpr int64_t kElements = 1003;
constexpr double kNumber = 3;

int Bytes(int type) { return type == kBool ? 1 : type == kInt64 || type == kDouble ? 8 : 4; }

// A tensor of one dimension or two on the device, with the host's view of its values.
class Tensor {
 public:
  Tensor(const Client& client, std::vector<int64_t> shape, int type) : client_(client), type_(type), elements_(1) {
    for (const int64_t size : shape) elements_ *= size;
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
    why_ = client.Do("aclrtMalloc", &data_, static_cast<size_t>(elements_ * Bytes(type)), 0);
    auto* create =
        client
            .Call<void*(const int64_t*, uint64_t, int, const int64_t*, int64_t, int, const int64_t*, uint64_t, void*)>(
                "aclCreateTensor");
    if (why_.empty() && create == nullptr) why_ = "aclCreateTensor is not exported";
    if (why_.empty())
      object_ = create(shape.data(), shape.size(), type, strides.data(), 0, kNd, shape.data(), shape.size(), data_);
    if (why_.empty() && object_ == nullptr) why_ = "aclCreateTensor gives null";
  }
  ~Tensor() {
    if (object_ != nullptr && owned_) client_.Call<int(void*)>("aclDestroyTensor")(object_);
    if (data_ != nullptr) client_.Do("aclrtFree", data_);
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  const std::string& why() const { return why_; }
  void* object() const { return object_; }
  void GivenAway() { owned_ = false; }  // a list destroys its tensors
  int64_t elements() const { return elements_; }

  std::string Put(const std::vector<double>& values) const {
    std::vector<char> host(static_cast<size_t>(elements_ * Bytes(type_)));
    for (int64_t i = 0; i < elements_; ++i) {
      char* at = host.data() + i * Bytes(type_);
      const double v = values[static_cast<size_t>(i)];
      if (type_ == kFloat) Store<float>(at, v);
      if (type_ == kInt32) Store<int32_t>(at, v);
      if (type_ == kInt64) Store<int64_t>(at, v);
      if (type_ == kBool) Store<uint8_t>(at, v);
    }
    void* to = data_;
    const void* from = host.data();
    return client_.Do("aclrtMemcpy", to, host.size(), from, host.size(), kHostToDevice);
  }
  std::string Get(std::vector<double>* values) const {
    std::vector<char> host(static_cast<size_t>(elements_ * Bytes(type_)));
    void* to = host.data();
    const void* from = data_;
    std::string why = client_.Do("aclrtMemcpy", to, host.size(), from, host.size(), kDeviceToHost);
    values->resize(static_cast<size_t>(elements_));
    for (int64_t i = 0; i < elements_; ++i) {
      const char* at = host.data() + i * Bytes(type_);
      (*values)[static_cast<size_t>(i)] = type_ == kFloat   ? Load<float>(at)
                                          : type_ == kInt32 ? Load<int32_t>(at)
                                          : type_ == kInt64 ? static_cast<double>(Load<int64_t>(at))
                                                            : Load<uint8_t>(at);
    }
    return why;
  }

 private:
  template <class T>
  static void Store(char* at, double v) {
    const T value = static_cast<T>(v);
    std::memcpy(at, &value, sizeof value);
  }
  template <class T>
  static T Load(const char* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }

  const Client& client_;
  const int type_;
  int64_t elements_;
  void *data_ = nullptr, *object_ = nullptr;
  bool owned_ = true;
  std::string why_;
};

// One call of two phases. All parameters are pointers or whole numbers, which travel in the same registers.
class Caller {
 public:
  Caller(const Client& client, void* stream) : client_(client), stream_(stream) {}

  std::string Call(const std::string& name, const std::vector<uint64_t>& words) const {
    constexpr size_t kMost = 12;
    std::array<uint64_t, kMost> w{};
    if (words.size() + 2 > kMost) return "more parameters than the check can pass";
    uint64_t bytes = 0;
    void* executor = nullptr;
    std::copy(words.begin(), words.end(), w.begin());
    w[words.size()] = reinterpret_cast<uint64_t>(&bytes);
    w[words.size() + 1] = reinterpret_cast<uint64_t>(&executor);
    using U = uint64_t;
    auto* plan = client_.Call<int(U, U, U, U, U, U, U, U, U, U, U, U)>((name + "GetWorkspaceSize").c_str());
    auto* run = client_.Call<int(void*, uint64_t, void*, void*)>(name.c_str());
    if (plan == nullptr || run == nullptr) return name + " is not exported";
    std::string why =
        client_.Why(plan(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11]), "phase one");
    if (!why.empty()) return why;
    void* workspace = nullptr;
    if (bytes > 0) why = client_.Do("aclrtMalloc", &workspace, size_t{bytes}, 0);
    if (why.empty()) why = client_.Why(run(workspace, bytes, executor, stream_), "phase two");
    if (why.empty()) why = client_.Do("aclrtSynchronizeStream", stream_);
    if (workspace != nullptr) client_.Do("aclrtFree", workspace);
    return why;
  }

 private:
  const Client& client_;
  void* const stream_;
};

std::string Differs(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::fabs(got[i] - wanted[i]) <= tolerance + tolerance * std::fabs(wanted[i])) continue;
    return fmt::format("element {} is {} instead of {}", i, got[i], wanted[i]);
  }
  return {};
}

class Operators {
 public:
  Operators(const Client& client, Sink& sink, void* stream, unsigned seed)
      : client_(client), sink_(sink), caller_(client, stream), random_(seed) {}

  void Elementwise(const OperatorCase& c) {
    if (!client_.Has(c.name.c_str())) return sink_.LeftOut(c.name, "libopapi.so does not export it");
    Tell(c.name, TryElementwise(c));
  }
  void Others();

 private:
  std::vector<double> Draw(int64_t n, double low, double high, bool whole) {
    std::vector<double> values(static_cast<size_t>(n));
    std::uniform_real_distribution<double> real(low, high);
    for (double& v : values)
      v = whole ? std::round(real(random_)) : static_cast<double>(static_cast<float>(real(random_)));
    return values;
  }
  void Tell(const std::string& name, const std::string& why) {
    if (why.empty())
      sink_.Passed(name);
    else
      sink_.Failed(name, why);
  }
  std::string TryElementwise(const OperatorCase& c);

  // A call with tensors of given values: inputs, then whole numbers, then the output, whose values are compared.
  struct Input {
    std::vector<int64_t> shape;
    std::vector<double> values;
    int type = kFloat;
  };
  void Whole(const std::string& name, const std::vector<Input>& inputs, const std::vector<uint64_t>& numbers,
             const std::vector<int64_t>& out_shape, int out_type, const std::vector<double>& wanted);

  const Client& client_;
  Sink& sink_;
  const Caller caller_;
  std::mt19937 random_;
};

std::string Operators::TryElementwise(const OperatorCase& c) {
  const int type = c.whole ? kInt32 : kFloat;
  std::vector<std::unique_ptr<Tensor>> tensors, outputs;
  std::vector<std::vector<double>> values;  // of each input, lists one after another
  std::vector<uint64_t> words;
  std::vector<std::pair<const char*, void*>> others;  // numbers and lists, with what destroys them
  const auto add = [&](bool output, int kind) -> Tensor* {
    auto& place = output ? outputs : tensors;
    place.push_back(std::make_unique<Tensor>(client_, std::vector<int64_t>{kElements}, kind));
    return place.back().get();
  };
  std::string why;
  for (const char letter : c.shape) {
    const bool list = letter == 'L' || letter == 'O', output = letter == 'o' || letter == 'O';
    if (letter == 's') {
      double number = kNumber;
      void* scalar = client_.Call<void*(void*, int)>("aclCreateScalar")(&number, kDouble);
      if (c.whole) {
        int64_t whole = static_cast<int64_t>(kNumber);
        client_.Call<int(void*)>("aclDestroyScalar")(scalar);
        scalar = client_.Call<void*(void*, int)>("aclCreateScalar")(&whole, kInt64);
      }
      others.emplace_back("aclDestroyScalar", scalar);
      words.push_back(reinterpret_cast<uint64_t>(scalar));
      continue;
    }
    std::vector<void*> objects;
    for (int i = 0; i < (list ? 2 : 1) && why.empty(); ++i) {
      Tensor* tensor = add(output, output && c.truth ? kBool : type);
      why = tensor->why();
      objects.push_back(tensor->object());
      if (output || !why.empty()) continue;
      values.push_back(Draw(kElements, c.low, c.high, c.whole));
      why = tensor->Put(values.back());
      if (list) tensor->GivenAway();
    }
    if (list && output)
      for (auto& tensor : outputs) tensor->GivenAway();
    if (!why.empty()) break;
    if (list) {
      void* made = client_.Call<void*(void**, uint64_t)>("aclCreateTensorList")(objects.data(), objects.size());
      others.emplace_back("aclDestroyTensorList", made);
      words.push_back(reinterpret_cast<uint64_t>(made));
    } else {
      words.push_back(reinterpret_cast<uint64_t>(objects[0]));
    }
  }
  if (why.empty()) why = caller_.Call(c.name, words);
  const bool lists = c.shape[0] == 'L';
  const size_t results = lists ? 2 : 1;
  for (size_t r = 0; r < results && why.empty(); ++r) {
    const Tensor& result = c.shape[0] == 'r' ? *tensors[0] : *outputs[r];
    std::vector<double> got, wanted(static_cast<size_t>(kElements));
    const std::vector<double>& a = values[r];
    const std::vector<double>& b = values[std::min(r + results, values.size() - 1)];
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = c.judge(a[i], b[i], kNumber);
    why = result.Get(&got);
    if (why.empty()) why = Differs(got, wanted, c.whole || c.truth ? 0 : c.tolerance);
  }
  for (const auto& [destroy, object] : others) client_.Call<int(void*)>(destroy)(object);
  return why;
}

void Operators::Whole(const std::string& name, const std::vector<Input>& inputs, const std::vector<uint64_t>& numbers,
                      const std::vector<int64_t>& out_shape, int out_type, const std::vector<double>& wanted) {
  if (!client_.Has(name.c_str())) return sink_.LeftOut(name, "libopapi.so does not export it");
  std::vector<std::unique_ptr<Tensor>> tensors;
  std::vector<uint64_t> words;
  std::string why;
  for (const Input& input : inputs) {
    tensors.push_back(std::make_unique<Tensor>(client_, input.shape, input.type));
    why = tensors.back()->why();
    if (why.empty()) why = tensors.back()->Put(input.values);
    if (!why.empty()) return Tell(name, why);
    words.push_back(reinterpret_cast<uint64_t>(tensors.back()->object()));
  }
  words.insert(words.end(), numbers.begin(), numbers.end());
  Tensor out(client_, out_shape, out_type);
  if (!out.why().empty()) return Tell(name, out.why());
  // Numbers behind the output (cubeMathType) stand behind a mark.
  constexpr uint64_t kHere = ~uint64_t{0};
  const auto mark = std::find(words.begin(), words.end(), kHere);
  if (mark != words.end())
    *mark = reinterpret_cast<uint64_t>(out.object());
  else
    words.push_back(reinterpret_cast<uint64_t>(out.object()));
  std::vector<double> got;
  why = caller_.Call(name, words);
  if (why.empty()) why = out.Get(&got);
  Tell(name, why.empty() ? Differs(got, wanted, out_type == kFloat ? 1e-3 : 0) : why);
}

void Operators::Others() {
  constexpr int64_t kRows = 17, kInner = 33, kCols = 29;
  constexpr uint64_t kHere = ~uint64_t{0}, kKeepType = 0;
  const Input a{{kRows, kInner}, Draw(kRows * kInner, -1, 1, false)},
      b{{kInner, kCols}, Draw(kInner * kCols, -1, 1, false)};
  std::vector<double> product(kRows * kCols);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kCols; ++j)
      for (int64_t k = 0; k < kInner; ++k)
        product[static_cast<size_t>(i * kCols + j)] +=
            a.values[static_cast<size_t>(i * kInner + k)] * b.values[static_cast<size_t>(k * kCols + j)];
  for (const char* name : {"aclnnMatmul", "aclnnMm"})
    Whole(name, {a, b}, {kHere, kKeepType}, {kRows, kCols}, kFloat, product);
  Whole("aclnnBatchMatMul", {{{1, kRows, kInner}, a.values}, {{1, kInner, kCols}, b.values}}, {kHere, kKeepType},
        {1, kRows, kCols}, kFloat, product);

  std::vector<double> softmax(a.values.size()), log_softmax(a.values.size()), lower(a.values.size()),
      upper(a.values.size());
  for (int64_t i = 0; i < kRows; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < kInner; ++k) sum += std::exp(a.values[static_cast<size_t>(i * kInner + k)]);
    for (int64_t k = 0; k < kInner; ++k) {
      const auto at = static_cast<size_t>(i * kInner + k);
      softmax[at] = std::exp(a.values[at]) / sum;
      log_softmax[at] = a.values[at] - std::log(sum);
      lower[at] = k <= i ? a.values[at] : 0;
      upper[at] = k >= i ? a.values[at] : 0;
    }
  }
  Whole("aclnnSoftmax", {a}, {1}, a.shape, kFloat, softmax);
  Whole("aclnnLogSoftmax", {a}, {1}, a.shape, kFloat, log_softmax);
  Whole("aclnnTril", {a}, {0}, a.shape, kFloat, lower);
  Whole("aclnnTriu", {a}, {0}, a.shape, kFloat, upper);

  const double largest = *std::max_element(a.values.begin(), a.values.end()),
               smallest = *std::min_element(a.values.begin(), a.values.end());
  Whole("aclnnMax", {a}, {}, {}, kFloat, {largest});
  Whole("aclnnMin", {a}, {}, {}, kFloat, {smallest});
  const std::vector<double> index = Draw(kCols, 0, kRows - 1, true);
  std::vector<double> rows(static_cast<size_t>(kCols * kInner));
  for (int64_t i = 0; i < kCols; ++i)
    for (int64_t k = 0; k < kInner; ++k)
      rows[static_cast<size_t>(i * kInner + k)] =
          a.values[static_cast<size_t>(index[static_cast<size_t>(i)]) * kInner + static_cast<size_t>(k)];
  Whole("aclnnEmbedding", {a, {{kCols}, index, kInt64}}, {}, {kCols, kInner}, kFloat, rows);
  const Input real{a.shape, Draw(kRows * kInner, -1000, 1000, false)};
  std::vector<double> whole(real.values.size());
  std::transform(real.values.begin(), real.values.end(), whole.begin(), [](double v) { return std::trunc(v); });
  Whole("aclnnCast", {real}, {kInt32}, a.shape, kInt32, whole);
  const Input d1{{kInner}, Draw(kInner, -1, 1, false)}, d2{{kInner}, Draw(kInner, -1, 1, false)};
  double dot = 0;
  for (size_t k = 0; k < d1.values.size(); ++k) dot += d1.values[k] * d2.values[k];
  Whole("aclnnDot", {d1, d2}, {}, {}, kFloat, {dot});
}

}  // namespace

void CheckOperators(Sink& sink, unsigned seed) {
  Client client;
  std::string why = Begin(&client, /*operators=*/true);
  if (why.empty()) why = client.Do("aclrtSetDevice", int32_t{0});
  void* stream = nullptr;
  if (why.empty()) why = client.Do("aclrtCreateStream", &stream);
  if (!why.empty()) return sink.Failed("a stream for operators", why);
  for (const char* needed :
       {"aclCreateScalar", "aclDestroyScalar", "aclDestroyTensor", "aclCreateTensorList", "aclDestroyTensorList"}) {
    if (!client.Has(needed)) return sink.Failed(needed, "it is not exported");
  }
  Operators operators(client, sink, stream, seed);
  const std::vector<OperatorCase> cases = ElementwiseCases();
  for (const OperatorCase& c : cases) operators.Elementwise(c);
  operators.Others();
  client.Do("aclrtDestroyStream", stream);
  client.Do("aclFinalize");
}

}  // namespace npu::check
