#include "ops/core/plan.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/parity/parity.h"
#include "base/status/boundary.h"
#include "ops/core/chips.h"
#include "ops/core/executor.h"
#include "ops/core/formats.h"
#include "ops/core/object.h"
#include "ops/core/platform.h"
#include "ops/core/trace.h"
#include "tensor/shape.h"

namespace npu::ops {
namespace {

constexpr uint64_t kScratchAlign = 512;

Status NullArgument(const OpDef& op, size_t p) {
  return Error(Code::kNullPointer, "{}: {} is null.", op.name, op.params[p].name)
      .Remedy("The operator cannot work without {}.", op.params[p].name);
}

Status NotAnObject(const OpDef& op, size_t p, const void* word, std::string_view what) {
  return Error(Code::kInvalidParam, "{}: {} ({}) is not a live {}: it was destroyed or never created.", op.name,
               op.params[p].name, word, what)
      .Remedy("Pass what aclCreate… returned, before it is destroyed.");
}

// Layouts of the card's own (NC1HWC0, FRACTAL_Z, FRACTAL_NZ, NDC1HWC0, FRACTAL_Z_3D, NZ with fixed C0): the view does
// not say where an element lies.
bool PrivateFormat(int32_t format) {
  return format == 3 || format == 4 || format == 29 || format == 32 || format == 33 || (format >= 50 && format <= 54);
}

bool Known(DType t) { return ItemSize(t) > 0; }

// Copies what the client's tensor object says, checked as far as no rule is needed.
Status Snapshot(const OpDef& op, size_t p, const TensorObject& from, Tensor* to) {
  const std::string_view name = op.params[p].name;
  if (from.Shape().size() > kMaxRank) {
    return Error(Code::kInvalidParam, "{}: {} has {} dimensions; at most {} are supported.", op.name, name,
                 from.Shape().size(), kMaxRank)
        .Remedy("Merge dimensions before the call.");
  }
  if (!Known(from.dtype)) {
    return Error(Code::kInvalidParam, "{}: {} has data type number {}, which no operator here computes with.", op.name,
                 name, static_cast<int>(from.dtype))
        .Remedy("Convert {} to a supported type first.", name);
  }
  if (PrivateFormat(from.format)) {
    return Error(Code::kInvalidParam, "{}: {} has the private format number {}, which is not understood here.", op.name,
                 name, from.format)
        .Remedy("Keep tensors in base formats (allow_internal_format off), or cast to ND before the call.");
  }
  to->dtype = from.dtype;
  to->rank = static_cast<int8_t>(from.Shape().size());
  int64_t numel = 1, last = 0;  // `last`: the element farthest from the first
  bool fits = true;
  for (size_t d = 0; d < from.Shape().size(); ++d) {
    to->shape[d] = from.Shape()[d];
    to->strides[d] = from.Strides()[d];
    if (to->shape[d] < 0 || to->strides[d] < 0) {
      return Error(Code::kInvalidParam, "{}: {} has a negative size or stride in dim {} ({} and {}).", op.name, name, d,
                   to->shape[d], to->strides[d])
          .Remedy("Sizes and strides count elements and are never negative.");
    }
    int64_t step = 0;
    fits = fits && !__builtin_mul_overflow(numel, to->shape[d], &numel) &&
           !__builtin_mul_overflow(std::max<int64_t>(to->shape[d] - 1, 0), to->strides[d], &step) &&
           !__builtin_add_overflow(last, step, &last);
  }
  to->data = nullptr;
  if (fits && numel == 0) return {};
  const int64_t item = ItemSize(from.dtype);
  int64_t bytes = 0, skip = 0;
  fits = fits && from.offset >= 0 && last < INT64_MAX && !__builtin_mul_overflow(last + 1, item, &bytes) &&
         !__builtin_mul_overflow(from.offset, item, &skip);
  if (!fits) {
    return Error(Code::kInvalidParam, "{}: {} has shape {} and offset {}, which name places outside any memory.",
                 op.name, name, ShapeText(to->Shape()), from.offset)
        .Remedy("Offsets are not negative; sizes and strides stay within the storage.");
  }
  if (from.data == nullptr) {
    return Error(Code::kInvalidParam, "{}: {} has shape {} but its data address is null.", op.name, name,
                 ShapeText(to->Shape()))
        .Remedy("Pass device memory from aclrtMalloc as tensorData.");
  }
  const Platform& platform = ThePlatform();
  const char* first = static_cast<const char*>(from.data) + skip;
  if (platform.check != nullptr) NPU_TRY(platform.check(first, static_cast<size_t>(bytes), op.name, name));
  to->data = platform.local != nullptr ? platform.local(first) : const_cast<char*>(first);
  return {};
}

// A tensor whose memory is another arrangement of its elements: the whole storage is looked at.
Status SnapshotStorage(const OpDef& op, size_t p, const TensorObject& from, Formatted* to) {
  const std::string_view name = op.params[p].name;
  int64_t numel = 1;
  bool fits = from.Storage().size() <= kMaxRank && from.Shape().size() <= kMaxRank && Known(from.dtype) && from.offset == 0;
  for (const int64_t n : from.Storage()) fits = fits && n >= 0 && !__builtin_mul_overflow(numel, n, &numel);
  int64_t bytes = 0;
  fits = fits && !__builtin_mul_overflow(numel, int64_t{ItemSize(from.dtype)}, &bytes);
  if (!fits) {
    return Error(Code::kInvalidParam, "{}: {} has format {} with shape {}, storage {} and offset {}, which is not understood here.",
                 op.name, name, from.format, ShapeText(from.Shape()), ShapeText(from.Storage()), from.offset)
        .Remedy("Pass a whole tensor of at most {} dimensions.", kMaxRank);
  }
  to->storage = MakeContiguous(nullptr, from.dtype, from.Storage());
  to->view.dtype = from.dtype;
  to->view.rank = static_cast<int8_t>(from.Shape().size());
  std::copy(from.Shape().begin(), from.Shape().end(), to->view.shape.begin());
  std::copy(from.Strides().begin(), from.Strides().end(), to->view.strides.begin());
  if (numel == 0) return {};
  if (from.data == nullptr)
    return Error(Code::kInvalidParam, "{}: {} has storage {} but its data address is null.", op.name, name, ShapeText(from.Storage()))
        .Remedy("Pass device memory from aclrtMalloc as tensorData.");
  const Platform& platform = ThePlatform();
  if (platform.check != nullptr) NPU_TRY(platform.check(from.data, static_cast<size_t>(bytes), op.name, name));
  to->storage.data = platform.local != nullptr ? platform.local(from.data) : from.data;
  to->view.data = to->storage.data;
  return {};
}

class Snapshots {
 public:
  Snapshots(const OpDef& op, const uint64_t* words, Executor& e) : op_(op), words_(words), e_(e) {}

