// Small whole numbers in every element type: their sums and products are exact in all of them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hccl/hccl_types.h"

namespace hccl_test {

inline size_t SizeOf(HcclDataType type) {
  switch (type) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_UINT8:
    case HCCL_DATA_TYPE_HIF8:
    case HCCL_DATA_TYPE_FP8E4M3:
    case HCCL_DATA_TYPE_FP8E5M2:
    case HCCL_DATA_TYPE_FP8E8M0:
      return 1;
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_UINT16:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_BFP16:
      return 2;
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_UINT32:
    case HCCL_DATA_TYPE_FP32:
      return 4;
    case HCCL_DATA_TYPE_INT128:
      return 16;
    default:
      return 8;
  }
}

inline void Encode(HcclDataType type, int64_t value, unsigned char* to) {
  const auto put = [&](auto v) { std::memcpy(to, &v, sizeof v); };
  switch (type) {
    case HCCL_DATA_TYPE_INT8:
      return put(static_cast<int8_t>(value));
    case HCCL_DATA_TYPE_INT16:
      return put(static_cast<int16_t>(value));
    case HCCL_DATA_TYPE_INT32:
      return put(static_cast<int32_t>(value));
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_UINT64:
      return put(value);
    case HCCL_DATA_TYPE_UINT8:
      return put(static_cast<uint8_t>(value));
    case HCCL_DATA_TYPE_UINT16:
      return put(static_cast<uint16_t>(value));
    case HCCL_DATA_TYPE_UINT32:
      return put(static_cast<uint32_t>(value));
    case HCCL_DATA_TYPE_FP64:
      return put(static_cast<double>(value));
    case HCCL_DATA_TYPE_FP32:
      return put(static_cast<float>(value));
    case HCCL_DATA_TYPE_BFP16:
      return put(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16));
    case HCCL_DATA_TYPE_FP16: {
      const uint32_t f = std::bit_cast<uint32_t>(static_cast<float>(value));
      const uint32_t magnitude = value == 0 ? 0 : ((f >> 13) & 0x3FFFF) - (112u << 10);
      return put(static_cast<uint16_t>((f >> 16 & 0x8000) | (magnitude & 0x7FFF)));
    }
    default: {  // only moved: any pattern will do
      for (size_t i = 0; i < SizeOf(type); ++i)
        to[i] = static_cast<unsigned char>(value * 37 + static_cast<int64_t>(i));
    }
  }
}

inline bool IsUnsigned(HcclDataType type) {
  return type == HCCL_DATA_TYPE_UINT8 || type == HCCL_DATA_TYPE_UINT16 || type == HCCL_DATA_TYPE_UINT32 ||
         type == HCCL_DATA_TYPE_UINT64;
}
// The same small number without a sign where the type has none, so that larger and smaller mean the same everywhere.
inline int64_t Fit(HcclDataType type, int64_t value) { return IsUnsigned(type) && value < 0 ? -value : value; }

// Element `i` of what rank `rank` gives in round `round`.
inline int64_t ValueOf(HcclDataType type, unsigned seed, int rank, int round, size_t i) {
  uint64_t h = (static_cast<uint64_t>(seed) << 32) ^ (static_cast<uint64_t>(rank) * 0x9E3779B97F4A7C15ull) ^
               (static_cast<uint64_t>(round) << 48) ^ (i * 0xBF58476D1CE4E5B9ull);
  h = (h ^ (h >> 29)) * 0x94D049BB133111EBull;
  const int64_t values[] = {-2, -1, 1, 2};
  return Fit(type, values[(h >> 40) & 3]);
}

inline std::vector<unsigned char> DataOf(HcclDataType type, unsigned seed, int rank, int round, size_t count) {
  std::vector<unsigned char> data(count * SizeOf(type));
  for (size_t i = 0; i < count; ++i) Encode(type, ValueOf(type, seed, rank, round, i), data.data() + i * SizeOf(type));
  return data;
}

inline std::vector<unsigned char> ReducedOf(HcclDataType type, HcclReduceOp op, unsigned seed, int ranks, int round,
                                            size_t first, size_t count) {
  std::vector<unsigned char> data(count * SizeOf(type));
  for (size_t i = 0; i < count; ++i) {
    int64_t value = ValueOf(type, seed, 0, round, first + i);
    for (int r = 1; r < ranks; ++r) {
      const int64_t next = ValueOf(type, seed, r, round, first + i);
      switch (op) {
        case HCCL_REDUCE_SUM:
          value += next;
          break;
        case HCCL_REDUCE_PROD:
          value *= next;
          break;
        case HCCL_REDUCE_MAX:
          value = value > next ? value : next;
          break;
        default:
          value = value < next ? value : next;
          break;
      }
    }
    Encode(type, value, data.data() + i * SizeOf(type));
  }
  return data;
}

}  // namespace hccl_test
