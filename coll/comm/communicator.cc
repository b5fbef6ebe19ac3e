#include "coll/comm/communicator.h"

#include <chrono>
#include <thread>

#include "base/task/polling.h"
#include "coll/comm/parking.h"
#include "device/meters/meters.h"
#include "runtime/workers/cores.h"

namespace npu::coll {

namespace {
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How a call waits before it parks (docs/decisions/collectives.md).
constexpr int kPausesWithCores = 200, kPausesWithout = 50;
constexpr microseconds kYieldFor(100);
constexpr milliseconds kLookAfter(150);  // peers of a parked call are looked at this often

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// The same buffer in the same collective: what marks a training step. 0 for a barrier.
uint64_t StepKey(const GroupCall& call) {
  const auto* buffer = call.out != nullptr ? call.out : call.in;
  if (buffer == nullptr) return 0;
  uint64_t key = reinterpret_cast<uintptr_t>(buffer);
  for (const uint64_t part : {call.print.count, static_cast<uint64_t>(call.print.op)})
    key = (key ^ part) * 0x9E3779B97F4A7C15ull;
  return key | 1;
}
}  // namespace

class CollTask final : public PollingTask {
 public:
  CollTask(Ref<Communicator> comm, std::unique_ptr<Operation> operation, Bounces bounces, bool inline_first,
           uint64_t step_key)
      : comm_(std::move(comm)),
        meter_(comm_->card(), comm_->rank(), comm_->size(), step_key),
        operation_(std::move(operation)),
        bounces_(std::move(bounces)),
        patient_(!inline_first) {}
  ~CollTask() override { comm_->Disarm(this); }

  Outcome Run(TaskContext& context) override {
    ++steps_;
    comm_->Disarm(this);
    if (comm_->failed_.load(std::memory_order_acquire)) return Outcome::Done(comm_->Failure());
    if (context.stopping) {
      return Failed(Error(Code::kTaskAbort, "{}: the stream was aborted while the call waited for its peers.",
                          operation_->Describe()));
    }
    if (!started_) {
      started_ = true;
      meter_.Begins();
      deadline_ = comm_->settings().ExecDeadline();
      looked_ = steady_clock::now();
      for (const auto& bounce : bounces_.in) bounce->CopyIn();
    }
    bool done = false;
    if (Status status = Spin(Threads(context), &done); !status.ok()) return Failed(std::move(status));
    if (!done) {
      comm_->Arm(this, context.waker);
      // Once more: what came between the last look and the arming rang nobody.
      if (Status status = operation_->Advance(Threads(context), &done); !status.ok()) return Failed(std::move(status));
    }
    if (!done && (steady_clock::now() - looked_ > kLookAfter || deadline_.passed())) {
      looked_ = steady_clock::now();
      const std::vector<uint32_t> ranks = operation_->Waiting();
      Status gone = comm_->CheckPeers(*operation_, ranks);
      if (gone.ok() && deadline_.passed()) gone = comm_->TimedOut(*operation_, ranks);
      if (!gone.ok()) {
        // What a peer did before it died still counts.
        if (Status status = operation_->Advance(Threads(context), &done); !status.ok())
          return Failed(std::move(status));
        if (!done) return Failed(std::move(gone));
      }
    }
    if (operation_->Received()) meter_.Received();
    if (!done) return Outcome::Parked();
    comm_->Disarm(this);
    for (const auto& bounce : bounces_.out) bounce->CopyOut();
    // The next call of this communicator may wait on another stream for its turn.
    if (comm_->armed_ > 0) Parking::Get().WakeAll();
    return Outcome::Done();
  }

  void Drop(const Status& why) override {
    comm_->Fail(Error(Code::kTaskAbort, "{} was not run: {}", operation_->Describe(), why.text()));
  }
  // Once: after the first step, which does not wait because it may be on the caller's thread.
  bool Polls() const override { return steps_ == 1 && comm_->spin_ > 0; }
  const char* Name() const override { return operation_->Name(); }
  uint32_t CostNs() const override { return bounces_.empty() ? kCostNs : 0; }

 private:
  // Small enough that an idle stream runs the first step on the calling thread: it shows our line to the peers and
  // parks.
  static constexpr uint32_t kCostNs = 1000;

  // When the ranks of this host fill its cores, each works alone: more threads would only take the peers' cores.
  Parallel& Threads(TaskContext& context) {
    return comm_->crowded_ ? static_cast<Parallel&>(serial_) : context.parallel;
  }

  Status Spin(Parallel& parallel, bool* done) {
    NPU_TRY(operation_->Advance(parallel, done));
    if (*done || comm_->spin_ == 0) return {};
    // The first run may be on the thread of the caller, which is not to wait.
    if (!patient_) {
      patient_ = true;
      return {};
    }
    for (int i = 0; i < comm_->spin_; ++i) {
      Pause();
      NPU_TRY(operation_->Advance(parallel, done));
      if (*done) return {};
    }
    const auto until = steady_clock::now() + kYieldFor;
    while (!*done && steady_clock::now() < until) {
      std::this_thread::yield();
      NPU_TRY(operation_->Advance(parallel, done));
    }
    return {};
  }

  Outcome Failed(Status status) {
    comm_->Disarm(this);
    comm_->Fail(status);
    return Outcome::Done(std::move(status));
  }