  Status Take() {
    e_.arguments.Add(op_.params.size() * sizeof(Args::Slot));
    for (size_t p = 0; p < op_.params.size(); ++p) NPU_TRY(One(p));
    return {};
  }

 private:
  Args::Slot& Slot(size_t p) { return reinterpret_cast<Args::Slot*>(e_.arguments.data())[p]; }
  // Space for `count` values behind parameter p.
  template <class T>
  T* Room(size_t p, size_t count) {
    const uint32_t offset = e_.arguments.Add(std::max<size_t>(count * sizeof(T), 1));
    Slot(p).at = {offset, static_cast<uint32_t>(count)};
    return reinterpret_cast<T*>(e_.arguments.data() + offset);
  }
  Status Null(size_t p) {
    Slot(p).at = {0, 0};
    return op_.MayBeNull(p) ? Status() : NullArgument(op_, p);
  }

  Status One(size_t p) {
    const uint64_t word = words_[p];
    const auto* pointer = reinterpret_cast<const void*>(word);
    switch (op_.params[p].kind) {
      case Kind::boolean:
      case Kind::int8:
      case Kind::int32:
      case Kind::int64:
      case Kind::uint64:
      case Kind::dtype:
        Slot(p).i = static_cast<int64_t>(word);
        return {};
      case Kind::real32:
      case Kind::real64:
        Slot(p).d = std::bit_cast<double>(word);
        return {};
      case Kind::tensor:
        return pointer == nullptr ? Null(p) : OneTensor(p, pointer);
      case Kind::scalar:
        return pointer == nullptr ? Null(p) : OneScalar(p, pointer);
      case Kind::tensor_list:
      case Kind::scalar_list:
        return pointer == nullptr ? EmptyList(p) : OneList(p, pointer);
      case Kind::ints:
      case Kind::bools:
      case Kind::floats:
        return pointer == nullptr ? Null(p) : OneArray(p, pointer);
      case Kind::text: {
        if (pointer == nullptr) return Null(p);
        const size_t n = std::strlen(static_cast<const char*>(pointer));
        std::memcpy(Room<char>(p, n), pointer, n);
        return {};
      }
    }
    return {};
  }

