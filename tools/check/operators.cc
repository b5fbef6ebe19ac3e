#include "tools/check/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tools/check/call.h"
#include "tools/check/check.h"

namespace npu::check {
namespace {

constexpr int64_t kElements = 1003;
constexpr double kNumber = 3;

// A case whose tensors all have one shape, with the type of its inputs.
std::string TryElementwise(Bench& bench, const OperatorCase& c, int type) {
  const Client& client = bench.client();
  std::vector<std::unique_ptr<Tensor>> tensors, outputs;
  std::vector<std::vector<double>> values;  // of each input, lists one after another
  std::vector<uint64_t> words;
  std::vector<std::pair<const char*, void*>> others;  // numbers and lists, with what destroys them
  const auto add = [&](bool output, int kind) -> Tensor* {
    auto& place = output ? outputs : tensors;
    place.push_back(std::make_unique<Tensor>(client, std::vector<int64_t>{kElements}, kind));
    return place.back().get();
  };
  std::string why;
  for (const char letter : c.shape) {
    const bool list = letter == 'L' || letter == 'O', output = letter == 'o' || letter == 'O';
    if (letter == 's') {
      double number = kNumber;
      void* scalar = client.Call<void*(void*, int)>("aclCreateScalar")(&number, kDouble);
      if (c.whole) {
        int64_t whole = static_cast<int64_t>(kNumber);
        client.Call<int(void*)>("aclDestroyScalar")(scalar);
        scalar = client.Call<void*(void*, int)>("aclCreateScalar")(&whole, kInt64);
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
      values.push_back(bench.Draw(kElements, c.low, c.high, type));
      why = tensor->Put(values.back());
      if (list) tensor->GivenAway();
    }
    if (list && output)
      for (auto& tensor : outputs) tensor->GivenAway();
    if (!why.empty()) break;
    if (list) {
      void* made = client.Call<void*(void**, uint64_t)>("aclCreateTensorList")(objects.data(), objects.size());
      others.emplace_back("aclDestroyTensorList", made);
      words.push_back(reinterpret_cast<uint64_t>(made));
    } else {
      words.push_back(reinterpret_cast<uint64_t>(objects[0]));
    }
  }
  if (why.empty()) why = bench.Raw(c.name, words);
  const bool lists = c.shape[0] == 'L';
  const size_t results = lists ? 2 : 1;
  for (size_t r = 0; r < results && why.empty(); ++r) {
    const Tensor& result = c.shape[0] == 'r' ? *tensors[0] : *outputs[r];
    std::vector<double> got, wanted(static_cast<size_t>(kElements));
    const std::vector<double>& a = values[r];
    const std::vector<double>& b = values[std::min(r + results, values.size() - 1)];
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = c.judge(a[i], b[i], kNumber);
    why = result.Get(&got);
    const double tolerance = c.whole || c.truth ? 0 : type == kFloat ? c.tolerance : ToleranceOf(type);
    if (why.empty()) why = Differs(got, wanted, tolerance);
  }
  for (const auto& [destroy, object] : others) client.Call<int(void*)>(destroy)(object);
  return why;
}

void Elementwise(Bench& bench, const OperatorCase& c, int type, const char* type_name) {
  const std::string name = *type_name ? fmt::format("{} ({})", c.name, type_name) : c.name;
  if (!bench.client().Has(c.name.c_str())) return bench.sink().LeftOut(name, "libopapi.so does not export it");
  bench.Tell(name, TryElementwise(bench, c, type));
}

std::vector<double> Product(const Input& a, const Input& b) {
  const auto rows = static_cast<size_t>(a.shape[0]), inner = static_cast<size_t>(a.shape[1]),
             cols = static_cast<size_t>(b.shape[1]);
  std::vector<double> product(rows * cols);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < cols; ++j)
      for (size_t k = 0; k < inner; ++k) product[i * cols + j] += a.values[i * inner + k] * b.values[k * cols + j];
  return product;
}

// Operators whose tensors differ in shape, in each float type.
void Shaped(Bench& bench, int type, const std::string& suffix) {
  constexpr int64_t kRows = 17, kInner = 33, kCols = 29;
  constexpr uint64_t kKeepType = 0;
  const Input a = bench.Drawn({kRows, kInner}, -1, 1, type), b = bench.Drawn({kInner, kCols}, -1, 1, type);
  const std::vector<double> product = Product(a, b);
  for (const char* name : {"aclnnMatmul", "aclnnMm"})
    bench.Call(name + suffix, name, {In(a), In(b), Out({kRows, kCols}, type, product), Number(kKeepType)});
  bench.Call("aclnnBatchMatMul" + suffix, "aclnnBatchMatMul",
             {In({{1, kRows, kInner}, a.values, type}), In({{1, kInner, kCols}, b.values, type}),
              Out({1, kRows, kCols}, type, product), Number(kKeepType)});

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
  bench.Call("aclnnSoftmax" + suffix, "aclnnSoftmax", {In(a), Number(1), Out(a.shape, type, softmax)});
  bench.Call("aclnnLogSoftmax" + suffix, "aclnnLogSoftmax", {In(a), Number(1), Out(a.shape, type, log_softmax)});
  bench.Call("aclnnTril" + suffix, "aclnnTril", {In(a), Number(0), Out(a.shape, type, lower)});
  bench.Call("aclnnTriu" + suffix, "aclnnTriu", {In(a), Number(0), Out(a.shape, type, upper)});

  const double largest = *std::max_element(a.values.begin(), a.values.end()),
               smallest = *std::min_element(a.values.begin(), a.values.end());
  bench.Call("aclnnMax" + suffix, "aclnnMax", {In(a), Out({}, type, {largest})});
  bench.Call("aclnnMin" + suffix, "aclnnMin", {In(a), Out({}, type, {smallest})});
  const Input index = bench.Drawn({kCols}, 0, kRows - 1, kInt64);
  std::vector<double> rows;
  for (const double row : index.values) {
    const auto first = a.values.begin() + static_cast<int64_t>(row) * kInner;
    rows.insert(rows.end(), first, first + kInner);
  }
  bench.Call("aclnnEmbedding" + suffix, "aclnnEmbedding", {In(a), In(index), Out({kCols, kInner}, type, rows)});
  const Input real = bench.Drawn({kRows, kInner}, -1000, 1000, type);
  std::vector<double> whole(real.values.size());
  std::transform(real.values.begin(), real.values.end(), whole.begin(), [](double v) { return std::trunc(v); });
  bench.Call("aclnnCast" + suffix, "aclnnCast", {In(real), Number(kInt32), Out(real.shape, kInt32, whole)});
  const Input d1 = bench.Drawn({kInner}, -1, 1, type), d2 = bench.Drawn({kInner}, -1, 1, type);
  double dot = 0;
  for (size_t k = 0; k < d1.values.size(); ++k) dot += d1.values[k] * d2.values[k];
  bench.Call("aclnnDot" + suffix, "aclnnDot", {In(d1), In(d2), Out({}, type, {dot})});
}

}  // namespace

void CheckOperators(Sink& sink, unsigned seed) {
  Client client;
  std::string why = Begin(&client, /*operators=*/true);
  if (why.empty()) why = client.Do("aclrtSetDevice", int32_t{0});
  void* stream = nullptr;
  if (why.empty()) why = client.Do("aclrtCreateStream", &stream);
  if (!why.empty()) return sink.Failed("a stream for operators", why);
  for (const char* needed : {"aclCreateScalar", "aclDestroyScalar", "aclDestroyTensor", "aclCreateTensorList",
                             "aclDestroyTensorList", "aclDestroyIntArray"}) {
    if (!client.Has(needed)) return sink.Failed(needed, "it is not exported");
  }
  auto* soc_name = client.Call<const char*()>("aclrtGetSocName");
  const char* soc = soc_name ? soc_name() : nullptr;
  const bool has_bf16 = soc == nullptr || std::string(soc).find("310") == std::string::npos;

  Bench bench(client, sink, stream, seed);
  for (const OperatorCase& c : ElementwiseCases()) {
    Elementwise(bench, c, c.whole ? kInt32 : kFloat, "");
    if (!c.halves) continue;
    Elementwise(bench, c, kHalf, "float16");
    if (has_bf16) Elementwise(bench, c, kBf16, "bfloat16");
  }
  Shaped(bench, kFloat, "");
  Shaped(bench, kHalf, " (float16)");
  if (has_bf16) Shaped(bench, kBf16, " (bfloat16)");
  Training(bench);
  Attention(bench, kHalf, " (float16)");
  if (has_bf16) Attention(bench, kBf16, " (bfloat16)");
  client.Do("aclrtDestroyStream", stream);
  client.Do("aclFinalize");
}

}  // namespace npu::check
