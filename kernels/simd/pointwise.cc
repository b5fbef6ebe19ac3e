#include "kernels/simd/pointwise.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/simd/cast.h"
#include "tensor/shape.h"
#include "tensor/tile_loop.h"

namespace npu::simd {

Lane LaneOf(DType t) {
  switch (t) {
    case DType::f32:
    case DType::f16:
    case DType::bf16: return Lane::f32;
    case DType::f64: return Lane::f64;
    case DType::i64:
    case DType::u32:
    case DType::u64: return Lane::i64;
    case DType::c32:
    case DType::c64:
    case DType::c128: return Lane::c128;
    default: return Lane::i32;
  }
}

namespace {

constexpr int64_t kTile = 1024;          // elements; three buffers of 16-byte lanes stay in L1
constexpr int64_t kGrain = 16 * kTile;   // elements given to one thread at a time
constexpr int64_t kLongRow = 256;        // rows at least this long are walked one by one, shorter ones share tiles

// An operand as RunPointwise reads it: where it lies in the loop, and how its elements become lanes.
struct Source {
  const char* base;
  int operand;
  int item;
  Lane lane;
  bool constant = false;                 // one value for all elements: its tile is made once
  ConvertFn first = nullptr;             // stored type -> lane; null: the stored form is the lane
  // When the compute type is narrower than both, the operand is rounded to it first, as torch converts operands.
  ConvertFn narrow = nullptr, widen = nullptr;
};

struct Sink {
  char* base;
  int item;
  Lane lane;
  ConvertFn last = nullptr;              // lane -> stored type
  ConvertFn narrow = nullptr, widen = nullptr;
};

// The compute type cannot hold what the other type holds, though the lane could.
bool NarrowerThanLane(DType compute, Lane lane) {
  switch (compute) {
    case DType::f32: return lane != Lane::f32;
    case DType::i32: return lane != Lane::i32;
    case DType::f64: return lane != Lane::f64;
    case DType::i64: return lane != Lane::i64;
    case DType::c128: return lane != Lane::c128;
    default: return true;
  }
}

bool StoredAsLane(DType t, Lane lane) {
  switch (lane) {
    case Lane::f32: return t == DType::f32;
    case Lane::f64: return t == DType::f64;
    case Lane::i32: return t == DType::i32;
    case Lane::i64: return t == DType::i64 || t == DType::u64;
    case Lane::c128: return t == DType::c128;
    case Lane::b8: return t == DType::b8;
  }
  return false;
}

// Walks one operand's elements [begin, begin+n) of the loop in order, in pieces that lie on one row.
template <class F>
void Pieces(const TileLoop& loop, int operand, int64_t begin, int64_t n, F&& piece) {
  const int64_t inner = loop.inner();
  int64_t row = begin / inner, at = begin % inner;
  const int64_t stride = loop.inner_stride(operand);
  while (n > 0) {
    const int64_t m = std::min(n, inner - at);
    piece(loop.Offset(row, operand) + at * stride, m);
    n -= m;
    ++row;
    at = 0;
  }
}

class Runner {
 public:
  Runner(const Pointwise& p, TileLoop loop) : p_(p), loop_(loop), lane_(LaneOf(p.compute)), fn_(p.kernel->find(lane_)) {
    for (int k = 0; k < p.kernel->arity; ++k) {
      const Tensor& t = *p.in[static_cast<size_t>(k)];
      Source& s = sources_[static_cast<size_t>(k)];
      const bool mask = p.kernel->mask_operand == k;
      s.base = static_cast<const char*>(t.data);
      s.operand = k + 1;
      s.item = ItemSize(t.dtype);
      s.constant = true;
      for (int d = 0; d < loop_.rank(); ++d) s.constant = s.constant && loop_.stride(d, k + 1) == 0;
      s.lane = mask ? Lane::b8 : lane_;
      if (!StoredAsLane(t.dtype, s.lane) || (mask && t.dtype != DType::b8)) s.first = LoadTo(t.dtype, s.lane);
      if (!mask && !p.number[static_cast<size_t>(k)] && t.dtype != p.compute && NarrowerThanLane(p.compute, lane_)) {
        s.narrow = StoreFrom(lane_, p.compute);
        s.widen = LoadTo(p.compute, lane_);
      }
    }
    const Tensor& out = *p.out;
    sink_.base = static_cast<char*>(out.data);
    sink_.item = ItemSize(out.dtype);
    sink_.lane = p.kernel->predicate ? Lane::b8 : lane_;
    if (!StoredAsLane(out.dtype, sink_.lane)) sink_.last = StoreFrom(sink_.lane, out.dtype);
    if (!p.kernel->predicate && out.dtype != p.compute && NarrowerThanLane(p.compute, lane_)) {
      sink_.narrow = StoreFrom(lane_, p.compute);
      sink_.widen = LoadTo(p.compute, lane_);
    }
  }