  Status OneTensor(size_t p, const void* pointer) {
    TensorObject* from = Pool<TensorObject>::Find(pointer);
    if (from == nullptr) return NotAnObject(op_, p, pointer, "aclTensor");
    Tensor* to = nullptr;
    if ((op_.imm & kTakesFormats) != 0) {
      auto* whole = Room<Formatted>(p, 1);
      *whole = {};
      whole->format = from->format;
      to = &whole->view;
      if (PrivateFormat(from->format)) {
        NPU_TRY(SnapshotStorage(op_, p, *from, whole));
      } else {
        NPU_TRY(Snapshot(op_, p, *from, to));
        whole->storage = *to;
      }
    } else {
      to = Room<Tensor>(p, 1);
      NPU_TRY(Snapshot(op_, p, *from, to));
    }
    if (op_.params[p].role != Role::in && SelfOverlaps(*to)) {
      return Error(Code::kInvalidParam,
                   "{}: {} (shape {}, strides {}) is written, but several of its elements share one address.", op_.name,
                   op_.params[p].name, ShapeText(to->Shape()), ShapeText(to->Strides()))
          .Remedy("Write into a tensor of its own (clone the expanded one first).");
    }
    if ((op_.live >> p & 1) != 0) {
      for (Ref<TensorObject>& kept : e_.live) {
        if (kept) continue;
        kept = Ref<TensorObject>::Share(from);
        break;
      }
    }
    return {};
  }

  Status OneScalar(size_t p, const void* pointer) {
    const ScalarObject* from = Pool<ScalarObject>::Find(pointer);
    if (from == nullptr) return NotAnObject(op_, p, pointer, "aclScalar");
    *Room<Scalar>(p, 1) = from->value;
    return {};
  }

  // Null stands for the empty list: torch_npu passes either.
  Status EmptyList(size_t p) {
    Slot(p).at = {0, 0};
    return {};
  }

  Status OneList(size_t p, const void* pointer) {
    const ListObject* from = Pool<ListObject>::Find(pointer);
    const bool tensors = op_.params[p].kind == Kind::tensor_list;
    if (from == nullptr || from->element != op_.params[p].kind)
      return NotAnObject(op_, p, pointer, tensors ? "aclTensorList" : "aclScalarList");
    if (!tensors) {
      Scalar* to = Room<Scalar>(p, from->items.size());
      for (size_t i = 0; i < from->items.size(); ++i) {
        const ScalarObject* s = Pool<ScalarObject>::Find(from->items[i]);
        if (s == nullptr) return NotAnObject(op_, p, from->items[i], "aclScalar in the list");
        to[i] = s->value;
      }
      return {};
    }
    Tensor* to = Room<Tensor>(p, from->items.size());
    for (size_t i = 0; i < from->items.size(); ++i) {
      to[i] = Tensor();
      if (from->items[i] == nullptr) continue;
      const TensorObject* t = Pool<TensorObject>::Find(from->items[i]);
      if (t == nullptr) return NotAnObject(op_, p, from->items[i], "aclTensor in the list");
      NPU_TRY(Snapshot(op_, p, *t, &to[i]));
    }
    return {};
  }

  Status OneArray(size_t p, const void* pointer) {
    ArrayObject* from = Pool<ArrayObject>::Find(pointer);
    const Kind kind = op_.params[p].kind;
    if (from == nullptr || from->element != kind) {
      return NotAnObject(op_, p, pointer,
                         kind == Kind::ints    ? "aclIntArray"
                         : kind == Kind::bools ? "aclBoolArray"
                                               : "aclFloatArray");
    }
    const size_t item = kind == Kind::ints ? sizeof(int64_t) : kind == Kind::bools ? sizeof(bool) : sizeof(float);
    std::byte* to = Room<std::byte>(p, from->size * item);
    std::memcpy(to, from->Data(), from->size * item);
    Slot(p).at.count = static_cast<uint32_t>(from->size);
    return {};
  }

