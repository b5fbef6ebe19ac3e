// Times convolutions, forward and gradients: conv_bench ours|onednn-free list is in conv_torch.py, which prints torch's
// times beside ours.   conv_bench THREADS  ->  "case<TAB>forward<TAB>data<TAB>weight" in ms
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include "kernels/conv/conv.h"
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
  if (argc < 11) {
    std::fprintf(stderr, "usage: %s THREADS N GROUPS IN OUT SIZE KERNEL STRIDE PAD bf16|f32\n", argv[0]);
    return 2;
  }
  int64_t v[9];
  for (int i = 0; i < 9; ++i) v[i] = std::atoll(argv[i + 1]);
  cpu_time = v[0] == 1;
  const npu::DType type = argv[10][0] == 'b' ? npu::DType::bf16 : npu::DType::f32;
  npu::rt::CardParallel parallel(static_cast<int>(v[0]));
  npu::conv::Geometry g{v[1], v[2], v[3], v[4]};
  g.in = {1, v[5], v[5]};
  g.kernel = {1, v[6], v[6]};
  g.stride = {1, v[7], v[7]};
  g.pad = {0, v[8], v[8]};
  const int64_t o = (v[5] + 2 * v[8] - v[6]) / v[7] + 1;
  g.out = {1, o, o};
  auto volume = [&](std::vector<float>& memory, int64_t n, int64_t c, int64_t h, int64_t w) {
    memory.assign(static_cast<size_t>(n * c * h * w), 0.0f);
    return npu::conv::Volume{memory.data(), type, {c * h * w, h * w, h * w, w, 1}};
  };
  std::vector<float> mx, mw, my;
  const auto x = volume(mx, v[1], v[3], v[5], v[5]);
  const auto w = volume(mw, v[4], v[3] / v[2], v[6], v[6]);
  const auto y = volume(my, v[1], v[4], o, o);
  const auto check = [](const npu::Status& s) {
    if (!s.ok()) std::abort();
  };
  std::printf("%.3f\t", Milliseconds([&] { check(npu::conv::Forward(parallel, g, x, w, {}, y)); }));
  std::printf("%.3f\t", Milliseconds([&] { check(npu::conv::BackwardData(parallel, g, y, w, {}, x)); }));
  std::printf("%.3f\n", Milliseconds([&] { check(npu::conv::BackwardWeight(parallel, g, y, x, w)); }));
}