  void Range(int64_t begin, int64_t end) const {
    const int64_t inner = loop_.inner();
    // A range of the flat case may go to the kernel whole.
    const int64_t step = AllDirectFlat() ? end - begin : kTile;
    // Not zeroed; a large frame, but kernels run on our own worker threads or a client's ordinary stack.
    Buffers b;
    std::array<const void*, 3> in{};
    for (int k = 0; k < p_.kernel->arity; ++k) {
      const Source& s = sources_[static_cast<size_t>(k)];
      if (s.constant) in[static_cast<size_t>(k)] = Repeat(s, begin, std::min(step, end - begin), b.lanes[k], b);
    }
    while (begin < end) {
      int64_t n = std::min(step, end - begin);
      if (inner >= kLongRow) n = std::min(n, inner - begin % inner);
      Tile(begin, n, in, b);
      begin += n;
    }
  }

 private:
  struct Buffers {
    alignas(64) char lanes[4][kTile * 16];
    alignas(64) char raw[kTile * 16];
    alignas(64) char narrow[kTile * 16];
  };

  bool AllDirectFlat() const {
    for (int k = 0; k < p_.kernel->arity; ++k) {
      const Source& s = sources_[static_cast<size_t>(k)];
      if (s.first != nullptr || s.narrow != nullptr || !loop_.Flat(s.operand, s.item)) return false;
    }
    return sink_.last == nullptr && sink_.narrow == nullptr && loop_.Flat(0, sink_.item);
  }

  void Tile(int64_t begin, int64_t n, std::array<const void*, 3> in, Buffers& b) const {
    for (int k = 0; k < p_.kernel->arity; ++k) {
      const Source& s = sources_[static_cast<size_t>(k)];
      if (!s.constant) in[static_cast<size_t>(k)] = Read(s, begin, n, b.lanes[k], b);
    }
    char* direct = nullptr;
    if (sink_.last == nullptr && sink_.narrow == nullptr) direct = OneRun(0, sink_.item, begin, n, sink_.base);
    void* out = direct != nullptr ? direct : b.lanes[3];
    fn_(in.data(), out, n, p_.imm);
    if (direct == nullptr) Write(begin, n, b.lanes[3], b);
  }

  // The address of the elements when they lie without gaps, else null.
  template <class C>
  C* OneRun(int operand, int item, int64_t begin, int64_t n, C* base) const {
    if (loop_.rank() > 0 && loop_.inner_stride(operand) != item) return nullptr;
    const int64_t inner = loop_.inner(), at = begin % inner;
    if (at + n > inner) return nullptr;
    return base + loop_.Offset(begin / inner, operand) + at * item;
  }

  const void* Read(const Source& s, int64_t begin, int64_t n, char* lanes, Buffers& b) const {
    const char* stored = OneRun(s.operand, s.item, begin, n, s.base);
    if (stored == nullptr) {
      char* to = s.first != nullptr ? b.raw : lanes;
      int64_t done = 0;
      Pieces(loop_, s.operand, begin, n, [&](int64_t offset, int64_t m) {
        Gather(s.item, s.base + offset, loop_.inner_stride(s.operand), to + done * s.item, m);
        done += m;
      });
      stored = to;
    }
    if (s.first != nullptr) {
      s.first(stored, lanes, n);
      stored = lanes;
    }
    if (s.narrow != nullptr) {
      s.narrow(stored, b.narrow, n);
      s.widen(b.narrow, lanes, n);
      stored = lanes;
    }
    return stored;
  }

  // The one value of a constant operand as n lanes.
  const void* Repeat(const Source& s, int64_t begin, int64_t n, char* lanes, Buffers& b) const {
    const void* one = Read(s, begin, 1, lanes, b);
    Gather(LaneBytes(s.lane), one, 0, lanes, n);
    return lanes;
  }

  void Write(int64_t begin, int64_t n, char* lanes, Buffers& b) const {
    if (sink_.narrow != nullptr) {
      sink_.narrow(lanes, b.narrow, n);
      sink_.widen(b.narrow, lanes, n);
    }
    const char* stored = lanes;
    if (sink_.last != nullptr) {
      if (char* direct = OneRun(0, sink_.item, begin, n, sink_.base)) {
        sink_.last(lanes, direct, n);
        return;
      }
      sink_.last(lanes, b.raw, n);
      stored = b.raw;
    }
    int64_t done = 0;
    Pieces(loop_, 0, begin, n, [&](int64_t offset, int64_t m) {
      Scatter(sink_.item, stored + done * sink_.item, sink_.base + offset, loop_.inner_stride(0), m);
      done += m;
    });
  }

