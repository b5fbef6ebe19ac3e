// The collective calls: HCCL's parameters checked, turned into an operation and queued on a stream. All return at once.
//
// Codes and texts follow HCCL: null 2 (EI0003), bad values 1, types and reductions that the card does not have 5.
// Counts are elements. A count of 0 where all ranks must have the same is done at once.
#pragma once

#include <cstdint>
#include <span>

#include "coll/comm/communicator.h"

namespace npu::coll {

struct Where {
  Communicator& comm;
  rt::Stream& stream;
};

Status AllReduce(Where at, const void* send, void* recv, uint64_t count, uint32_t type, uint32_t op);
Status Broadcast(Where at, void* buffer, uint64_t count, uint32_t type, uint32_t root);
Status AllGather(Where at, const void* send, void* recv, uint64_t send_count, uint32_t type);
Status AllGatherV(Where at, const void* send, uint64_t send_count, void* recv, const int64_t* recv_counts,
                  const int64_t* recv_displs, uint32_t type);
Status ReduceScatter(Where at, const void* send, void* recv, uint64_t recv_count, uint32_t type, uint32_t op);
Status ReduceScatterV(Where at, const void* send, const int64_t* send_counts, const int64_t* send_displs, void* recv,
                      uint64_t recv_count, uint32_t type, uint32_t op);
Status Reduce(Where at, const void* send, void* recv, uint64_t count, uint32_t type, uint32_t op, uint32_t root);
Status Scatter(Where at, const void* send, void* recv, uint64_t recv_count, uint32_t type, uint32_t root);
Status AlltoAll(Where at, const void* send, uint64_t send_count, uint32_t send_type, void* recv, uint64_t recv_count,
                uint32_t recv_type);
Status AlltoAllV(Where at, const void* send, const int64_t* send_counts, const int64_t* send_displs, uint32_t send_type,
                 void* recv, const int64_t* recv_counts, const int64_t* recv_displs, uint32_t recv_type);
// counts[i * ranks + j]: elements that rank i sends to rank j.
Status AlltoAllVC(Where at, const void* send, const int64_t* counts, uint32_t send_type, void* recv,
                  uint32_t recv_type);
Status Barrier(Where at);

struct SendRecvItem {
  bool send = false;
  void* buffer = nullptr;
  uint64_t count = 0;
  uint32_t type = 0;
  uint32_t peer = 0;
};
// One item: HcclSend or HcclRecv. More: HcclBatchSendRecv. Items without elements are left out.
Status SendRecv(Where at, const char* function, std::span<const SendRecvItem> items);

}  // namespace npu::coll
