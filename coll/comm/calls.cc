#include "coll/comm/calls.h"

#include <algorithm>

#include "base/parity/parity.h"
#include "coll/comm/buffer.h"
#include "coll/comm/legacy.h"
#include "coll/comm/types.h"
#include "device/hbm/hbm.h"
#include "device/strict/strict.h"

namespace npu::coll {
namespace {

constexpr uint64_t kMostElements = 0x7FFFFFFFFull;
constexpr uint32_t kNoReduction = 255;
// Ranks whose places fit the line that tells each peer where its part lies.
constexpr uint32_t kMostTableRanks = kInlineBytes / 16;

Status CheckCount(const char* function, const char* param, uint64_t count) {
  if (count <= kMostElements) return {};
  return Error(Code::kInvalidParam, "EI0003: {}: {} is {}, above {}.", function, param, count, kMostElements)
      .Remedy("Split the call.");
}

Result<uint32_t> BytesOf(const char* function, uint32_t type) {
  const TypeInfo info = InfoOf(type);
  if (info.bytes != 0) return info.bytes;
  return Error(Code::kUnsupportedDType, "EI0003: {}: dataType {} is no HCCL type.", function, type)
      .Remedy("Pass a value of HcclDataType.");
}

Result<simd::Reduction> ReductionOf(const char* function, uint32_t type, uint32_t op) {
  NPU_TRY(BytesOf(function, type).status());
  const TypeInfo info = InfoOf(type);
  const auto reduce = ReduceOpOf(op);
  if (!reduce || info.dtype == DType::none || !simd::CanReduce(info.dtype)) {
    return Error(Code::kUnsupportedDType, "EI0003: {}: {} cannot be reduced with {} (op {}).", function, info.name,
                 NameOfReduce(op), op)
        .Remedy("Reduce int8 to int64, uint8 to uint64, fp16, bfp16, fp32 or fp64 with sum, prod, max or min.");
  }
  if (parity::On() && !CardReduces(type, op)) {
    NPU_TRY(parity::Judge({.code = Code::kUnsupportedDType,
                           .call = function,
                           .what = fmt::format("EI0003: a card does not reduce {} with {}", info.name, NameOfReduce(op)),
                           .change = "reduce int8, int16, int32, int64, fp16, fp32 or bfp16; int16 and bfp16 not with prod",
                           .rule = "reduction",
                           .source = "HCCL reference, HcclAllReduce on the A2"}));
  }
  return simd::Reduction{info.dtype, *reduce};
}

Status CheckRoot(const char* function, const Communicator& comm, uint32_t root) {
  if (root < comm.size()) return {};
  return Error(Code::kInvalidParam, "EI0003: {}: root is {}, the communicator has {} ranks.", function, root,
               comm.size())
      .Remedy("Pass a rank from 0 to {}.", comm.size() - 1);
}

void TellStrict(Where at, const char* name, std::span<const strict::Use> uses) {
  strict::Queued({name, at.comm.card(), static_cast<int>(at.stream.id()), uses}, at.stream.line());
}

// A call being put together.
class Builder {
 public:
  Builder(Where at, Op op, uint32_t type) : at_(at), name_(NameOf(op)), reduces_(op == Op::kAllReduce || op == Op::kReduce || op == Op::kReduceScatter || op == Op::kReduceScatterV) {
    call_.print.op = op;
    call_.print.type = static_cast<uint8_t>(type);
    call_.print.reduce = kNoReduction;
  }
  GroupCall& call() { return call_; }

