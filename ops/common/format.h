// The card's own layouts (private formats): a dimension cut into blocks of C0, the rest in another order.
//
//   format::Layout layout;
//   NPU_TRY(format::Read(op, format, logical.Shape(), storage.Shape(), &layout));
//   format::Copy(logical, storage, layout, /*pack=*/true, parallel);
//
// All of them are strided once the cut dimension is two: element i of it lies at i / C0 blocks and i % C0. FRACTAL_NZ
// cuts the last dimension, NC1HWC0, NDC1HWC0 and the two FRACTAL_Z cut the channels. Padding is zero.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status/status.h"
#include "base/task/parallel.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace npu::ops::format {

inline constexpr int32_t kNC1HWC0 = 3, kFractalZ = 4, kNZ = 29, kNDC1HWC0 = 32, kFractalZ3d = 33;

struct Layout {
  int cut = 0;                              // the logical dimension that is cut
  int64_t c0 = 1, block = 0;                // elements of a block, and from block to block
  std::array<int64_t, kKernelRank> strides{};  // of the other dimensions, in the storage
};

bool IsPrivate(int32_t format);
// The storage shape that torch_npu gives a tensor of this shape; empty for a format that is not laid out here.
std::vector<int64_t> StorageShape(int32_t format, std::span<const int64_t> logical, DType dtype);
// Refuses storage shapes that do not hold the logical one.
Status Read(std::string_view op, int32_t format, std::span<const int64_t> logical, std::span<const int64_t> storage,
            Layout* layout);
// `logical` has any strides, `storage` is dense. pack: logical → storage; else the reverse.
void Copy(const Tensor& logical, const Tensor& storage, const Layout& layout, bool pack, Parallel& parallel);

}  // namespace npu::ops::format
