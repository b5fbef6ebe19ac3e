#include "ops/core/chips.h"

#include <algorithm>
#include <array>

#include "base/parity/parity.h"
#include "ops/core/platform.h"

namespace npu::ops {
namespace {

constexpr ChipParam kParams[] = {
#define NPU_CHIP_PARAM(index, a2, a3, p310, a950, same2, same3, same310, same950, ranks, wishes) \
  {index, {a2, a3, p310, a950}, {same2, same3, same310, same950}, ranks, wishes},
#include "gen/parity/chips.inc"
#undef NPU_CHIP_PARAM
};

constexpr ChipOp kOps[] = {
#define NPU_CHIP_OP(name, first, count, a2, a3, p310, a950, more, source)                                    \
  {name,                                                                                                     \
   {kParams + (first), count},                                                                               \
   {static_cast<OnChip>(a2), static_cast<OnChip>(a3), static_cast<OnChip>(p310), static_cast<OnChip>(a950)}, \
   more != 0,                                                                                                \
   source},
#include "gen/parity/chips.inc"
#undef NPU_CHIP_OP
};

// The rows as they are written in the table, with numbers for types.
struct CombinationRow {
  const char* op;
  uint8_t chips, width, rows;
  uint8_t params[6];
  uint8_t types[8][6];
  const char* source;
};
#define NPU_UNWRAP(...) __VA_ARGS__
constexpr CombinationRow kCombinationRows[] = {
#define NPU_CHIP_COMBINATION(row) NPU_UNWRAP row,
#include "gen/parity/chips.inc"
#undef NPU_CHIP_COMBINATION
};
#undef NPU_UNWRAP

constexpr auto kCombinations = [] {
  std::array<ChipCombination, std::size(kCombinationRows)> all{};
  for (size_t i = 0; i < all.size(); ++i) {
    const CombinationRow& row = kCombinationRows[i];
    all[i] = {row.op, row.chips, row.width, row.rows, {}, {}, row.source};
    for (size_t p = 0; p < row.width; ++p) all[i].params[p] = row.params[p];
    for (size_t r = 0; r < row.rows; ++r)
      for (size_t p = 0; p < row.width; ++p) all[i].types[r][p] = static_cast<DType>(row.types[r][p]);
  }
  return all;
}();

// The vendor's spelling, as the card's texts have it.
std::string_view CardName(DType t) {
  switch (t) {
    case DType::f32:
      return "DT_FLOAT";
    case DType::f16:
      return "DT_FLOAT16";
    case DType::bf16:
      return "DT_BFLOAT16";
    case DType::f64:
      return "DT_DOUBLE";
    case DType::i8:
      return "DT_INT8";
    case DType::i16:
      return "DT_INT16";
    case DType::i32:
      return "DT_INT32";
    case DType::i64:
      return "DT_INT64";
    case DType::u8:
      return "DT_UINT8";
    case DType::u16:
      return "DT_UINT16";
    case DType::u32:
      return "DT_UINT32";
    case DType::u64:
      return "DT_UINT64";
    case DType::b8:
      return "DT_BOOL";
    case DType::c32:
      return "DT_COMPLEX32";
    case DType::c64:
      return "DT_COMPLEX64";
    case DType::c128:
      return "DT_COMPLEX128";
    case DType::none:
      break;
  }
  return "DT_UNDEFINED";
}

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8,  DType::i16,
                            DType::i32, DType::i64, DType::u8,   DType::u16, DType::u32, DType::u64,
                            DType::b8,  DType::c32, DType::c64,  DType::c128};

TypeSet SetOf(uint64_t bits) {
  TypeSet set;
  set.bits = bits;
  return set;
}

// "[DT_FLOAT,DT_FLOAT16,]", the comma before the bracket included.
std::string CardList(TypeSet set) {
  std::string text = "[";
  for (const DType t : kTypes) {
    if (set.Has(t)) text += std::string(CardName(t)) + ",";
  }
  return text + "]";
}

// The nearest type of the set, for what a program can do about it.
DType Nearest(DType t, TypeSet set) {
  constexpr DType kFloatOrder[] = {DType::f32, DType::bf16, DType::f16, DType::f64};
  constexpr DType kIntOrder[] = {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8, DType::f32};
  constexpr DType kComplexOrder[] = {DType::c64, DType::c128};
  const std::span<const DType> order = IsComplex(t) ? std::span<const DType>(kComplexOrder)
                                       : IsFloat(t) ? std::span<const DType>(kFloatOrder)
                                                    : std::span<const DType>(kIntOrder);
  for (const DType candidate : order) {
    if (set.Has(candidate)) return candidate;
  }
  return DType::none;
}

class Looking {
 public:
  Looking(const Planning& plan, const ChipOp& op, Chip chip) : plan_(plan), op_(op), chip_(static_cast<int>(chip)) {}

