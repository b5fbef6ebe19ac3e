// Times one implementation of matrix products over the shapes of gemm.shapes and prints "name<TAB>GFLOP/s" lines.
//   gemm_bench ours|ours-bf16|ours-f16|openblas|onednn [threads]
// One implementation a process: thread pools of two libraries in one process disturb each other.
#include <cblas.h>
#include <dnnl.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/micro.h"
#include "runtime/workers/card_parallel.h"

namespace {

// Wall time; with one thread the CPU time of the process, which other load on the machine disturbs less.
bool cpu_time = false;
double Now() {
  timespec t;
  clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Shape {
  std::string name;
  int64_t batch, m, n, k;
  bool ta, tb;
};

std::vector<Shape> Shapes(const char* file) {
  std::ifstream in(file);
  std::vector<Shape> out;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream s(line);
    Shape x;
    std::string op;
    s >> x.batch >> x.m >> x.n >> x.k >> op;
    x.ta = op[0] == 'T';
    x.tb = op[1] == 'T';
    x.name = line;
    out.push_back(x);
  }
  return out;
}

// Best of repeated runs, warm: at least 5 and for at least 0.3 s.
double Seconds(const std::function<void()>& run) {
  run();
  double best = 1e9, total = 0;
  for (int i = 0; i < 5 || total < 0.3; ++i) {
    const double start = Now();
    run();
    const double s = Now() - start;
    best = std::min(best, s);
    total += s;
  }
  return best;
}

void Ours(const Shape& s, npu::DType type, npu::Parallel& parallel, void* a, void* b, void* c, double* seconds) {
  npu::gemm::Problem p{.m = s.m, .n = s.n, .k = s.k};
  p.a = {a, type, s.ta ? 1 : s.k, s.ta ? s.m : 1};
  p.b = {b, type, s.tb ? 1 : s.n, s.tb ? s.k : 1};
  p.c = {c, type, s.n, 1};
  p.batch_rank = 1;
  p.batch_shape[0] = s.batch;
  p.a.batch[0] = s.m * s.k;
  p.b.batch[0] = s.k * s.n;
  p.c.batch[0] = s.m * s.n;
  *seconds = Seconds([&] {
    if (!npu::gemm::Gemm(parallel, p).ok()) std::abort();
  });
}

void OpenBlas(const Shape& s, const float* a, const float* b, float* c, double* seconds) {
  *seconds = Seconds([&] {
    for (int64_t i = 0; i < s.batch; ++i) {
      cblas_sgemm(CblasRowMajor, s.ta ? CblasTrans : CblasNoTrans, s.tb ? CblasTrans : CblasNoTrans,
                  static_cast<int>(s.m), static_cast<int>(s.n), static_cast<int>(s.k), 1.0f, a + i * s.m * s.k,
                  static_cast<int>(s.ta ? s.m : s.k), b + i * s.k * s.n, static_cast<int>(s.tb ? s.k : s.n), 0.0f,
                  c + i * s.m * s.n, static_cast<int>(s.n));
    }
  });
}

void OneDnn(const Shape& s, float* a, float* b, float* c, double* seconds) {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  using Md = dnnl::memory::desc;
  const auto f32 = dnnl::memory::data_type::f32;
  const Md da({s.batch, s.m, s.k}, f32, {s.m * s.k, s.ta ? 1 : s.k, s.ta ? s.m : 1});
  const Md db({s.batch, s.k, s.n}, f32, {s.k * s.n, s.tb ? 1 : s.n, s.tb ? s.k : 1});
  const Md dc({s.batch, s.m, s.n}, f32, {s.m * s.n, s.n, 1});
  const dnnl::matmul matmul(dnnl::matmul::primitive_desc(dnnl::matmul::desc(da, db, dc), engine));
  dnnl::memory ma(da, engine, a), mb(db, engine, b), mc(dc, engine, c);
  *seconds = Seconds([&] {
    matmul.execute(stream, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}});
    stream.wait();
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s ours|ours-bf16|ours-f16|openblas|onednn SHAPES [THREADS]\n", argv[0]);
    return 2;
  }
  const std::string what = argv[1];
  const int threads = argc > 3 ? std::atoi(argv[3]) : static_cast<int>(std::thread::hardware_concurrency());
  cpu_time = threads == 1;
  npu::rt::CardParallel parallel(threads);
  if (const char* target = std::getenv("GEMM_BENCH_TARGET")) npu::gemm::UseTarget(std::strtoll(target, nullptr, 0));
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const Shape& s : Shapes(argv[2])) {
    std::vector<float> a(static_cast<size_t>(s.batch * s.m * s.k)), b(static_cast<size_t>(s.batch * s.k * s.n)),
        c(static_cast<size_t>(s.batch * s.m * s.n));
    // Halves read the same bytes; plain small numbers are all the timing needs.
    const bool half = what == "ours-bf16" || what == "ours-f16";
    for (auto* v : {&a, &b}) {
      for (float& x : *v) x = half ? 0.0f : uniform(random);
    }
    double seconds = 0;
    if (what == "ours") Ours(s, npu::DType::f32, parallel, a.data(), b.data(), c.data(), &seconds);
    if (what == "ours-bf16") Ours(s, npu::DType::bf16, parallel, a.data(), b.data(), c.data(), &seconds);
    if (what == "ours-f16") Ours(s, npu::DType::f16, parallel, a.data(), b.data(), c.data(), &seconds);
    if (what == "openblas") OpenBlas(s, a.data(), b.data(), c.data(), &seconds);
    if (what == "onednn") OneDnn(s, a.data(), b.data(), c.data(), &seconds);
    const double flop = 2.0 * static_cast<double>(s.batch * s.m * s.n) * static_cast<double>(s.k);
    std::printf("%s\t%.1f\n", s.name.c_str(), flop / seconds * 1e-9);
    std::fflush(stdout);
  }
}
