// Products with few rows, where packing B would cost more than the product: B is read once, where it lies.
#pragma once

#include "kernels/gemm/blocked.h"

namespace npu::gemm {

struct SkinnyB {
  const void* data;
  Element element;
  int64_t stride_j, stride_k;  // one of them is 1
};

inline constexpr int64_t kSkinnyRows = 16;

// True when this path is the quicker one.
bool IsSkinny(int64_t m, int64_t n, int64_t k, const SkinnyB& b);

Status Skinny(Parallel& parallel, int64_t m, int64_t n, int64_t k, const PanelSource& a, const SkinnyB& b,
              const Sink& sink);

}  // namespace npu::gemm