  Status All() const {
    if (op_.on[chip_] == OnChip::kNo) {
      NPU_TRY(Found("chip", fmt::format("the function is not listed for {}", ThePlatform().chip()),
                    "use another operator, or run this step on the CPU"));
    }
    if (op_.more) parity::Unknown("combination-unread", plan_.op.name);
    for (const ChipCombination& together : kCombinations) {
      if (together.op == op_.name && (together.chips >> chip_ & 1) != 0) NPU_TRY(Together(together));
    }
    Counted();
    for (const ChipParam& param : op_.params) {
      if (param.index >= plan_.op.params.size()) continue;
      const Kind kind = plan_.op.params[param.index].kind;
      if (kind != Kind::tensor && kind != Kind::tensor_list) continue;
      for (const Tensor& tensor : plan_.args.Many<Tensor>(Token{param.index})) {
        if (tensor.dtype != DType::none) NPU_TRY(One(param, tensor));
      }
    }
    return {};
  }

 private:
  std::string_view Name(const ChipParam& param) const { return plan_.op.params[param.index].name; }

  Status Found(std::string_view rule, std::string what, std::string change) const {
    return parity::Judge({Code::kInvalidParam, plan_.op.name, std::move(what), std::move(change), rule, op_.source});
  }

  void Doubted(std::string_view rule, std::string what, std::string change) const {
    parity::Doubt({Code::kInvalidParam, plan_.op.name, std::move(what), std::move(change), rule, op_.source});
  }

  // The first tensor of a parameter; null when nothing was passed.
  const Tensor* First(uint8_t index) const {
    if (index >= plan_.op.params.size()) return nullptr;
    const Kind kind = plan_.op.params[index].kind;
    if (kind != Kind::tensor && kind != Kind::tensor_list) return nullptr;
    const auto tensors = plan_.args.Many<Tensor>(Token{index});
    return tensors.empty() || tensors[0].dtype == DType::none ? nullptr : &tensors[0];
  }

  // Of a parameter that was left out any type will do.
  Status Together(const ChipCombination& together) const {
    std::string passed;
    for (uint8_t p = 0; p < together.width; ++p) {
      const Tensor* tensor = First(together.params[p]);
      if (tensor != nullptr)
        passed += fmt::format("{}{} {}", passed.empty() ? "" : ", ", plan_.op.params[together.params[p]].name,
                              CardName(tensor->dtype));
    }
    std::string allowed;
    for (uint8_t r = 0; r < together.rows; ++r) {
      bool fits = true;
      allowed += r == 0 ? "(" : ", (";
      for (uint8_t p = 0; p < together.width; ++p) {
        const Tensor* tensor = First(together.params[p]);
        fits = fits && (tensor == nullptr || tensor->dtype == together.types[r][p]);
        allowed += fmt::format("{}{}", p == 0 ? "" : ", ", CardName(together.types[r][p]));
      }
      allowed += ")";
      if (fits) return {};
    }
    return parity::Judge({Code::kInvalidParam, plan_.op.name,
                          fmt::format("Types that do not go together: {}. The chip takes {}.", passed, allowed),
                          "convert the tensors so that their types are one of these combinations: .to(dtype)",
                          "combination", together.source});
  }

  // What nobody knows about the call is counted, for the report.
  void Counted() const {
    bool numbers = false, int64 = false;
    for (uint8_t p = 0; p < plan_.op.params.size(); ++p) {
      const Param& param = plan_.op.params[p];
      numbers = numbers || param.kind == Kind::scalar || param.kind == Kind::scalar_list;
      const Tensor* tensor = param.role == Role::in ? nullptr : First(p);
      int64 = int64 || (tensor != nullptr && tensor->dtype == DType::i64);
    }
    if (numbers) parity::Unknown("number", plan_.op.name);
    if (int64) parity::Unknown("int64", plan_.op.name);
  }