  const OpDef& op_;
  const uint64_t* words_;
  Executor& e_;
};

// Every output exists and has no element. (An operator with empty inputs and a full output has work to do.)
bool NothingToDo(const OpDef& op, const Args& args) {
  bool any = false;
  for (size_t p = 0; p < op.params.size(); ++p) {
    if (op.params[p].role == Role::in) continue;
    const Token token{static_cast<uint8_t>(p)};
    for (const Tensor& t : args.Many<Tensor>(token)) {
      any = true;
      if (t.dtype != DType::none && t.Numel() > 0) return false;
    }
  }
  return any && op.live == 0;
}

uint64_t BytesOf(const OpDef& op, const Args& args) {
  uint64_t bytes = 0;
  for (size_t p = 0; p < op.params.size(); ++p) {
    if (op.params[p].kind != Kind::tensor && op.params[p].kind != Kind::tensor_list) continue;
    for (const Tensor& t : args.Many<Tensor>(Token{static_cast<uint8_t>(p)}))
      bytes += static_cast<uint64_t>(t.Numel()) * ItemSize(t.dtype);
  }
  return bytes;
}

double DefaultCost(uint64_t bytes) { return 100 + static_cast<double>(bytes) / 8; }  // 8 GB/s on one thread

// `anynpu run --missing ops`: as on a machine without the package of kernels.
Status KernelsMissing(const OpDef& op) {
  static const bool missing = [] {
    const char* text = std::getenv("ANYNPU_MISSING");
    return text != nullptr && std::string_view(text) == "ops";
  }();
  if (!missing) [[likely]]
    return {};
  std::string_view name = op.name;
  if (name.starts_with("aclnn")) name.remove_prefix(5);
  return Error(Code::kOpNotFound, "EZ9999: {}: Cannot find bin of op {}: the package of kernels is not installed.", op.name, name)
      .Remedy("Install the kernels (ops) package of this chip and CANN release; here anynpu run --missing ops left it out.");
}

}  // namespace

Platform& ThePlatform() {
  static constinit Platform platform;
  return platform;
}

uint64_t Planning::NeedScratch(uint64_t bytes) {
  const uint64_t at = executor_.scratch_bytes;
  executor_.scratch_bytes += (bytes + kScratchAlign - 1) / kScratchAlign * kScratchAlign;
  return at;
}

void Planning::Cost(double ns) { executor_.cost_ns = ns; }

void* Planning::AddState(const void* value, size_t bytes) {
  const uint32_t at = executor_.state.Add(bytes);
  std::memcpy(executor_.state.data() + at, value, bytes);
  return executor_.state.data() + at;
}

Result<Executor*> Plan(const OpDef& op, const uint64_t* words) {
  struct Guard {
    Executor* e;
    ~Guard() { DestroyExecutor(e); }
  } guard{Pool<Executor>::New()};
  if (guard.e == nullptr) return Error(Code::kBadAlloc, "{}: no memory for an executor.", op.name);
  Executor& e = *guard.e;
  e.op = &op;
  NPU_TRY(Snapshots(op, words, e).Take());

  Planning planning(op, e);
  planning.args = Args(e.arguments.data());
  NPU_TRY(KernelsMissing(op));
  if (parity::On()) [[unlikely]]
    NPU_TRY(rule::check::ChipTypes(planning, Rule{&rule::kChipTypes}));
  for (size_t r = 0; r < op.rule_count; ++r) NPU_TRY(op.rules[r].kind->check(planning, op.rules[r]));
  if (op.prepare != nullptr) NPU_TRY(op.prepare(planning));
  e.nothing_to_do = NothingToDo(op, planning.args);
  if (e.nothing_to_do) e.scratch_bytes = 0;
  e.bytes = BytesOf(op, planning.args);
  if (e.cost_ns == 0) e.cost_ns = DefaultCost(e.bytes);
  return std::exchange(guard.e, nullptr);
}

int32_t PlanCall(const OpDef& op, const uint64_t* words, uint64_t* workspace_bytes, void** executor) noexcept {
  if (boundary::MayFail()) [[unlikely]] {
    int32_t code = 0;
    char name[128];
    std::snprintf(name, sizeof name, "%sGetWorkspaceSize", op.name.data());
    if (boundary::FailsOnDemand(name, &code)) return code;
  }
  return boundary::Guard(op.name.data(), NnCode, [&]() -> Status {
    if (workspace_bytes == nullptr || executor == nullptr) {
      return Error(Code::kNullPointer, "{}: {} is null.", op.name,
                   workspace_bytes == nullptr ? "workspaceSize" : "executor")
          .Remedy("Pass the address of a variable for the result.");
    }
    Result<Executor*> plan = Plan(op, words);
    if (!plan.ok()) {
      if (Trace::On()) Trace::Refused(op, plan.status());
      return plan.status();
    }
    Executor* const planned = *plan;
    *workspace_bytes = planned->scratch_bytes;
    *executor = planned;
    return {};
  });
}

}  // namespace npu::ops
