// Elementwise reduction of several buffers into several buffers: what a collective does with the data of its ranks.
//
//   const void* srcs[] = {mine, theirs};
//   void* dsts[] = {my_out, their_out};
//   ReduceInto({DType::bf16, ReduceOp::kSum}, srcs, dsts, count, Stores::kPlain);
//
// dsts[*][i] = srcs[0][i] op srcs[1][i] op …, in exactly that order, so a result depends on nothing but its inputs. f16
// and bf16 are combined in f32 and rounded once, to nearest even; integers wrap; max and min hand on NaN. Any count,
// any alignment that the element type allows on x86-64 and arm64 (none). A destination may be one of the sources
// itself, not a shifted part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace npu::simd {

enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin };

struct Reduction {
  DType type;
  ReduceOp op;
};

// kStreaming goes round the caches: for results larger than them.
enum class Stores : uint8_t { kPlain, kStreaming };

// True for real numbers of 8 to 64 bits.
bool CanReduce(DType type);

// Undefined unless CanReduce(what.type), srcs has at least one entry, and every buffer holds `count` elements.
void ReduceInto(Reduction what, std::span<const void* const> srcs, std::span<void* const> dsts, size_t count,
                Stores stores);

// A copy with the same choice of stores.
void CopyInto(const void* src, void* dst, size_t bytes, Stores stores);

}  // namespace npu::simd