  Ref<Communicator> comm_;
  device::meters::Collective meter_;
  SerialParallel serial_;
  std::unique_ptr<Operation> operation_;
  Bounces bounces_;
  bool patient_;
  int steps_ = 0;
  bool started_ = false;
  Deadline deadline_ = Deadline::Never();
  steady_clock::time_point looked_;
};

Ref<Communicator> Communicator::Make(Parts parts) {
  return Ref<Communicator>::Adopt(new Communicator(std::move(parts)));
}

Communicator::Communicator(Parts parts) : parts_(std::move(parts)) {
  team_.rank = parts_.rank;
  team_.size = static_cast<uint32_t>(parts_.members.size());
  team_.direct = parts_.direct;
  team_.name = parts_.name;
  for (const auto& transport : parts_.transports) team_.transports.push_back(transport.get());
  bool own_process = false;
  uint32_t here = 0;
  for (uint32_t r = 0; r < team_.size; ++r) {
    here += parts_.members[r].host_id == parts_.members[team_.rank].host_id ? 1 : 0;
    const int which = parts_.transport_of[r];
    team_.to.push_back(which >= 0 ? parts_.transports[static_cast<size_t>(which)].get() : nullptr);
    if (r != team_.rank && parts_.members[r].slot == parts_.members[team_.rank].slot &&
        parts_.members[r].pid == parts_.members[team_.rank].pid) {
      own_process = true;
    }
  }
  crowded_ = static_cast<int>(2 * here) > rt::UsableCores();
  const bool all_here = team_.direct && team_.size > 1;
  if (all_here && !own_process)
    spin_ = static_cast<int>(team_.size) <= rt::UsableCores() ? kPausesWithCores : kPausesWithout;
  sent_.resize(team_.size);
  received_.resize(team_.size);
}

Communicator::~Communicator() { Leave(); }

Status Communicator::Enqueue(GroupCall call, Bounces bounces, rt::Stream& stream) {
  if (failed_.load(std::memory_order_acquire)) return Failure();
  const std::lock_guard lock(issue_mutex_);
  const uint64_t key = StepKey(call);
  auto operation = std::make_unique<GroupOp>(team_, ++issued_, std::move(call), &finished_);
  return stream.Enqueue(std::make_unique<CollTask>(Ref<Communicator>::Share(this), std::move(operation),
                                                   std::move(bounces), stream.Idle(), key));
}

Status Communicator::Enqueue(const char* name, std::vector<PairItem> items, Bounces bounces, rt::Stream& stream) {
  if (failed_.load(std::memory_order_acquire)) return Failure();
  const std::lock_guard lock(issue_mutex_);
  for (PairItem& item : items) item.seq = item.send ? ++sent_[item.peer] : ++received_[item.peer];
  auto operation = std::make_unique<PairOp>(team_, name, std::move(items));
  return stream.Enqueue(std::make_unique<CollTask>(Ref<Communicator>::Share(this), std::move(operation),
                                                   std::move(bounces), stream.Idle(), /*step_key=*/0));
}

void Communicator::Arm(const void* key, const Waker& waker) {
  const std::lock_guard lock(arm_mutex_);
  Parking::Get().Park(key, waker);
  ++armed_;
  for (Transport* transport : team_.transports) transport->Arm(true);
}

void Communicator::Disarm(const void* key) {
  const std::lock_guard lock(arm_mutex_);
  if (armed_ == 0 || !Parking::Get().Leave(key)) return;
  if (--armed_ == 0) {
    for (Transport* transport : team_.transports) transport->Arm(false);
  }
}

Status Communicator::CheckPeers(const Operation& op, const std::vector<uint32_t>& ranks) {
  for (const uint32_t rank : ranks) {
    const Status gone = team_.to[rank]->Check(rank);
    if (gone.ok()) continue;
    return Error(Code::kRemoteError, "{}: {}.", op.Describe(), gone.text())
        .Remedy("Look into the log of rank {}, end the other ranks of communicator {} and start the job again.", rank,
                team_.name);
  }
  return {};
}

Status Communicator::TimedOut(const Operation& op, const std::vector<uint32_t>& ranks) const {
  std::string who;
  for (const uint32_t rank : ranks) {
    const Member& m = parts_.members[rank];
    if (who.size() < 400)
      who += fmt::format("{}rank {} (pid {}, device {})", who.empty() ? "" : ", ", rank, m.pid, m.card);
  }
  return Error(Code::kCommTimeout, "EI0002: {} waited {} s (HCCL_EXEC_TIMEOUT) for {}.", op.Describe(),
               parts_.settings.exec_seconds.count(), who.empty() ? "an earlier call of this rank" : who)
      .Remedy(
          "See what that rank does: all ranks must issue the same collectives. Raise HCCL_EXEC_TIMEOUT when it is "
          "merely slow.");
}

Status Communicator::Failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void Communicator::Fail(const Status& why) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    failure_ = why;
    failed_.store(true, std::memory_order_release);
  }
  for (Transport* transport : team_.transports) transport->Leave(/*failed=*/true);
  Parking::Get().WakeAll();  // calls that wait for their turn end too
}

void Communicator::Leave() {
  for (Transport* transport : team_.transports) transport->Leave(/*failed=*/false);
}

}  // namespace npu::coll
