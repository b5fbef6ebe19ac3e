#include "ops/common/format.h"

#include <algorithm>

#include "kernels/simd/copy/copy.h"
#include "kernels/simd/rows/convert.h"

namespace npu::ops::format {
namespace {

constexpr int64_t kRows = 16;  // of a fractal

size_t U(int64_t i) { return static_cast<size_t>(i); }
int64_t Blocks(int64_t n, int64_t size) { return n / size + (n % size != 0 ? 1 : 0); }
// False where the product does not fit: shapes come from callers.
bool Product(std::initializer_list<int64_t> factors, int64_t* product) {
  *product = 1;
  for (const int64_t n : factors)
    if (n < 0 || __builtin_mul_overflow(*product, n, product)) return false;
  return true;
}

}  // namespace

bool IsPrivate(int32_t format) {
  return format == kNC1HWC0 || format == kFractalZ || format == kNZ || format == kNDC1HWC0 || format == kFractalZ3d ||
         (format >= 50 && format <= 54);
}

std::vector<int64_t> StorageShape(int32_t format, std::span<const int64_t> logical, DType dtype) {
  const int64_t c0 = ItemSize(dtype) == 1 ? 32 : 16;
  const size_t rank = logical.size();
  if (format == kNZ && rank >= 2) {
    std::vector<int64_t> s(logical.begin(), logical.end() - 2);
    s.insert(s.end(), {Blocks(logical[rank - 1], c0), Blocks(logical[rank - 2], kRows), kRows, c0});
    return s;
  }
  if (rank == 4 && format == kNC1HWC0) return {logical[0], Blocks(logical[1], c0), logical[2], logical[3], c0};
  if (rank == 4 && format == kFractalZ)
    return {Blocks(logical[1], c0) * logical[2] * logical[3], Blocks(logical[0], kRows), kRows, c0};
  if (rank == 5 && format == kNDC1HWC0)
    return {logical[0], logical[2], Blocks(logical[1], c0), logical[3], logical[4], c0};
  if (rank == 5 && format == kFractalZ3d)
    return {logical[2] * Blocks(logical[1], c0) * logical[3] * logical[4], Blocks(logical[0], kRows), kRows, c0};
  return {};
}

Status Read(std::string_view op, int32_t format, std::span<const int64_t> logical, std::span<const int64_t> storage,
            Layout* layout) {
  const auto refuse = [&] {
    return Error(Code::kInvalidParam,
                 "{}: a tensor of shape {} has format {} and the storage {}, which does not hold it.", op,
                 ShapeText(logical), format, ShapeText(storage))
        .Remedy("Give the storage shape that aclnnNpuFormatCastCalculateSizeAndFormat names.");
  };
  if (storage.empty() || storage.back() < 1) return refuse();
  const int64_t c0 = storage.back();
  const auto rank = static_cast<int>(logical.size());
  layout->c0 = c0;
  auto& s = layout->strides;
  if (format == kNZ) {
    if (rank < 2 || storage.size() != logical.size() + 2) return refuse();
    const int64_t rows = storage[U(rank - 1)] * storage[U(rank)], columns = storage[U(rank - 2)] * c0;
    if (rows < logical[U(rank - 2)] || columns < logical[U(rank - 1)]) return refuse();
    layout->cut = rank - 1;
    layout->block = rows * c0;
    s[U(rank - 2)] = c0;
    int64_t step = rows * columns;
    for (int d = rank - 3; d >= 0; --d) {
      if (storage[U(d)] != logical[U(d)]) return refuse();
      s[U(d)] = step;
      step *= logical[U(d)];
    }
    return {};
  }
  const bool three = format == kNDC1HWC0 || format == kFractalZ3d;
  if (rank != (three ? 5 : 4)) return refuse();
  const int64_t depth = three ? logical[2] : 1, h = logical[U(rank - 2)], w = logical[U(rank - 1)];
  if (std::ranges::any_of(logical, [](int64_t n) { return n < 0; })) return refuse();
  const int64_t c1 = Blocks(logical[1], c0);
  layout->cut = 1;
  int64_t inner = c0, have = 1, need = 0, slice = 0;  // inner: from one place of the plane to the next
  for (const int64_t n : storage) have *= n;
  if (format == kFractalZ || format == kFractalZ3d) {
    if (storage.size() != 4) return refuse();
    inner = storage[1] * storage[2] * c0;
    if (storage[1] * storage[2] < logical[0] || !Product({depth, c1, h, w, inner}, &need) || have < need) return refuse();
    s[0] = c0;
  } else {
    if (!Product({depth, c1, h, w, c0}, &slice) || !Product({logical[0], slice}, &need) || have < need) return refuse();
    s[0] = slice;
  }
  s[U(rank - 1)] = inner;
  s[U(rank - 2)] = w * inner;
  layout->block = h * w * inner;
  if (three) s[2] = c1 * layout->block;
  return {};
}

void Copy(const Tensor& logical, const Tensor& storage, const Layout& layout, bool pack, Parallel& parallel) {
  if (pack && storage.Numel() != logical.Numel()) {
    const uint64_t zero[2] = {};
    simd::Fill(zero, storage, parallel);
  }
  const auto cut = U(layout.cut);
  const int64_t whole = logical.shape[cut] / layout.c0, rest = logical.shape[cut] % layout.c0;
  // The cut dimension as blocks and places in a block.
  const auto part = [&](int64_t blocks, int64_t places, int64_t first_block) {
    Tensor a = logical, b = logical;
    b.dtype = storage.dtype;
    b.data = simd::At(storage.data, storage.dtype, first_block * layout.block);
    a.data = simd::At(logical.data, logical.dtype, first_block * layout.c0 * logical.strides[cut]);
    b.strides = layout.strides;
    for (Tensor* t : {&a, &b}) {
      for (int d = t->rank; d > layout.cut + 1; --d) {
        t->shape[U(d)] = t->shape[U(d - 1)];
        t->strides[U(d)] = t->strides[U(d - 1)];
      }
      ++t->rank;
      t->shape[cut] = blocks;
      t->shape[cut + 1] = places;
    }
    a.strides[cut] = logical.strides[cut] * layout.c0;
    a.strides[cut + 1] = logical.strides[cut];
    b.strides[cut] = layout.block;
    b.strides[cut + 1] = 1;
    if (pack)
      simd::Copy(a, b, parallel);
    else
      simd::Copy(b, a, parallel);
  };
  if (logical.Numel() == 0) return;
  if (whole > 0) part(whole, layout.c0, 0);
  if (rest > 0) part(1, rest, whole);
}

}  // namespace npu::ops::format
