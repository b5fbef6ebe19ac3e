#include "tools/trace/replay.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>

namespace npu::trace {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;
using Words = std::array<uint64_t, 40>;
using Reals = std::array<double, 8>;

struct Type {
  int number, bytes;  // aclDataType and the size of an element
};
const std::map<std::string, Type>& Types() {
  static const std::map<std::string, Type> types = {
      {"float32", {0, 4}},    {"float16", {1, 2}},      {"int8", {2, 1}},      {"int32", {3, 4}},
      {"uint8", {4, 1}},      {"int16", {6, 2}},        {"uint16", {7, 2}},    {"uint32", {8, 4}},
      {"int64", {9, 8}},      {"uint64", {10, 8}},      {"float64", {11, 8}},  {"bool", {12, 1}},
      {"complex64", {16, 8}}, {"complex128", {17, 16}}, {"bfloat16", {27, 2}}, {"complex32", {33, 4}}};
  return types;
}

// A number of a record: infinities and NaN are words there.
double Real(const json& v) {
  return v.is_string()    ? std::strtod(v.get<std::string>().c_str(), nullptr)
         : v.is_boolean() ? v.get<bool>()
                          : v.get<double>();
}

class Client {
 public:
  static Result<std::unique_ptr<Client>> Make(const fs::path& tree) {
    auto client = std::unique_ptr<Client>(new Client);
    for (const char* name : {"libascendcl.so", "libnnopbase.so", "libopapi.so"}) {
      void* library = dlopen((tree / "lib64" / name).c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (library == nullptr)
        return Error(Code::kInvalidFile, "anynpu replay: {}.", dlerror()).Remedy("Install the package again.");
    }
    NPU_TRY(client->Check(client->Call<int(const char*)>("aclInit")(nullptr), "aclInit"));
    NPU_TRY(client->Check(client->Call<int(int)>("aclrtSetDevice")(0), "aclrtSetDevice"));
    NPU_TRY(client->Check(client->Call<int(void**)>("aclrtCreateStream")(&client->stream_), "aclrtCreateStream"));
    return client;
  }
  ~Client() {
    if (auto* finalize = Call<int()>("aclFinalize")) finalize();  // absent when the libraries could not be loaded
  }

  // Median time of `times` runs in µs, each synchronised.
  Result<double> Time(const Record& record, int times) {
    Arguments arguments(*this);
    NPU_TRY(arguments.Take(record.args));
    auto* plan = dlsym(RTLD_DEFAULT, (record.op + "GetWorkspaceSize").c_str());
    auto* run = dlsym(RTLD_DEFAULT, record.op.c_str());
    if (plan == nullptr || run == nullptr) return Error(Code::kInvalidFile, "no function of that name in libopapi.so");
    std::vector<double> us;
    for (int i = 0; i < std::max(1, times); ++i) {
      const auto start = std::chrono::steady_clock::now();
      uint64_t bytes = 0;
      void* executor = nullptr;
      void* workspace = nullptr;
      NPU_TRY(Check(arguments.Plan(plan, &bytes, &executor), "phase one"));
      if (bytes > 0) NPU_TRY(arguments.Memory(bytes, &workspace));
      NPU_TRY(Check(reinterpret_cast<int (*)(void*, uint64_t, void*, void*)>(run)(workspace, bytes, executor, stream_),
                    "phase two"));
      NPU_TRY(Check(Call<int(void*)>("aclrtSynchronizeStream")(stream_), "the kernel"));
      us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(us.begin(), us.end());
    return us[us.size() / 2];
  }

 private:
  template <class F>
  F* Call(const char* name) const {
    return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
  }

  Status Check(int code, const char* what) const {
    if (code == 0) return {};
    const char* text = Call<const char*()>("aclGetRecentErrMsg")();
    return Error(Code::kInternal, "{} answers {}: {}", what, code, text != nullptr ? text : "");
  }

  // The parameters of one call with all that belongs to them.
  class Arguments {
   public:
    explicit Arguments(const Client& client) : client_(client) {}
    ~Arguments() {
      for (const auto& [destroy, object] : objects_) client_.Call<int(void*)>(destroy)(object);
      for (void* p : memory_) client_.Call<int(void*)>("aclrtFree")(p);
    }
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;

    Status Take(const json& args) {
      for (const json& a : args) NPU_TRY(One(a));
      return {};
    }
    Status Memory(uint64_t bytes, void** p) {
      NPU_TRY(client_.Check(client_.Call<int(void**, size_t, int)>("aclrtMalloc")(p, bytes, 0), "aclrtMalloc"));
      memory_.push_back(*p);
      return {};
    }
    // Integers and pointers travel in one row of registers and stack words, floating numbers in another: as on x86-64
    // and arm64, a call that passes more of either than the function takes is harmless.
    int Plan(void* function, uint64_t* bytes, void** executor) {
      Words w = words_;
      w[count_] = reinterpret_cast<uint64_t>(bytes);
      w[count_ + 1] = reinterpret_cast<uint64_t>(executor);
      return Spread(function, w, std::make_index_sequence<std::tuple_size_v<Words>>());
    }

   private:
    template <size_t>
    using WordAt = uint64_t;
    template <size_t... i>
    int Spread(void* function, const Words& w, std::index_sequence<i...>) const {
      using Function = int (*)(double, double, double, double, double, double, double, double, WordAt<i>...);
      const Reals& r = reals_;
      return reinterpret_cast<Function>(function)(r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], w[i]...);
    }
    Status Word(uint64_t word) {
      if (count_ + 2 >= words_.size()) return Error(Code::kInvalidParam, "more parameters than a replay can pass");
      words_[count_++] = word;
      return {};
    }
    Status Keep(void* object, const char* destroy) {
      if (object == nullptr) return Error(Code::kInternal, "an object of the call could not be made");
      objects_.emplace_back(destroy, object);
      return Word(reinterpret_cast<uint64_t>(object));
    }

    Status One(const json& a) {
      const std::string kind = a.value("kind", "");
      if (kind == "float" || kind == "double") {
        if (real_count_ == reals_.size()) return Error(Code::kInvalidParam, "more numbers than a replay can pass");
        const double v = Real(a.at("value"));
        reals_[real_count_++] =
            kind == "double" ? v : std::bit_cast<double>(uint64_t{std::bit_cast<uint32_t>(static_cast<float>(v))});
        return {};
      }
      if (a.contains("null")) return Word(0);
      if (kind == "tensor") {
        NPU_ASSIGN(void* tensor, Tensor(a));
        return Keep(tensor, "aclDestroyTensor");
      }
      if (kind == "scalar") {
        NPU_ASSIGN(void* scalar, Scalar(a));
        return Keep(scalar, "aclDestroyScalar");
      }
      if (kind == "tensorlist") return List(a, &Arguments::Tensor, "aclCreateTensorList", "aclDestroyTensorList");
      if (kind == "scalarlist") return List(a, &Arguments::Scalar, "aclCreateScalarList", "aclDestroyScalarList");
      const json value = a.value("value", json());
      if (kind == "intarray")
        return Array(value.get<std::vector<int64_t>>(), "aclCreateIntArray", "aclDestroyIntArray");
      if (kind == "boolarray") {
        const auto flags = value.get<std::vector<bool>>();
        return Array(std::vector<uint8_t>(flags.begin(), flags.end()), "aclCreateBoolArray", "aclDestroyBoolArray");
      }
      if (kind == "floatarray") {
        std::vector<float> values;
        for (const json& v : value) values.push_back(static_cast<float>(Real(v)));
        return Array(values, "aclCreateFloatArray", "aclDestroyFloatArray");
      }
      if (kind == "string") {
        texts_.push_back(std::make_unique<std::string>(value.get<std::string>()));
        return Word(reinterpret_cast<uint64_t>(texts_.back()->c_str()));
      }
      if (kind == "dtype") {
        NPU_ASSIGN(const Type type, TypeOf(value.get<std::string>()));
        return Word(static_cast<uint64_t>(type.number));
      }
      return Word(value.is_boolean() ? value.get<bool>() : static_cast<uint64_t>(value.get<int64_t>()));
    }

    static Result<Type> TypeOf(const std::string& name) {
      const auto found = Types().find(name);
      if (found == Types().end()) return Error(Code::kInvalidParam, "data type {} is not known here", name);
      return found->second;
    }

    Result<void*> Tensor(const json& a) {
      if (a.contains("null")) return static_cast<void*>(nullptr);
      NPU_ASSIGN(const Type type, TypeOf(a.at("dtype")));
      const auto shape = a.at("shape").get<std::vector<int64_t>>();
      std::vector<int64_t> strides(shape.size());
      int64_t step = 1;
      for (size_t d = shape.size(); d-- > 0; step *= shape[d]) strides[d] = step;
      if (a.contains("strides")) strides = a["strides"].get<std::vector<int64_t>>();
      if (strides.size() != shape.size())
        return Error(Code::kInvalidParam, "a tensor has {} sizes and {} strides", shape.size(), strides.size());
      int64_t elements = 1;
      for (size_t d = 0; d < shape.size(); ++d)
        elements = shape[d] == 0 ? 0 : elements == 0 ? 0 : elements + (shape[d] - 1) * strides[d];
      if (elements < 0 || elements > std::numeric_limits<int64_t>::max() / 16)
        return Error(Code::kInvalidParam, "a tensor has no possible size");
      void* data = nullptr;
      const auto bytes = static_cast<size_t>(elements * type.bytes);
      NPU_TRY(Memory(std::max<size_t>(bytes, 64), &data));
      NPU_TRY(Fill(data, bytes, a.at("dtype")));
      return client_
          .Call<void*(const int64_t*, uint64_t, int, const int64_t*, int64_t, int, const int64_t*, uint64_t, void*)>(
              "aclCreateTensor")(shape.data(), shape.size(), type.number, strides.data(), 0, 2, &elements, 1, data);
    }

    Status Fill(void* data, size_t bytes, const std::string& dtype) {
      std::vector<std::byte> host(bytes);
      const auto fill = [&](auto value) {
        for (size_t at = 0; at + sizeof value() <= bytes; at += sizeof value()) {
          const auto v = value();
          std::memcpy(host.data() + at, &v, sizeof v);
        }
      };
      std::uniform_real_distribution<float> unit(0.05f, 0.95f);
      const auto real = [&] { return unit(random_); };
      if (dtype == "float32" || dtype == "complex64")
        fill(real);
      else if (dtype == "float64" || dtype == "complex128")
        fill([&] { return static_cast<double>(real()); });
      else if (dtype == "bfloat16")
        fill([&] { return static_cast<uint16_t>(std::bit_cast<uint32_t>(real()) >> 16); });
      else if (dtype == "float16" || dtype == "complex32")
        fill([&] { return static_cast<uint16_t>(0x2c00 + random_() % 0x0f00); });  // 1/16 … 1
      else if (dtype == "bool")
        fill([&] { return static_cast<uint8_t>(random_() % 2); });
      if (bytes == 0) return {};
      return client_.Check(
          client_.Call<int(void*, size_t, const void*, size_t, int)>("aclrtMemcpy")(data, bytes, host.data(), bytes, 1),
          "aclrtMemcpy");
    }

    Result<void*> Scalar(const json& a) {
      const std::string dtype = a.at("dtype");
      const auto make = [&](auto value, int number) {
        return client_.Call<void*(void*, int)>("aclCreateScalar")(&value, number);
      };
      const json& v = a.at("value");
      if (dtype == "bool") return make(static_cast<uint8_t>(Real(v) != 0), 12);
      if (v.is_array()) return make(std::array<double, 2>{Real(v.at(0)), Real(v.at(1))}, 17);
      if (dtype.find("int") != std::string::npos) return make(v.get<int64_t>(), 9);
      if (dtype == "float64") return make(Real(v), 11);
      return make(static_cast<float>(Real(v)), 0);
    }

    Status List(const json& a, Result<void*> (Arguments::*make)(const json&), const char* create, const char* destroy) {
      std::vector<void*> items;
      for (const json& item : a.at("items")) {
        NPU_ASSIGN(void* object, (this->*make)(item));
        items.push_back(object);
      }
      return Keep(client_.Call<void*(void**, uint64_t)>(create)(items.data(), items.size()),
                  destroy);  // owns its elements
    }
    template <class T>
    Status Array(const std::vector<T>& values, const char* create, const char* destroy) {
      return Keep(client_.Call<void*(const T*, uint64_t)>(create)(values.data(), values.size()), destroy);
    }

    const Client& client_;
    Words words_{};
    Reals reals_{};
    size_t count_ = 0, real_count_ = 0;
    std::mt19937 random_{7};
    std::vector<std::pair<const char*, void*>> objects_;
    std::vector<void*> memory_;
    std::vector<std::unique_ptr<std::string>> texts_;
  };

  void* stream_ = nullptr;
};

}  // namespace

Result<std::string> Replay(const fs::path& tree, const std::vector<Record>& records, const ReplayOptions& options) {
  NPU_ASSIGN(std::unique_ptr<Client> client, Client::Make(tree));
  std::string out = fmt::format("{:>12} {:>12}  {}\n", "recorded us", "replayed us", "call");
  std::set<std::string> seen;
  for (const Record& r : records) {
    if (!r.refused.empty() || (!options.only.empty() && r.op != options.only)) continue;
    if (!seen.insert(r.Key()).second) continue;
    const std::string call = r.op + ' ' + r.Text();
    Result<double> us = 0.0;
    try {
      us = client->Time(r, options.times);
    } catch (const json::exception& e) {
      us = Error(Code::kInvalidFile, "the record is not whole: {}", e.what());
    }
    out += us.ok() ? fmt::format("{:>12.2f} {:>12.2f}  {}\n", r.us, *us, call)
                   : fmt::format("{:>12.2f} {:>12}  {}: {}\n", r.us, "-", call, us.status().text());
  }
  if (seen.empty())
    return Error(Code::kInvalidParam, "anynpu replay: the trace holds no call{}.",
                 options.only.empty() ? "" : " of " + options.only);
  return out;
}

}  // namespace npu::trace
