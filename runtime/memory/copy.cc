#include "runtime/memory/copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>

#include "device/hbm/foreign.h"
#include "device/hbm/hbm.h"
#include "runtime/context/devices.h"
#include "runtime/context/limits.h"
#include "runtime/memory/client_memory.h"
#include "runtime/memory/host.h"
#include "runtime/workers/metered.h"
#include "runtime/workers/pool.h"
#include "runtime/workers/process.h"

namespace npu::rt {
namespace {

// One thread moves some 10 to 20 GB/s, two about twice that; below kSplitBytes the start of the second costs more than
// it brings (docs/performance.md, Runtime).
constexpr size_t kSplitBytes = size_t{4} << 20;
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr uint32_t kStartNs = 60;
constexpr uint32_t kBytesPerNs = 12;

uint32_t CostNs(size_t bytes) {
  return static_cast<uint32_t>(std::min<size_t>(kStartNs + bytes / kBytesPerNs, 1'000'000'000));
}

bool Overlap(const char* a, const char* b, size_t bytes) { return a < b + bytes && b < a + bytes; }

// `reaches(dst, src, bytes)` is asked before each piece is touched.
template <class Reaches>
void CopyRow(char* dst, const char* src, size_t bytes, Parallel& parallel, Reaches&& reaches) {
  const bool overlap = Overlap(dst, src, bytes);
  if (!overlap && bytes >= kSplitBytes) {
    return parallel.For(static_cast<int64_t>(bytes), kPieceBytes, [&](int64_t begin, int64_t end) {
      const auto piece = static_cast<size_t>(end - begin);
      if (reaches(dst + begin, src + begin, piece)) std::memcpy(dst + begin, src + begin, piece);
    });
  }
  if (!reaches(dst, src, bytes)) return;
  if (overlap) {
    std::memmove(dst, src, bytes);
  } else {
    std::memcpy(dst, src, bytes);
  }
}

template <class Reaches>
void CopyRows(const CopyPlan& plan, Parallel& parallel, Reaches&& reaches) {
  for (size_t row = 0; row < plan.rows; ++row) {
    CopyRow(plan.dst.local + row * plan.dst_pitch, plan.src.local + row * plan.src_pitch, plan.width, parallel,
            reaches);
  }
}

TaskWork WorkOf(const CopyPlan& plan) {
  const bool to_host = plan.dst.place != Place::kDevice, from_host = plan.src.place != Place::kDevice;
  const device::Flow flow = from_host && to_host ? device::Flow::kOnDevice
                            : from_host          ? device::Flow::kToDevice
                            : to_host            ? device::Flow::kToHost
                                                 : device::Flow::kOnDevice;
  return {
      .unit = static_cast<uint8_t>(device::Unit::kMemory), .flow = static_cast<uint8_t>(flow), .bytes = plan.Bytes()};
}

TaskWork FillWork(size_t bytes) {
  return {.unit = static_cast<uint8_t>(device::Unit::kMemory),
          .flow = static_cast<uint8_t>(device::Flow::kOnDevice),
          .bytes = bytes};
}

// On the calling thread, counted like a task.
template <class Run>
Status Here(Pool& pool, const TaskWork& work, uint32_t cost_ns, Run&& run) {
  return RunMetered(
             pool.meter(), work, {.planned_ns = cost_ns},
             [] { return Exiting() ? Error(Code::kTaskAbort, "The process is ending.") : Status(); },
             [&] { return Outcome::Done(run()); }, [](const Status&) {})
      .status;
}

class CopyTask : public Task {
 public:
  explicit CopyTask(const CopyPlan& plan) : plan_(plan) {}
  Outcome Run(TaskContext& context) override {
    return Outcome::Done(CopyNow(plan_, context.parallel, Code::kTaskException));
  }
  const char* Name() const override { return "memcpy"; }
  uint32_t CostNs() const override { return rt::CostNs(plan_.Bytes()); }
  TaskWork Work() const override { return WorkOf(plan_); }

 protected:
  const CopyPlan plan_;
};

// Bytes that wait in places of ours, in all streams; more than this is not kept back.
constexpr size_t kMostStagedBytes = size_t{256} << 20;
std::atomic<size_t> staged_bytes{0};

class StagedCopyTask final : public CopyTask {
 public:
  StagedCopyTask(const CopyPlan& plan, std::unique_ptr<char[]> staged) : CopyTask(plan), staged_(std::move(staged)) {}
  ~StagedCopyTask() override { staged_bytes.fetch_sub(plan_.Bytes(), std::memory_order_relaxed); }

 private:
  const std::unique_ptr<char[]> staged_;
};

struct Fill {
  Side side;
  uint32_t pattern;
  size_t pattern_bytes, count;
  const char* function;
  size_t Bytes() const { return count * pattern_bytes; }
};

Status RunFill(const Fill& fill, Parallel& parallel, Code code) {
  CopyPlan plan;
  plan.dst = fill.side;
  plan.src.place = Place::kDevice;
  plan.width = fill.Bytes();
  plan.function = fill.function;
  ClientMemory client(plan);
  if (!client.Reaches(fill.side.local, nullptr, fill.Bytes())) return client.Told(code, "devPtr");
  FillNow(fill.side.local, fill.pattern, fill.pattern_bytes, fill.count, parallel);
  return {};
}

class FillTask final : public Task {
 public:
  explicit FillTask(const Fill& fill) : fill_(fill) {}
  Outcome Run(TaskContext& context) override {
    return Outcome::Done(RunFill(fill_, context.parallel, Code::kTaskException));
  }
  const char* Name() const override { return "memset"; }
  uint32_t CostNs() const override { return rt::CostNs(fill_.Bytes()); }
  TaskWork Work() const override { return FillWork(fill_.Bytes()); }

 private:
  const Fill fill_;
};

// For strict memory. Pageable memory of the host is nobody's business but the program's.
template <class Tell>
void TellCopy(const CopyPlan& plan, int card, int stream, Tell&& tell) {
  const int64_t shape[] = {static_cast<int64_t>(plan.rows), static_cast<int64_t>(plan.width)};
  const int64_t from[] = {static_cast<int64_t>(plan.src_pitch), 1}, to[] = {static_cast<int64_t>(plan.dst_pitch), 1};
  const auto use = [&](const Side& side, const int64_t* strides, strict::Does does, const char* param) {
    return strict::Use{{side.place == Place::kPageable ? nullptr : side.local, 1, shape, {strides, 2}}, does, param};
  };
  const strict::Use uses[] = {use(plan.src, from, strict::Does::kReads, "src"),
                              use(plan.dst, to, strict::Does::kWrites, "dst")};
  tell(strict::Step{plan.function, card, stream, uses, strict::Step::Copy::kWhole});
}

void TellFill(const Fill& fill, int card, int stream, strict::Line* line) {
  const strict::Use use[] = {{{fill.side.local, fill.Bytes(), {}, {}}, strict::Does::kWrites, "devPtr"}};
  const strict::Step step{fill.function, card, stream, use};
  if (line != nullptr) {
    strict::Queued(step, *line);
  } else {
    strict::Now(step);
  }
}

// What the client said against what the addresses are. Pageable addresses are not known to the driver, so a client that
// calls one device memory is told; between known ones the addresses win.
Status CheckSide(const Side& side, bool said_device, const void* address, const char* function, const char* param) {
  if (!said_device || side.place != Place::kPageable) return {};
  return Error(Code::kOutOfRange, "{}: {} {} is called device memory by kind, but it is memory of the host.", function,
               param, fmt::ptr(address))
      .Remedy("Pass an address of aclrtMalloc, or the kind that fits.");
}

// Two cards reach each other's memory only after aclrtDeviceEnablePeerAccess.
Status CheckPeers(const void* dst, const void* src, const char* function) {
  const auto count = DeviceCount();
  if (!count.ok() || *count < 2) return {};
  const auto to = hbm::Find(dst), from = hbm::Find(src);
  if (!to || !from || to->card == from->card) return {};
  const int a = LogicalOf(to->card), b = LogicalOf(from->card);
  if (a < 0 || b < 0 || PeerAccess(a, b) || PeerAccess(b, a)) return {};
  return Error(Code::kNoPermission,
               "{}: dst is on device {} and src on device {}, and peer access between them is not enabled.", function,
               a, b)
      .Remedy("Call aclrtDeviceEnablePeerAccess({}, 0) with device {} current first.", b, a);
}

Status CheckPlaces(const CopyPlan& plan, const void* dst, const void* src, CopyKind kind, const char* function) {
  NPU_TRY(
      CheckSide(plan.dst, kind == CopyKind::kHostToDevice || kind == CopyKind::kDeviceToDevice, dst, function, "dst"));
  NPU_TRY(
      CheckSide(plan.src, kind == CopyKind::kDeviceToHost || kind == CopyKind::kDeviceToDevice, src, function, "src"));
  if (plan.dst.place == Place::kDevice && plan.src.place == Place::kDevice) return CheckPeers(dst, src, function);
  return {};
}

}  // namespace

Result<CopyKind> CopyKindOf(int number, const char* function) {
  // 5 (through a buffer), 6 and 7 (inside a device, between devices) are finer forms of the first four.
  constexpr CopyKind kKinds[] = {CopyKind::kHostToHost,     CopyKind::kHostToDevice,  CopyKind::kDeviceToHost,
                                 CopyKind::kDeviceToDevice, CopyKind::kDefault,       CopyKind::kHostToDevice,
                                 CopyKind::kDeviceToDevice, CopyKind::kDeviceToDevice};
  if (number >= 0 && static_cast<size_t>(number) < std::size(kKinds)) return kKinds[number];
  return Error(Code::kInvalidParam, "{}: kind is {}, which is not a copy kind.", function, number)
      .Remedy("Pass 1 (host to device), 2 (device to host), 3 (device to device) or 4 (by the addresses).");
}

Result<Side> LookAt(const void* address, size_t bytes, const char* function, const char* param) {
  char* here = static_cast<char*>(const_cast<void*>(address));
  if (const auto foreign = hbm::FindForeign(address)) {
    // A registered range may be a part of the client's block: what lies behind it is pageable.
    const size_t left = foreign->bytes - static_cast<size_t>(here - static_cast<char*>(foreign->begin));
    return Side{here, bytes > left ? Place::kPageable : Place::kRegistered};
  }
  if (void* local = hbm::Local(address)) {
    NPU_TRY(hbm::Check(address, bytes, function, param));
    return Side{static_cast<char*>(local), Place::kDevice};
  }
  const auto host = FindHost(address);
  if (!host) return Side{here, Place::kPageable};
  const size_t left = host->bytes - static_cast<size_t>(here - static_cast<char*>(host->begin));
  if (bytes > left) {
    return Error(Code::kOutOfRange, "{}: {} {} has {} bytes left in its pinned block, but {} are asked for.", function,
                 param, fmt::ptr(address), left, bytes)
        .Remedy("Copy no more than was allocated.");
  }
  return Side{here, Place::kPinned};
}

Result<CopyPlan> PlanCopy(const CopyArgs& args, const char* function) {
  CopyPlan plan;
  plan.function = function;
  plan.width = args.bytes;
  if (args.dst == nullptr || args.src == nullptr) {
    return Error(Code::kInvalidParam, "{}: {} is null.", function, args.dst == nullptr ? "dst" : "src")
        .Remedy("Pass valid addresses.");
  }
  if (args.bytes > args.dst_bytes) {
    return Error(Code::kOutOfRange, "{}: count is {} but destMax is {}.", function, args.bytes, args.dst_bytes)
        .Remedy("Pass the size of the destination buffer as destMax.");
  }
  if (args.bytes > SIZE_MAX / 2) {
    return Error(Code::kOutOfRange, "{}: {} bytes do not fit an address space.", function, args.bytes)
        .Remedy("Pass the size in bytes as count.");
  }
  NPU_ASSIGN(plan.dst, LookAt(args.dst, args.bytes, function, "dst"));
  NPU_ASSIGN(plan.src, LookAt(args.src, args.bytes, function, "src"));
  NPU_TRY(CheckPlaces(plan, args.dst, args.src, args.kind, function));
  return plan;
}

Result<CopyPlan> PlanCopy2d(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height,
                            CopyKind kind, const char* function) {
  if (dst == nullptr || src == nullptr) {
    return Error(Code::kInvalidParam, "{}: {} is null.", function, dst == nullptr ? "dst" : "src")
        .Remedy("Pass valid addresses.");
  }
  if (width > dst_pitch || width > src_pitch) {
    return Error(Code::kInvalidParam, "{}: width is {}, but the pitches are {} (dst) and {} (src).", function, width,
                 dst_pitch, src_pitch)
        .Remedy("A pitch is the distance of two rows in bytes and at least the width.");
  }
  if (height > 1 && std::max(dst_pitch, src_pitch) > (SIZE_MAX / 2 - width) / (height - 1)) {
    return Error(Code::kOutOfRange, "{}: {} rows of pitch {} do not fit an address space.", function, height,
                 std::max(dst_pitch, src_pitch));
  }
  CopyPlan plan;
  plan.function = function;
  plan.width = width;
  plan.rows = height;
  plan.dst_pitch = dst_pitch;
  plan.src_pitch = src_pitch;
  NPU_ASSIGN(plan.dst, LookAt(dst, (height - 1) * dst_pitch + width, function, "dst"));
  NPU_ASSIGN(plan.src, LookAt(src, (height - 1) * src_pitch + width, function, "src"));
  NPU_TRY(CheckPlaces(plan, dst, src, kind, function));
  return plan;
}

Status CopyNow(const CopyPlan& plan, Parallel& parallel, Code code) {
  ClientMemory client(plan);
  if (!client.looks() || (plan.rows > 1 && client.ReachesAllRows())) {
    CopyRows(plan, parallel, [](const char*, const char*, size_t) { return true; });
    return {};
  }
  if (plan.Bytes() < kSplitBytes || client.ReachesEnd()) {
    CopyRows(plan, parallel,
             [&](const char* dst, const char* src, size_t bytes) { return client.Reaches(dst, src, bytes); });
  }
  return client.Told(code);
}

Status CopyOn(const CopyPlan& plan, Stream& stream) {
  if (strict::On()) {
    TellCopy(plan, stream.card(), static_cast<int>(stream.id()),
             [&](const strict::Step& step) { static_cast<void>(strict::Queued(step, stream.line())); });
  }
  return stream.Launch(
      const_cast<CopyPlan*>(&plan),
      [](void* self, TaskContext& context) {
        return Outcome::Done(CopyNow(*static_cast<const CopyPlan*>(self), context.parallel, Code::kTaskException));
      },
      [](void* self) -> TaskPtr { return std::make_unique<CopyTask>(*static_cast<const CopyPlan*>(self)); },
      {CostNs(plan.Bytes()), WorkOf(plan)});
}

Status CopyHere(const CopyPlan& plan, Pool& pool) {
  if (strict::On()) TellCopy(plan, -1, -1, [](const strict::Step& step) { strict::Now(step); });
  return Here(pool, WorkOf(plan), CostNs(plan.Bytes()), [&] { return CopyNow(plan, pool.parallel()); });
}

Status FillHere(const Side& side, uint32_t pattern, size_t pattern_bytes, size_t count, Pool& pool,
                const char* function) {
  const Fill fill{side, pattern, pattern_bytes, count, function};
  if (strict::On()) TellFill(fill, -1, -1, nullptr);
  return Here(pool, FillWork(fill.Bytes()), CostNs(fill.Bytes()),
              [&] { return RunFill(fill, pool.parallel(), Code::kOutOfRange); });
}

Result<bool> CopyStagedOn(const CopyPlan& plan, Stream& stream) {
  const size_t bytes = plan.Bytes();
  if (staged_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes > kMostStagedBytes) {
    staged_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  std::unique_ptr<char[]> staged(new (std::nothrow) char[bytes]);
  if (!staged) {
    staged_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  SerialParallel alone;
  CopyPlan stage = plan;
  stage.dst = {staged.get(), Place::kPinned};
  stage.dst_pitch = plan.width;
  if (Status status = CopyNow(stage, alone); !status.ok()) {
    staged_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return status;
  }
  CopyPlan later = plan;
  later.src = {staged.get(), Place::kPinned};
  later.src_pitch = plan.width;
  if (strict::On()) {
    TellCopy(plan, stream.card(), static_cast<int>(stream.id()),
             [&](const strict::Step& step) { static_cast<void>(strict::Queued(step, stream.line())); });
  }
  NPU_TRY(stream.Enqueue(std::make_unique<StagedCopyTask>(later, std::move(staged))));
  return true;
}

void FillNow(char* local, uint32_t pattern, size_t pattern_bytes, size_t count, Parallel& parallel) {
  const auto fill = [&](int64_t begin, int64_t end) {
    if (pattern_bytes == 1) {
      std::memset(local + begin, static_cast<int>(pattern & 0xFF), static_cast<size_t>(end - begin));
    } else {
      auto* words = reinterpret_cast<uint32_t*>(local);
      std::fill(words + begin, words + end, pattern);
    }
  };
  if (count * pattern_bytes < kSplitBytes) return fill(0, static_cast<int64_t>(count));
  parallel.For(static_cast<int64_t>(count), static_cast<int64_t>(kPieceBytes / pattern_bytes), fill);
}

Status FillOn(const Side& side, uint32_t pattern, size_t pattern_bytes, size_t count, Stream& stream,
              const char* function) {
  Fill fill{side, pattern, pattern_bytes, count, function};
  if (strict::On()) TellFill(fill, stream.card(), static_cast<int>(stream.id()), &stream.line());
  return stream.Launch(
      &fill,
      [](void* self, TaskContext& context) {
        return Outcome::Done(RunFill(*static_cast<const Fill*>(self), context.parallel, Code::kTaskException));
      },
      [](void* self) -> TaskPtr { return std::make_unique<FillTask>(*static_cast<const Fill*>(self)); },
      {CostNs(fill.Bytes()), FillWork(fill.Bytes())});
}

}  // namespace npu::rt