  const Pointwise& p_;
  const TileLoop loop_;
  const Lane lane_;
  const TileFn fn_;
  std::array<Source, 3> sources_{};
  Sink sink_{};
};

}  // namespace

void RunPointwise(const Pointwise& given, Parallel& parallel) {
  const int64_t numel = given.out->Numel();
  if (numel == 0) return;
  Pointwise p = given;
  // Operands that the output would overwrite before they are read are moved out of the way.
  std::array<std::unique_ptr<char[]>, 3> copies;
  std::array<Tensor, 3> moved;
  for (size_t k = 0; k < static_cast<size_t>(p.kernel->arity); ++k) {
    const Tensor& t = *p.in[k];
    if (OverlapOf(t, *p.out) != Overlap::kPartial) continue;
    copies[k] = std::make_unique<char[]>(static_cast<size_t>(t.Numel() * ItemSize(t.dtype)));
    moved[k] = MakeContiguous(copies[k].get(), t.dtype, t.Shape());
    CopyTensor(t, moved[k], parallel);
    p.in[k] = &moved[k];
  }

  std::array<const Tensor*, 4> operands{p.out, p.in[0], p.in[1], p.in[2]};
  const Runner runner(p, TileLoop(std::span(operands).first(static_cast<size_t>(p.kernel->arity) + 1)));
  if (numel <= kGrain) {
    runner.Range(0, numel);
    return;
  }
  parallel.For(numel, kGrain, [&](int64_t begin, int64_t end) { runner.Range(begin, end); });
}

double PointwiseNs(const PointwiseKernel& kernel, int64_t numel) {
  return 100 + static_cast<double>(numel) * kernel.cost / 10;
}

namespace {

void Identity(const void* const* in, void* out, int64_t n, int bytes) {
  if (in[0] != out) std::memcpy(out, in[0], static_cast<size_t>(n * bytes));
}
TileFn FindIdentity(Lane lane) {
  switch (LaneBytes(lane)) {
    case 4: return [](const void* const* in, void* out, int64_t n, const Imm&) { Identity(in, out, n, 4); };
    case 8: return [](const void* const* in, void* out, int64_t n, const Imm&) { Identity(in, out, n, 8); };
    case 16: return [](const void* const* in, void* out, int64_t n, const Imm&) { Identity(in, out, n, 16); };
    default: return nullptr;
  }
}
constexpr PointwiseKernel kIdentity{"identity", 1, kAnyType, false, 0xff, 2, "exact", FindIdentity};

// The innermost two dimensions exchanged: blocks that fit L1 on both sides.
template <class T>
void TransposeBlock(const char* in, int64_t in_row, char* out, int64_t out_row, int64_t rows, int64_t cols) {
  constexpr int64_t kBlock = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const int64_t r1 = std::min(rows, r0 + kBlock);
    for (int64_t c0 = 0; c0 < cols; c0 += kBlock) {
      const int64_t c1 = std::min(cols, c0 + kBlock);
      for (int64_t r = r0; r < r1; ++r) {
        char* to = out + r * out_row + c0 * static_cast<int64_t>(sizeof(T));
        const char* from = in + r * static_cast<int64_t>(sizeof(T)) + c0 * in_row;
        for (int64_t c = c0; c < c1; ++c, to += sizeof(T), from += in_row) std::memcpy(to, from, sizeof(T));
      }
    }
  }
}

struct Wide { uint64_t a, b; };

void Transpose(int item, const char* in, int64_t in_row, char* out, int64_t out_row, int64_t rows, int64_t cols) {
  switch (item) {
    case 1: return TransposeBlock<uint8_t>(in, in_row, out, out_row, rows, cols);
    case 2: return TransposeBlock<uint16_t>(in, in_row, out, out_row, rows, cols);
    case 4: return TransposeBlock<uint32_t>(in, in_row, out, out_row, rows, cols);
    case 8: return TransposeBlock<uint64_t>(in, in_row, out, out_row, rows, cols);
    case 16: return TransposeBlock<Wide>(in, in_row, out, out_row, rows, cols);
  }
}

// Same type on both sides: bytes only.
void CopySameType(const Tensor& in, const Tensor& out, Parallel& parallel) {
  const TileLoop loop({&out, &in});
  const int item = ItemSize(out.dtype);
  const auto* from = static_cast<const char*>(in.data);
  auto* to = static_cast<char*>(out.data);
  if (loop.Flat(0, item) && loop.Flat(1, item)) {
    parallel.For(loop.numel() * item, int64_t{256} << 10, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
    return;
  }
  const int last = loop.rank() - 1;
  if (loop.rank() >= 2 && loop.stride(last, 0) == item && loop.stride(last - 1, 1) == item && loop.size(last) >= 8 &&
      loop.size(last - 1) >= 8) {
    const int64_t rows = loop.size(last - 1), cols = loop.inner();
    const int64_t strips = (rows + 63) / 64, planes = loop.numel() / (rows * cols);
    parallel.For(planes * strips, std::max<int64_t>(1, kGrain / (64 * cols)), [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t row = s / strips * rows + s % strips * 64;
        Transpose(item, from + loop.Offset(row, 1), loop.stride(last, 1), to + loop.Offset(row, 0), loop.stride(last - 1, 0),
                  std::min<int64_t>(64, rows - s % strips * 64), cols);
      }
    });
    return;
  }
  const int64_t inner = loop.inner();
  parallel.For(loop.outer(), std::max<int64_t>(1, kGrain / inner), [&](int64_t begin, int64_t end) {
    alignas(64) char row_buffer[kTile * 16];
    const int64_t si = loop.inner_stride(1), so = loop.inner_stride(0);
    for (int64_t row = begin; row < end; ++row) {
      const char* s = from + loop.Offset(row, 1);
      char* d = to + loop.Offset(row, 0);
      if (so == item) {
        Gather(item, s, si, d, inner);
      } else if (si == item) {
        Scatter(item, s, d, so, inner);
      } else {
        for (int64_t at = 0; at < inner; at += kTile) {
          const int64_t m = std::min(kTile, inner - at);
          Gather(item, s + at * si, si, row_buffer, m);
          Scatter(item, row_buffer, d + at * so, so, m);
        }
      }
    }
  });
}

}  // namespace

