#include "kernels/gemm/micro.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/micro.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/gemm/half-inl.h"
#include "kernels/gemm/pack-inl.h"
#include "kernels/gemm/skinny-inl.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npu::gemm::HWY_NAMESPACE {

template <int... kRow>
void FillTiles(MicroKernels& t, std::integer_sequence<int, kRow...>) {
  ((t.tile[0][kRow][0] = Tile<kRow + 1, 1, false>, t.tile[0][kRow][1] = Tile<kRow + 1, 2, false>,
    t.tile[1][kRow][0] = Tile<kRow + 1, 1, true>, t.tile[1][kRow][1] = Tile<kRow + 1, 2, true>),
   ...);
}

template <class T, int... kRow>
void FillElement(MicroKernels& t, Element element, std::integer_sequence<int, kRow...>) {
  const auto e = static_cast<size_t>(element);
  t.pack[e] = Pack<T>;
  t.pack_many[e] = PackMany<T>;
  t.load_row[e] = LoadRow<T>;
  t.store_row[e] = StoreRow<T>;
  ((t.stream[e][kRow] = Stream<T, kRow + 1>, t.dot[e][kRow] = Dot<T, kRow + 1>), ...);
}

MicroKernels MakeKernels() {
  MicroKernels t{};
  t.mr = kMr;
  t.nr = 2 * kLanes;
  t.lanes = kLanes;
  t.skinny_mr = kManyRegisters ? kSkinnyMr : 4;
  t.kc = kKc;
  t.pack_rows = PackRows;
  t.pack_runs = PackRuns;
  FillTiles(t, std::make_integer_sequence<int, kMr>());
  FillElement<float>(t, Element::kF32, std::make_integer_sequence<int, kSkinnyMr>());
  FillElement<F16>(t, Element::kF16, std::make_integer_sequence<int, kSkinnyMr>());
  FillElement<Bf16>(t, Element::kBf16, std::make_integer_sequence<int, kSkinnyMr>());
  return t;
}

}  // namespace npu::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npu::gemm {
namespace {

HWY_EXPORT(MakeKernels);

MicroKernels& Table() {
  static MicroKernels table = HWY_DYNAMIC_DISPATCH(MakeKernels)();
  return table;
}

}  // namespace

const MicroKernels& Kernels() { return Table(); }

void UseTarget(int64_t hwy_target) {
  hwy::SetSupportedTargetsForTest(hwy_target);
  Table() = HWY_DYNAMIC_DISPATCH(MakeKernels)();
}

}  // namespace npu::gemm
#endif
