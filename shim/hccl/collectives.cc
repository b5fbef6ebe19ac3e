// Collective calls. Inside a group they are issued at once, which changes nothing: they only queue. Sends and receives
// wait for its end, so that they do not wait for each other.
#include "coll/comm/calls.h"
#include "gen/calls/hccl.h"
#include "shim/hccl/comms.h"

namespace npu::calls {

using coll::Where;
using hccl::On;

namespace {
const int64_t* Longs(const void* array) { return static_cast<const int64_t*>(array); }
}  // namespace

Status HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                     HcclComm comm, aclrtStream stream) {
  return On(comm, stream, __func__,
            [&](Where at) { return coll::AllReduce(at, sendBuf, recvBuf, count, dataType, op); });
}

Status HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
                     aclrtStream stream) {
  return On(comm, stream, __func__, [&](Where at) { return coll::Broadcast(at, buf, count, dataType, root); });
}

Status HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op,
                         HcclComm comm, aclrtStream stream) {
  return On(comm, stream, __func__,
            [&](Where at) { return coll::ReduceScatter(at, sendBuf, recvBuf, recvCount, dataType, op); });
}

Status HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls, void* recvBuf,
                          uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                          aclrtStream stream) {
  return On(comm, stream, __func__, [&](Where at) {
    return coll::ReduceScatterV(at, sendBuf, Longs(sendCounts), Longs(sendDispls), recvBuf, recvCount, dataType, op);
  });
}

Status HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root,
                   HcclComm comm, aclrtStream stream) {
  return On(comm, stream, __func__,
            [&](Where at) { return coll::Scatter(at, sendBuf, recvBuf, recvCount, dataType, root); });
}

Status HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType, HcclComm comm,
                     aclrtStream stream) {
  return On(comm, stream, __func__,
            [&](Where at) { return coll::AllGather(at, sendBuf, recvBuf, sendCount, dataType); });
}

Status HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts, const void* recvDispls,
                      HcclDataType dataType, HcclComm comm, aclrtStream stream) {
  return On(comm, stream, __func__, [&](Where at) {
    return coll::AllGatherV(at, sendBuf, sendCount, recvBuf, Longs(recvCounts), Longs(recvDispls), dataType);
  });
}

Status HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op, uint32_t root,
                  HcclComm comm, aclrtStream stream) {
  return On(comm, stream, __func__,
            [&](Where at) { return coll::Reduce(at, sendBuf, recvBuf, count, dataType, op, root); });
}

Status HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType, const void* recvBuf,
                    uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  return On(comm, stream, __func__, [&](Where at) {
    return coll::AlltoAll(at, sendBuf, sendCount, sendType, const_cast<void*>(recvBuf), recvCount, recvType);
  });
}

Status HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls, HcclDataType sendType,
                     const void* recvBuf, const void* recvCounts, const void* rdispls, HcclDataType recvType,
                     HcclComm comm, aclrtStream stream) {
  return On(comm, stream, __func__, [&](Where at) {
    return coll::AlltoAllV(at, sendBuf, Longs(sendCounts), Longs(sdispls), sendType, const_cast<void*>(recvBuf),
                           Longs(recvCounts), Longs(rdispls), recvType);
  });
}

Status HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType, const void* recvBuf,
                      HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  return On(comm, stream, __func__, [&](Where at) {
    return coll::AlltoAllVC(at, sendBuf, Longs(sendCountMatrix), sendType, const_cast<void*>(recvBuf), recvType);
  });
}

Status HcclBarrier(HcclComm comm, aclrtStream stream) {
  return On(comm, stream, __func__, [&](Where at) { return coll::Barrier(at); });
}

namespace {
Status One(HcclSendRecvType kind, void* buffer, uint64_t count, HcclDataType type, uint32_t peer, HcclComm comm,
           aclrtStream stream, const char* function) {
  HcclSendRecvItem item{};
  item.sendRecvType = kind;
  item.buf = buffer;
  item.count = count;
  item.dataType = type;
  item.remoteRank = peer;
  hccl::Group& group = hccl::Group::OfThread();
  if (!group.active()) return hccl::SendRecvOn(comm, stream, function, {&item, 1});
  NPU_TRY(hccl::Find(comm, function).status());
  group.LaterSendRecv(comm, stream, item);
  return {};
}
}  // namespace

Status HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
                aclrtStream stream) {
  return One(HCCL_SEND, sendBuf, count, dataType, destRank, comm, stream, __func__);
}

Status HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
                aclrtStream stream) {
  return One(HCCL_RECV, recvBuf, count, dataType, srcRank, comm, stream, __func__);
}

Status HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm, aclrtStream stream) {
  NPU_TRY(hccl::Find(comm, __func__).status());
  if (itemNum == 0) return {};
  HCCL_NOT_NULL(sendRecvInfo);
  return hccl::SendRecvOn(comm, stream, __func__, {sendRecvInfo, itemNum});
}

Status HcclGroupStart() {
  hccl::Group::OfThread().Start();
  return {};
}

Status HcclGroupEnd() { return hccl::Group::OfThread().End(); }

}  // namespace npu::calls