  // Wishes of the page: said, not refused.
  void Wishes(const ChipParam& param, const Tensor& tensor) const {
    if ((param.wishes & kContiguous) != 0 && !tensor.Contiguous())
      Doubted("contiguous", fmt::format("Tensor {} is not contiguous; the page wants it so.", Name(param)),
              fmt::format("pass {}.contiguous()", Name(param)));
    if ((param.wishes & kNotEmpty) != 0 && tensor.Numel() == 0)
      Doubted("empty", fmt::format("Tensor {} has no elements; the page wants some.", Name(param)),
              "leave the call out for empty tensors");
    const auto item = static_cast<uint64_t>(ItemSize(tensor.dtype));
    if (tensor.Numel() > 0 && item > 1 && reinterpret_cast<uint64_t>(tensor.data) % item != 0)
      Doubted("alignment",
              fmt::format("Tensor {} lies at an address that is no multiple of {} bytes.", Name(param), item),
              "let storage offsets be whole elements of the type");
  }

  Status One(const ChipParam& param, const Tensor& tensor) const {
    Wishes(param, tensor);
    const TypeSet set = SetOf(param.types[chip_]);
    if (set.bits != 0 && !set.Has(tensor.dtype)) {
      const DType nearest = Nearest(tensor.dtype, set);
      NPU_TRY(Found(
          "dtype",
          fmt::format("Tensor {} not implemented for {}, should be in dtype support list {}.", Name(param),
                      CardName(tensor.dtype), CardList(set)),
          nearest == DType::none
              ? fmt::format("run this step on the CPU: the chip has no type near {} for it", npu::Name(tensor.dtype))
              : fmt::format("convert {} from {} to {} first: .to(torch.{})", Name(param), npu::Name(tensor.dtype),
                            npu::Name(nearest), npu::Name(nearest))));
    }
    if (const uint8_t other = param.same[chip_]; other != 0xff && other < plan_.op.params.size()) {
      const auto peers = plan_.args.Many<Tensor>(Token{other});
      const bool tensors =
          plan_.op.params[other].kind == Kind::tensor || plan_.op.params[other].kind == Kind::tensor_list;
      if (tensors && !peers.empty() && peers[0].dtype != DType::none && peers[0].dtype != tensor.dtype) {
        NPU_TRY(Found("same-dtype",
                      fmt::format("Tensor {} is {}, but {} is {}; the chip wants the same type.", Name(param),
                                  CardName(tensor.dtype), plan_.op.params[other].name, CardName(peers[0].dtype)),
                      fmt::format("convert {} to {} first: .to(torch.{})", Name(param), npu::Name(peers[0].dtype),
                                  npu::Name(peers[0].dtype))));
      }
    }
    // torch passes one element with no dimension or with one, whatever the page says, and cards take both.
    const uint32_t ranks = param.ranks | ((param.ranks & 0b10) != 0 && tensor.rank == 0 ? 0b1u : 0u);
    if (param.ranks != 0 && (tensor.rank > 15 || (ranks >> tensor.rank & 1) == 0)) {
      std::string allowed;
      for (int rank = 0; rank <= 15; ++rank) {
        if ((param.ranks >> rank & 1) != 0) allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", rank);
      }
      NPU_TRY(Found("rank",
                    fmt::format("Tensor {} has {} dimensions; the chip takes {}.", Name(param), tensor.rank, allowed),
                    fmt::format("reshape {} (view, flatten, unsqueeze)", Name(param))));
    }
    return {};
  }

  const Planning& plan_;
  const ChipOp& op_;
  const int chip_;
};

}  // namespace

std::optional<Chip> ChipOf(std::string_view soc) {
  if (soc.starts_with("Ascend910_93")) return Chip::k910_93;
  if (soc.starts_with("Ascend910B")) return Chip::k910b;
  if (soc.starts_with("Ascend310P")) return Chip::k310p;
  if (soc.starts_with("Ascend950")) return Chip::k950;
  return std::nullopt;
}

std::span<const ChipOp> ChipOps() { return kOps; }
std::span<const ChipCombination> ChipCombinations() { return kCombinations; }

const ChipOp* FindChipOp(std::string_view name) {
  const auto found = std::lower_bound(std::begin(kOps), std::end(kOps), name,
                                      [](const ChipOp& op, std::string_view wanted) { return op.name < wanted; });
  return found != std::end(kOps) && found->name == name ? found : nullptr;
}

namespace rule::check {

Status ChipTypes(const Planning& plan, const Rule&) {
  parity::Looked();
  const auto chip_name = ThePlatform().chip;
  const std::optional<Chip> chip = chip_name == nullptr ? std::nullopt : ChipOf(chip_name());
  const ChipOp* op = FindChipOp(plan.op.name);
  const bool stated = chip && op != nullptr && op->on[static_cast<int>(*chip)] != OnChip::kUnknown;
  if (!stated) {
    parity::Unknown("function", plan.op.name);
    return {};
  }
  return Looking(plan, *op, *chip).All();
}

}  // namespace rule::check
}  // namespace npu::ops
