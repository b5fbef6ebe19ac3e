// Cost of a small aclnnAdd through all rooms: both phases, executed, one synchronise at the end.
//
//   bench_adds TREE/lib64                          the installed libraries, one card, one stream
//   bench_adds BUILD/tests/libopapi_host.so        operators only: no device, no stream
//
// Prints ns per pair, best and median of the rounds: with tensors made once, and with tensors made and destroyed for each
// pair as torch_npu does.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace {

constexpr int kPairs = 10000, kRounds = 30;
constexpr int64_t kElements = 64;

template <class F>
F* Look(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "bench_adds: %s\n", dlerror());
    std::exit(1);
  }
  return reinterpret_cast<F*>(symbol);
}

void* Open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    std::fprintf(stderr, "bench_adds: %s\n", dlerror());
    std::exit(1);
  }
  return library;
}

void Check(int code, const char* what) {
  if (code == 0) return;
  std::fprintf(stderr, "bench_adds: %s answers %d\n", what, code);
  std::exit(1);
}

struct Bench {
  using CreateTensor = void*(const int64_t*, uint64_t, int, const int64_t*, int64_t, int, const int64_t*, uint64_t, void*);
  CreateTensor* create = nullptr;
  int (*destroy)(const void*) = nullptr;
  void* (*scalar)(void*, int) = nullptr;
  int (*destroy_scalar)(const void*) = nullptr;
  int (*plan)(void*, void*, void*, void*, uint64_t*, void**) = nullptr;
  int (*run)(void*, uint64_t, void*, void*) = nullptr;
  int (*synchronize)(void*) = nullptr;
  void* stream = nullptr;
  float* memory[3] = {};

  void* Tensor(int which) const {
    const int64_t shape[] = {kElements}, stride[] = {1};
    return create(shape, 1, 0, stride, 0, 2, shape, 1, memory[which]);
  }
  void Pair(void* a, void* b, void* alpha, void* out) const {
    uint64_t workspace = 0;
    void* executor = nullptr;
    Check(plan(a, b, alpha, out, &workspace, &executor), "aclnnAddGetWorkspaceSize");
    Check(run(nullptr, workspace, executor, stream), "aclnnAdd");
  }
  template <class F>
  void Measure(const char* name, F&& pair) const {
    std::vector<double> ns;
    const std::clock_t cpu = std::clock();
    for (int r = 0; r < kRounds; ++r) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kPairs; ++i) pair();
      if (synchronize != nullptr) Check(synchronize(stream), "aclrtSynchronizeStream");
      ns.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kPairs);
    }
    std::sort(ns.begin(), ns.end());
    const double cpu_ns = 1e9 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC / kRounds / kPairs;
    std::printf("%-40s best %6.0f ns   median %6.0f ns   cpu of all threads %6.0f ns\n", name, ns.front(), ns[ns.size() / 2], cpu_ns);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_adds DIRECTORY_OF_LIBRARIES | libopapi_host.so\n");
    return 2;
  }
  const std::string path = argv[1];
  const bool host = path.ends_with(".so");
  void* acl = host ? nullptr : Open(path + "/libascendcl.so");
  void* base = Open(host ? path : path + "/libnnopbase.so");
  void* ops = host ? base : Open(path + "/libopapi.so");

  Bench b;
  b.create = Look<Bench::CreateTensor>(base, "aclCreateTensor");
  b.destroy = Look<int(const void*)>(base, "aclDestroyTensor");
  b.scalar = Look<void*(void*, int)>(base, "aclCreateScalar");
  b.destroy_scalar = Look<int(const void*)>(base, "aclDestroyScalar");
  b.plan = Look<int(void*, void*, void*, void*, uint64_t*, void**)>(ops, "aclnnAddGetWorkspaceSize");
  b.run = Look<int(void*, uint64_t, void*, void*)>(ops, "aclnnAdd");
  if (host) {
    for (float*& m : b.memory) m = static_cast<float*>(std::aligned_alloc(64, kElements * sizeof(float)));
  } else {
    Check(Look<int(const char*)>(acl, "aclInit")(nullptr), "aclInit");
    Check(Look<int(int)>(acl, "aclrtSetDevice")(0), "aclrtSetDevice");
    Check(Look<int(void**)>(acl, "aclrtCreateStream")(&b.stream), "aclrtCreateStream");
    for (float*& m : b.memory)
      Check(Look<int(void**, size_t, int)>(acl, "aclrtMalloc")(reinterpret_cast<void**>(&m), 4096, 0), "aclrtMalloc");
    b.synchronize = Look<int(void*)>(acl, "aclrtSynchronizeStream");
  }
  double one = 1.0;
  constexpr int kDouble = 11;
  void* alpha = b.scalar(&one, kDouble);
  void* x = b.Tensor(0);
  void* y = b.Tensor(1);
  void* out = b.Tensor(2);
  b.Measure("both phases", [&] { b.Pair(x, y, alpha, out); });
  b.Measure("both phases, objects made and destroyed", [&] {
    void* t[] = {b.Tensor(0), b.Tensor(1), b.Tensor(2)};
    void* s = b.scalar(&one, kDouble);
    b.Pair(t[0], t[1], s, t[2]);
    for (void* tensor : t) b.destroy(tensor);
    b.destroy_scalar(s);
  });
  return 0;
}