  Status In(const void* client, uint64_t bytes, const char* param) {
    if (bytes == 0) return {};
    NPU_ASSIGN(Resolved in, Resolve(client, bytes, at_.comm.card(), name_, param));
    Use(client, bytes, reduces_ ? strict::Does::kReads : strict::Does::kMoves, param);
    call_.in = in.data;
    call_.in_place = in.place;
    call_.in_bytes = bytes;
    if (in.bounce) bounces_.in.push_back(std::move(in.bounce));
    return {};
  }
  Status Out(const void* client, uint64_t bytes, const char* param) {
    if (bytes == 0) return {};
    NPU_ASSIGN(Resolved out, Resolve(client, bytes, at_.comm.card(), name_, param));
    Use(client, bytes, strict::Does::kWrites, param);
    call_.out = out.data;
    call_.out_place = out.place;
    call_.out_bytes = bytes;
    if (out.bounce) bounces_.out.push_back(std::move(out.bounce));
    return {};
  }
  Status Queue() {
    if (!uses_.empty()) TellStrict(at_, name_, uses_);
    return at_.comm.Enqueue(std::move(call_), std::move(bounces_), at_.stream);
  }

 private:
  void Use(const void* client, uint64_t bytes, strict::Does does, const char* param) {
    if (strict::On()) uses_.push_back({{hbm::Local(client), bytes, {}, {}}, does, param});
  }
  Where at_;
  const char* name_;
  GroupCall call_;
  Bounces bounces_;
  const bool reduces_;
  std::vector<strict::Use> uses_;
};

// Counts and displacements in bytes, checked.
struct Part {
  uint64_t begin = 0, bytes = 0;
};
Result<std::vector<Part>> Parts(const char* function, const Communicator& comm, const int64_t* counts,
                                const int64_t* displs, const char* counts_name, const char* displs_name,
                                uint32_t element_bytes) {
  if (counts == nullptr || displs == nullptr) {
    return Error(Code::kNullPointer, "EI0003: {}: {} is null.", function, counts == nullptr ? counts_name : displs_name)
        .Remedy("Pass a host array of {} int64 values.", comm.size());
  }
  std::vector<Part> parts(comm.size());
  for (uint32_t p = 0; p < comm.size(); ++p) {
    const bool bad_count = counts[p] < 0 || static_cast<uint64_t>(counts[p]) > kMostElements;
    const bool bad_displ = displs[p] < 0 || static_cast<uint64_t>(displs[p]) > (uint64_t{1} << 50);
    if (bad_count || bad_displ) {
      return Error(Code::kInvalidParam, "EI0003: {}: {}[{}] is {}.", function, bad_count ? counts_name : displs_name, p,
                   bad_count ? counts[p] : displs[p])
          .Remedy("Pass numbers of elements from 0 to {}.", kMostElements);
    }
    parts[p] = {static_cast<uint64_t>(displs[p]) * element_bytes, static_cast<uint64_t>(counts[p]) * element_bytes};
  }
  return parts;
}

uint64_t Extent(const std::vector<Part>& parts) {
  uint64_t end = 0;
  for (const Part& part : parts) {
    if (part.bytes != 0) end = std::max(end, part.begin + part.bytes);
  }
  return end;
}

Status FillTable(const char* function, GroupCall& call, const std::vector<Part>& parts) {
  if (parts.size() > kMostTableRanks) {
    return NotYet(function, fmt::format("with more than {} ranks ({})", kMostTableRanks, parts.size()));
  }
  for (const Part& part : parts) {
    call.table.push_back(part.begin);
    call.table.push_back(part.bytes);
  }
  return {};
}

Status SameTypes(const char* function, uint32_t send_type, uint32_t recv_type) {
  if (send_type == recv_type) return {};
  return Error(Code::kInvalidParam, "EI0003: {}: sendType is {} and recvType {}.", function, InfoOf(send_type).name,
               InfoOf(recv_type).name)
      .Remedy("Pass the same type twice.");
}

Status NotInPlace(const char* function, const void* send, const void* recv) {
  if (send == nullptr || send != recv) return {};
  return Error(Code::kInvalidParam, "EI0003: {}: sendBuf and recvBuf are the same; there is no in-place form.",
               function)
      .Remedy("Receive into another buffer.");
}

// Peers write our result while they read our data: the two must be one buffer or two, not shifted parts of one.
Status NotShifted(const char* function, const void* send, const void* recv, uint64_t bytes) {
  const auto* a = static_cast<const std::byte*>(send);
  const auto* b = static_cast<const std::byte*>(recv);
  if (a == b || a + bytes <= b || b + bytes <= a) return {};
  return Error(Code::kInvalidParam, "EI0003: {}: sendBuf {} and recvBuf {} overlap without being the same ({} bytes).",
               function, send, recv, bytes)
      .Remedy("Pass one buffer for both, or two that do not overlap.");
}

}  // namespace

Status AllReduce(Where at, const void* send, void* recv, uint64_t count, uint32_t type, uint32_t op) {
  const char* name = NameOf(Op::kAllReduce);
  LegacyRulesOfCall(name, type, count);
  if (count == 0) return {};
  NPU_TRY(CheckCount(name, "count", count));
  NPU_ASSIGN(const simd::Reduction what, ReductionOf(name, type, op));
  const uint32_t size = InfoOf(type).bytes;
  Builder builder(at, Op::kAllReduce, type);
  NPU_TRY(builder.In(send, count * size, "sendBuf"));
  NPU_TRY(builder.Out(recv, count * size, "recvBuf"));
  NPU_TRY(NotShifted(name, send, recv, count * size));
  builder.call().print.reduce = static_cast<uint8_t>(op);
  builder.call().print.count = count;
  builder.call().reduce = Reducing{what, Keep::kAll, count, size, false};
  return builder.Queue();
}

Status Broadcast(Where at, void* buffer, uint64_t count, uint32_t type, uint32_t root) {
  const char* name = NameOf(Op::kBroadcast);
  NPU_TRY(CheckRoot(name, at.comm, root));
  if (count == 0) return {};
  NPU_TRY(CheckCount(name, "count", count));
  NPU_ASSIGN(const uint32_t size, BytesOf(name, type));
  Builder builder(at, Op::kBroadcast, type);
  builder.call().print.count = count;
  builder.call().print.root = root;
  if (at.comm.rank() == root) {
    NPU_TRY(builder.In(buffer, count * size, "buf"));
  } else {
    NPU_TRY(builder.Out(buffer, count * size, "buf"));
    builder.call().pulls = {{root, 0, 0, count * size}};
  }
  return builder.Queue();
}

Status AllGather(Where at, const void* send, void* recv, uint64_t send_count, uint32_t type) {
  const char* name = NameOf(Op::kAllGather);
  if (send_count == 0) return {};
  NPU_TRY(CheckCount(name, "sendCount", send_count));
  NPU_ASSIGN(const uint32_t size, BytesOf(name, type));
  const uint64_t bytes = send_count * size;
  Builder builder(at, Op::kAllGather, type);
  builder.call().print.count = send_count;
  NPU_TRY(builder.In(send, bytes, "sendBuf"));
  NPU_TRY(builder.Out(recv, bytes * at.comm.size(), "recvBuf"));
  for (uint32_t p = 0; p < at.comm.size(); ++p) builder.call().pulls.push_back({p, 0, p * bytes, bytes});
  return builder.Queue();
}

Status AllGatherV(Where at, const void* send, uint64_t send_count, void* recv, const int64_t* recv_counts,
                  const int64_t* recv_displs, uint32_t type) {
  const char* name = NameOf(Op::kAllGatherV);
  NPU_TRY(CheckCount(name, "sendCount", send_count));
  NPU_ASSIGN(const uint32_t size, BytesOf(name, type));
  NPU_ASSIGN(const std::vector<Part> parts,
             Parts(name, at.comm, recv_counts, recv_displs, "recvCounts", "recvDispls", size));
  if (parts[at.comm.rank()].bytes != send_count * size) {
    return Error(Code::kInvalidParam, "EI0003: {}: sendCount is {}, recvCounts[{}] of this rank {}.", name, send_count,
                 at.comm.rank(), recv_counts[at.comm.rank()])
        .Remedy("Give every rank the counts of all ranks.");
  }
  Builder builder(at, Op::kAllGatherV, type);
  NPU_TRY(builder.In(send, send_count * size, "sendBuf"));
  NPU_TRY(builder.Out(recv, Extent(parts), "recvBuf"));
  for (uint32_t p = 0; p < at.comm.size(); ++p) builder.call().pulls.push_back({p, 0, parts[p].begin, parts[p].bytes});
  return builder.Queue();
}

Status ReduceScatter(Where at, const void* send, void* recv, uint64_t recv_count, uint32_t type, uint32_t op) {
  const char* name = NameOf(Op::kReduceScatter);
  LegacyRulesOfCall(name, type, recv_count);
  if (recv_count == 0) return {};
  NPU_TRY(CheckCount(name, "recvCount", recv_count));
  NPU_ASSIGN(const simd::Reduction what, ReductionOf(name, type, op));
  const uint32_t size = InfoOf(type).bytes;
  Builder builder(at, Op::kReduceScatter, type);
  NPU_TRY(builder.In(send, recv_count * size * at.comm.size(), "sendBuf"));
  NPU_TRY(builder.Out(recv, recv_count * size, "recvBuf"));
  builder.call().print.reduce = static_cast<uint8_t>(op);
  builder.call().print.count = recv_count;
  builder.call().reduce = Reducing{what, Keep::kBlock, recv_count, size, false};
  return builder.Queue();
}

Status ReduceScatterV(Where at, const void* send, const int64_t* send_counts, const int64_t* send_displs, void* recv,
                      uint64_t recv_count, uint32_t type, uint32_t op) {
  const char* name = NameOf(Op::kReduceScatterV);
  NPU_TRY(CheckCount(name, "recvCount", recv_count));
  NPU_ASSIGN(const simd::Reduction what, ReductionOf(name, type, op));
  const uint32_t size = InfoOf(type).bytes;
  NPU_ASSIGN(const std::vector<Part> parts,
             Parts(name, at.comm, send_counts, send_displs, "sendCounts", "sendDispls", size));
  if (parts[at.comm.rank()].bytes != recv_count * size) {
    return Error(Code::kInvalidParam, "EI0003: {}: recvCount is {}, sendCounts[{}] of this rank {}.", name, recv_count,
                 at.comm.rank(), send_counts[at.comm.rank()])
        .Remedy("Give every rank the counts of all ranks.");
  }
  Builder builder(at, Op::kReduceScatterV, type);
  NPU_TRY(builder.In(send, Extent(parts), "sendBuf"));
  NPU_TRY(builder.Out(recv, recv_count * size, "recvBuf"));
  NPU_TRY(FillTable(name, builder.call(), parts));
  builder.call().print.reduce = static_cast<uint8_t>(op);
  builder.call().reduce = Reducing{what, Keep::kBlock, recv_count, size, true};
  return builder.Queue();
}

Status Reduce(Where at, const void* send, void* recv, uint64_t count, uint32_t type, uint32_t op, uint32_t root) {
  const char* name = NameOf(Op::kReduce);
  LegacyRulesOfCall(name, type, count);
  NPU_TRY(CheckRoot(name, at.comm, root));
  if (count == 0) return {};
  NPU_TRY(CheckCount(name, "count", count));
  NPU_ASSIGN(const simd::Reduction what, ReductionOf(name, type, op));
  const uint32_t size = InfoOf(type).bytes;
  Builder builder(at, Op::kReduce, type);
  NPU_TRY(builder.In(send, count * size, "sendBuf"));
  if (at.comm.rank() == root) {
    NPU_TRY(builder.Out(recv, count * size, "recvBuf"));
    NPU_TRY(NotShifted(name, send, recv, count * size));
  }
  builder.call().print.reduce = static_cast<uint8_t>(op);
  builder.call().print.count = count;
  builder.call().print.root = root;
  builder.call().reduce = Reducing{what, Keep::kRoot, count, size, false};
  return builder.Queue();
}

Status Scatter(Where at, const void* send, void* recv, uint64_t recv_count, uint32_t type, uint32_t root) {
  const char* name = NameOf(Op::kScatter);
  NPU_TRY(CheckRoot(name, at.comm, root));
  if (recv_count == 0) return {};
  NPU_TRY(CheckCount(name, "recvCount", recv_count));
  NPU_ASSIGN(const uint32_t size, BytesOf(name, type));
  const uint64_t bytes = recv_count * size;
  Builder builder(at, Op::kScatter, type);
  builder.call().print.count = recv_count;
  builder.call().print.root = root;
  if (at.comm.rank() == root) NPU_TRY(builder.In(send, bytes * at.comm.size(), "sendBuf"));
  NPU_TRY(builder.Out(recv, bytes, "recvBuf"));
  builder.call().pulls = {{root, at.comm.rank() * bytes, 0, bytes}};
  return builder.Queue();
}

Status AlltoAll(Where at, const void* send, uint64_t send_count, uint32_t send_type, void* recv, uint64_t recv_count,
                uint32_t recv_type) {
  const char* name = NameOf(Op::kAlltoAll);
  if (send_count == 0 && recv_count == 0) return {};
  NPU_TRY(CheckCount(name, "sendCount", send_count));
  if (send_count != recv_count) {
    return Error(Code::kInvalidParam, "EI0003: {}: sendCount is {} and recvCount {}.", name, send_count, recv_count)
        .Remedy("Pass equal counts, or use HcclAlltoAllV.");
  }
  NPU_TRY(SameTypes(name, send_type, recv_type));
  NPU_TRY(NotInPlace(name, send, recv));
  NPU_ASSIGN(const uint32_t size, BytesOf(name, send_type));
  const uint64_t bytes = send_count * size;
  Builder builder(at, Op::kAlltoAll, send_type);
  builder.call().print.count = send_count;
  NPU_TRY(builder.In(send, bytes * at.comm.size(), "sendBuf"));
  NPU_TRY(builder.Out(recv, bytes * at.comm.size(), "recvBuf"));
  for (uint32_t p = 0; p < at.comm.size(); ++p)
    builder.call().pulls.push_back({p, at.comm.rank() * bytes, p * bytes, bytes});
  return builder.Queue();
}

Status AlltoAllV(Where at, const void* send, const int64_t* send_counts, const int64_t* send_displs, uint32_t send_type,
                 void* recv, const int64_t* recv_counts, const int64_t* recv_displs, uint32_t recv_type) {
  const char* name = NameOf(Op::kAlltoAllV);
  NPU_TRY(SameTypes(name, send_type, recv_type));
  NPU_TRY(NotInPlace(name, send, recv));
  NPU_ASSIGN(const uint32_t size, BytesOf(name, send_type));
  NPU_ASSIGN(const std::vector<Part> out,
             Parts(name, at.comm, send_counts, send_displs, "sendCounts", "sdispls", size));
  NPU_ASSIGN(const std::vector<Part> in, Parts(name, at.comm, recv_counts, recv_displs, "recvCounts", "rdispls", size));
  Builder builder(at, Op::kAlltoAllV, send_type);
  NPU_TRY(builder.In(send, Extent(out), "sendBuf"));
  NPU_TRY(builder.Out(recv, Extent(in), "recvBuf"));
  NPU_TRY(FillTable(name, builder.call(), out));
  const uint32_t me = at.comm.rank();
  if (out[me].bytes != in[me].bytes) {
    return Error(Code::kInvalidParam, "EI0003: {}: this rank sends itself {} elements and receives {}.", name,
                 send_counts[me], recv_counts[me]);
  }
  for (uint32_t p = 0; p < at.comm.size(); ++p)
    builder.call().pulls.push_back({p, Pull::kPeerKnows, in[p].begin, in[p].bytes});
  return builder.Queue();
}

Status AlltoAllVC(Where at, const void* send, const int64_t* counts, uint32_t send_type, void* recv,
                  uint32_t recv_type) {
  const char* name = NameOf(Op::kAlltoAllVC);
  NPU_TRY(SameTypes(name, send_type, recv_type));
  NPU_TRY(NotInPlace(name, send, recv));
  NPU_ASSIGN(const uint32_t size, BytesOf(name, send_type));
  if (counts == nullptr) {
    return Error(Code::kNullPointer, "EI0003: {}: sendCountMatrix is null.", name)
        .Remedy("Pass a host matrix of ranks x ranks int64.");
  }
  const uint32_t ranks = at.comm.size(), me = at.comm.rank();
  uint64_t print = 1469598103934665603ull;  // of the matrix: all ranks must have the same
  for (uint64_t i = 0; i < uint64_t{ranks} * ranks; ++i) {
    if (counts[i] < 0 || static_cast<uint64_t>(counts[i]) > kMostElements) {
      return Error(Code::kInvalidParam, "EI0003: {}: sendCountMatrix[{}][{}] is {}.", name, i / ranks, i % ranks,
                   counts[i]);
    }
    print = (print ^ static_cast<uint64_t>(counts[i])) * 1099511628211ull;
  }
  Builder builder(at, Op::kAlltoAllVC, send_type);
  builder.call().print.count = print;
  const auto elements = [&](uint32_t from, uint32_t to) {
    return static_cast<uint64_t>(counts[uint64_t{from} * ranks + to]) * size;
  };
  uint64_t in_bytes = 0, out_bytes = 0;
  for (uint32_t p = 0; p < ranks; ++p) {
    uint64_t from = 0;
    for (uint32_t k = 0; k < me; ++k) from += elements(p, k);
    builder.call().pulls.push_back({p, from, out_bytes, elements(p, me)});
    in_bytes += elements(me, p);
    out_bytes += elements(p, me);
  }
  NPU_TRY(builder.In(send, in_bytes, "sendBuf"));
  NPU_TRY(builder.Out(recv, out_bytes, "recvBuf"));
  return builder.Queue();
}

Status Barrier(Where at) {
  Builder builder(at, Op::kBarrier, 0);
  return builder.Queue();
}

Status SendRecv(Where at, const char* function, std::span<const SendRecvItem> items) {
  std::vector<PairItem> pairs;
  std::vector<strict::Use> uses;
  Bounces bounces;
  for (const SendRecvItem& item : items) {
    if (item.peer >= at.comm.size() || (items.size() == 1 && item.peer == at.comm.rank())) {
      return Error(Code::kInvalidParam, "EI0003: {}: the other rank is {}, this is rank {} of {}.", function, item.peer,
                   at.comm.rank(), at.comm.size())
          .Remedy("Pass another rank of the communicator.");
    }
    if (item.count == 0) continue;
    NPU_TRY(CheckCount(function, "count", item.count));
    NPU_ASSIGN(const uint32_t size, BytesOf(function, item.type));
    PairItem pair;
    pair.send = item.send;
    pair.peer = item.peer;
    pair.print.op = Op::kSendRecv;
    pair.print.type = static_cast<uint8_t>(item.type);
    pair.print.reduce = kNoReduction;
    pair.print.count = item.count;
    pair.bytes = item.count * size;
    NPU_ASSIGN(Resolved buffer,
               Resolve(item.buffer, pair.bytes, at.comm.card(), function, item.send ? "sendBuf" : "recvBuf"));
    pair.data = buffer.data;
    pair.place = buffer.place;
    if (strict::On()) {
      uses.push_back({{hbm::Local(item.buffer), pair.bytes, {}, {}}, item.send ? strict::Does::kMoves : strict::Does::kWrites,
                      item.send ? "sendBuf" : "recvBuf"});
    }
    if (buffer.bounce) (item.send ? bounces.in : bounces.out).push_back(std::move(buffer.bounce));
    pairs.push_back(std::move(pair));
  }
  if (pairs.empty()) return {};
  if (!uses.empty()) TellStrict(at, function, uses);
  return at.comm.Enqueue(function, std::move(pairs), std::move(bounces), at.stream);
}

}  // namespace npu::coll
