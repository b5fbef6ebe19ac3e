#include "coll/comm/types.h"

#include "coll/transport/line.h"

namespace npu::coll {

TypeInfo InfoOf(uint32_t hccl_type) {
  switch (hccl_type) {
    case 0:
      return {"int8", 1, DType::i8};
    case 1:
      return {"int16", 2, DType::i16};
    case 2:
      return {"int32", 4, DType::i32};
    case 3:
      return {"fp16", 2, DType::f16};
    case 4:
      return {"fp32", 4, DType::f32};
    case 5:
      return {"int64", 8, DType::i64};
    case 6:
      return {"uint64", 8, DType::u64};
    case 7:
      return {"uint8", 1, DType::u8};
    case 8:
      return {"uint16", 2, DType::u16};
    case 9:
      return {"uint32", 4, DType::u32};
    case 10:
      return {"fp64", 8, DType::f64};
    case 11:
      return {"bfp16", 2, DType::bf16};
    case 12:
      return {"int128", 16, DType::none};
    case 14:
      return {"hif8", 1, DType::none};
    case 15:
      return {"fp8e4m3", 1, DType::none};
    case 16:
      return {"fp8e5m2", 1, DType::none};
    case 17:
      return {"fp8e8m0", 1, DType::none};
    default:
      return {};
  }
}

std::optional<simd::ReduceOp> ReduceOpOf(uint32_t hccl_reduce) {
  switch (hccl_reduce) {
    case 0:
      return simd::ReduceOp::kSum;
    case 1:
      return simd::ReduceOp::kProd;
    case 2:
      return simd::ReduceOp::kMax;
    case 3:
      return simd::ReduceOp::kMin;
    default:
      return std::nullopt;
  }
}

std::string_view NameOfReduce(uint32_t hccl_reduce) {
  constexpr std::string_view kNames[] = {"sum", "prod", "max", "min"};
  return hccl_reduce < 4 ? kNames[hccl_reduce] : "none";
}

bool CardReduces(uint32_t hccl_type, uint32_t hccl_reduce) {
  if (hccl_reduce > 3) return false;
  const bool product = hccl_reduce == 1;
  switch (InfoOf(hccl_type).dtype) {
    case DType::i8:
    case DType::i32:
    case DType::i64:
    case DType::f16:
    case DType::f32:
      return true;
    case DType::i16:
    case DType::bf16:
      return !product;
    default:
      return false;
  }
}

const char* NameOf(Op op) {
  switch (op) {
    case Op::kAllReduce:
      return "HcclAllReduce";
    case Op::kBroadcast:
      return "HcclBroadcast";
    case Op::kAllGather:
      return "HcclAllGather";
    case Op::kAllGatherV:
      return "HcclAllGatherV";
    case Op::kReduceScatter:
      return "HcclReduceScatter";
    case Op::kReduceScatterV:
      return "HcclReduceScatterV";
    case Op::kReduce:
      return "HcclReduce";
    case Op::kScatter:
      return "HcclScatter";
    case Op::kAlltoAll:
      return "HcclAlltoAll";
    case Op::kAlltoAllV:
      return "HcclAlltoAllV";
    case Op::kAlltoAllVC:
      return "HcclAlltoAllVC";
    case Op::kBarrier:
      return "HcclBarrier";
    case Op::kSendRecv:
      return "HcclSend/HcclRecv";
    case Op::kBatch:
      return "HcclBatchSendRecv";
    case Op::kNone:
      break;
  }
  return "nothing";
}

}  // namespace npu::coll
