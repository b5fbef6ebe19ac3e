// Times attention forward and backward on the CPU: attention_bench THREADS BATCH HEADS ROWS DIM  ->  two times in ms
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <vector>

#include "kernels/attention/attention.h"
#include "runtime/workers/card_parallel.h"

namespace {

bool cpu_time = false;
double Now() {
  timespec t;
  clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double Milliseconds(const std::function<void()>& run) {
  run();
  double best = 1e9, total = 0;
  for (int i = 0; i < 5 || total < 0.3; ++i) {
    const double start = Now();
    run();
    const double s = Now() - start;
    best = std::min(best, s);
    total += s;
  }
  return best * 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: %s THREADS BATCH HEADS ROWS DIM\n", argv[0]);
    return 2;
  }
  const int threads = std::atoi(argv[1]);
  const int64_t b = std::atoll(argv[2]), h = std::atoll(argv[3]), s = std::atoll(argv[4]), d = std::atoll(argv[5]);
  cpu_time = threads == 1;
  npu::rt::CardParallel parallel(threads);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> memory;
  auto heads = [&] {
    memory.emplace_back(static_cast<size_t>(b * h * s * d));
    for (float& x : memory.back()) x = normal(random);
    return npu::attention::Heads{memory.back().data(), npu::DType::f32, h * s * d, s * d, d, 1};
  };
  const auto q = heads(), k = heads(), v = heads(), out = heads(), dout = heads(), dq = heads(), dk = heads(), dv = heads();
  std::vector<float> max(static_cast<size_t>(b * h * s * 8)), sum(max.size());
  npu::attention::Stats stats;
  stats.max = {max.data(), npu::DType::f32, h * s * 8, s * 8, 8, 1};
  stats.sum = {sum.data(), npu::DType::f32, h * s * 8, s * 8, 8, 1};
  std::vector<npu::attention::Item> items(static_cast<size_t>(b), npu::attention::Item{0, s, 0, s, 0});
  npu::attention::Shape shape{.items = items, .heads = h, .kv_heads = h, .dim = d, .value_dim = d};
  shape.scale = 0.2;
  shape.after = 0;  // causal
  const auto check = [](const npu::Status& status) {
    if (!status.ok()) std::abort();
  };
  std::printf("%.3f\t", Milliseconds([&] { check(npu::attention::Forward(parallel, shape, q, k, v, out, stats)); }));
  std::printf("%.3f\n", Milliseconds([&] {
                check(npu::attention::Backward(parallel, shape, q, k, v, out, stats, dout, {dq, dk, dv}));
              }));
}
