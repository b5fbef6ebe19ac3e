#include "kernels/pool/plane.h"

#include "kernels/gemm/micro.h"

namespace npu::pool {
namespace {

size_t ElementIndex(DType t) {
  const auto e = t == DType::f32 ? gemm::Element::kF32 : t == DType::f16 ? gemm::Element::kF16 : gemm::Element::kBf16;
  return static_cast<size_t>(e);
}

char* At(const Image& m, int64_t plane, int64_t row) {
  const int64_t at = plane / m.c * m.stride[0] + plane % m.c * m.stride[1] + row * m.stride[2];
  return static_cast<char*>(m.data) + at * ItemSize(m.dtype);
}

}  // namespace

bool Supports(DType t) { return t == DType::f32 || IsHalf(t); }

float* Image::Dense(int64_t plane) const {
  if (dtype != DType::f32 || (w != 1 && stride[3] != 1) || (h != 1 && stride[2] != w)) return nullptr;
  return reinterpret_cast<float*>(At(*this, plane, 0));
}

void Image::Load(int64_t plane, float* dst) const {
  const auto load = gemm::Kernels().load_row[ElementIndex(dtype)];
  for (int64_t r = 0; r < h; ++r) load(At(*this, plane, r), stride[3], w, dst + r * w);
}

void Image::Store(int64_t plane, const float* src) const {
  const auto store = gemm::Kernels().store_row[ElementIndex(dtype)];
  for (int64_t r = 0; r < h; ++r) store(src + r * w, w, At(*this, plane, r), stride[3]);
}

}  // namespace npu::pool