void CopyTensor(const Tensor& in, const Tensor& out, Parallel& parallel) {
  if (out.Numel() == 0) return;
  const Overlap overlap = OverlapOf(in, out);
  if (overlap == Overlap::kSame && in.dtype == out.dtype) return;
  if (in.dtype == out.dtype && overlap == Overlap::kNone) return CopySameType(in, out, parallel);
  Pointwise p{&kIdentity, in.dtype};
  // Types whose single step does not exist go by way of the widest lane.
  if (IsComplex(out.dtype) && !IsComplex(in.dtype)) p.compute = DType::c128;
  p.in[0] = &in;
  p.out = &out;
  if (StoreFrom(LaneOf(p.compute), out.dtype) != nullptr) return RunPointwise(p, parallel);
  const DType middle = DType::f64;
  auto buffer = std::make_unique<double[]>(static_cast<size_t>(in.Numel()));
  const Tensor between = MakeContiguous(buffer.get(), middle, in.Shape());
  CopyTensor(in, between, parallel);
  CopyTensor(between, out, parallel);
}

void FillTensor(const Tensor& out, const Scalar& value, Parallel& parallel) {
  if (out.Numel() == 0) return;
  // One element of the wanted type, then the same copy as for an expanded tensor.
  alignas(16) char lane_value[16] = {}, stored[16] = {};
  Tensor one;
  if (IsComplex(value.dtype)) {
    std::memcpy(lane_value, &value.re, 8);
    std::memcpy(lane_value + 8, &value.im, 8);
    one.dtype = DType::c128;
  } else if (IsFloat(value.dtype)) {
    std::memcpy(lane_value, &value.re, 8);
    one.dtype = DType::f64;
  } else {
    std::memcpy(lane_value, &value.i, 8);
    one.dtype = DType::i64;
  }
  one.data = lane_value;
  Tensor element;
  element.dtype = out.dtype;
  element.data = stored;
  SerialParallel serial;
  CopyTensor(one, element, serial);
  const int item = ItemSize(out.dtype);
  const bool one_byte = std::all_of(stored, stored + item, [&](char b) { return b == stored[0]; });
  const TileLoop loop({&out});
  if (one_byte && loop.Flat(0, item)) {
    parallel.For(loop.numel() * item, int64_t{256} << 10, [&](int64_t begin, int64_t end) {
      std::memset(static_cast<char*>(out.data) + begin, stored[0], static_cast<size_t>(end - begin));
    });
    return;
  }
  CopySameType(element, out, parallel);
}

}  // namespace npu::simd
