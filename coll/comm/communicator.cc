#include "coll/comm/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/task/polling.h"
#include "coll/comm/parking.h"
#include "coll/comm/types.h"
#include "device/figures/meter.h"
#include "device/machine/repair.h"
#include "device/meters/meters.h"
#include "runtime/workers/cores.h"

namespace npu::coll {

namespace {
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How a call waits before it parks (docs/decisions/collectives.md).
constexpr int kPausesWithCores = 200, kPausesWithout = 4;
constexpr microseconds kYieldFor(100);
// A call on an idle stream begins on the thread that made it: one of so few bytes may also end there when the peers are
// quick. Larger ones are left to whoever serves the stream, so that the caller can go on.
constexpr uint64_t kEndsAtOnceBytes = 1 << 20;
constexpr int kPausesAtOnce = 64;
constexpr milliseconds kLookAfter(150);     // peers of a parked call are looked at this often
constexpr milliseconds kSilentAfter(1200);  // processes on other hosts say every half second that they run
constexpr milliseconds kLateAfter(1500);    // a peer that lets a call wait so long is named

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
  ~CollTask() override { Disarm(); }

  Outcome Run(TaskContext& context) override {
    ++steps_;
    Disarm();
    if (comm_->failed_.load(std::memory_order_acquire)) return Outcome::Done(comm_->Failure());
    if (context.stopping) {
      return Failed(Error(Code::kTaskAbort, "{}: the stream was aborted while the call waited for its peers.",
                          operation_->Describe()));
    }
    if (!started_) {
      started_ = true;
      meter_.Begins();
      for (const auto& bounce : bounces_.in) bounce->CopyIn();
    }
    bool done = false;
    const bool leave = !patient_ && comm_->size() > 1 && operation_->Bytes() > kEndsAtOnceBytes;
    if (Status status = leave ? operation_->Start() : Spin(Threads(context), &done); !status.ok())
      return Failed(std::move(status));
    patient_ = true;
    if (!done) {
      if (looked_ == steady_clock::time_point()) {
        deadline_ = comm_->settings().ExecDeadline();
        looked_ = looked_from_ = steady_clock::now();
      }
      armed_ = true;
      comm_->Arm(this, context.waker);
      // Once more: what came between the last look and the arming rang nobody.
      if (leave) {
        if (operation_->Ready()) Parking::Get().WakeSoon();
        return Outcome::Parked();
      }
      if (Status status = operation_->Advance(Threads(context), &done); !status.ok()) return Failed(std::move(status));
    }
    if (!done && (steady_clock::now() - looked_ > kLookAfter || deadline_.passed())) {
      looked_ = steady_clock::now();
      const std::vector<uint32_t> ranks = operation_->Waiting();
      Status gone = comm_->CheckPeers(*operation_, ranks);
      if (gone.ok()) Late(ranks);
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
    device::Meter::Of(comm_->card()).Received(operation_->ReceivedBytes());
    Disarm();
    if (comm_->show_ != nullptr) comm_->show_->End(operation_->Bytes());
    for (const auto& bounce : bounces_.out) bounce->CopyOut();
    // The next call of this communicator may wait on another stream for its turn.
    if (comm_->armed_ > 0) Parking::Get().WakeAll();
    return Outcome::Done();
  }

  void Drop(const Status& why) override {
    comm_->Fail(Error(why.code() == Code::kLinkError ? Code::kLinkError : Code::kTaskAbort, "{} was not run: {}",
                      operation_->Describe(), why.text()));
  }
  // Once: after the first step, which does not wait because it may be on the caller's thread.
  bool Polls() const override { return steps_ == 1 && comm_->spin_ > 0; }
  const char* Name() const override { return operation_->Name(); }
  uint32_t CostNs() const override {
    const bool alone = comm_->size() == 1 && operation_->Bytes() > kEndsAtOnceBytes;  // nobody is waited for
    return bounces_.empty() && !alone ? kCostNs : 0;
  }
  TaskWork Work() const override {
    return {.op = operation_->Name(),
            .unit = static_cast<uint8_t>(device::Unit::kLink),
            .flow = static_cast<uint8_t>(device::Flow::kLinkSend),
            .bytes = operation_->SentBytes()};
  }

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
    const int pauses = patient_ ? comm_->spin_ : std::min(comm_->spin_, kPausesAtOnce);
    for (int i = 0; i < pauses; ++i) {
      Pause();
      NPU_TRY(operation_->Advance(parallel, done));
      if (*done) return {};
    }
    if (!patient_) return {};
    const auto until = steady_clock::now() + kYieldFor;
    while (!*done && steady_clock::now() < until) {
      std::this_thread::yield();
      NPU_TRY(operation_->Advance(parallel, done));
    }
    return {};
  }

  // Shows a wait on the board, and names who lets it last.
  void Late(std::vector<uint32_t> ranks) {
    if (operation_->Moving()) {
      std::erase_if(ranks, [&](uint32_t r) { return comm_->team_.to[r]->Silent(r) < kSilentAfter; });
    }
    if (ranks.empty()) {
      waits_since_ = {};
      return;
    }
    const auto now = steady_clock::now();
    if (waits_since_ == steady_clock::time_point()) waits_since_ = std::max(looked_from_, now - milliseconds(400));
    const auto waited = std::chrono::duration_cast<milliseconds>(now - waits_since_);
    if (comm_->show_ != nullptr) comm_->show_->Wait(ranks, device::NowMs() - static_cast<uint64_t>(waited.count()));
    if (waited < kLateAfter || told_) return;
    told_ = true;
    comm_->TellLate(*operation_, ranks, waited);
  }

  void Disarm() {
    if (std::exchange(armed_, false)) comm_->Disarm(this);
  }

  Outcome Failed(Status status) {
    Disarm();
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
  bool started_ = false, told_ = false, armed_ = false;
  steady_clock::time_point waits_since_, looked_from_;
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
  if (team_.size > 1 && !own_process) {
    const bool cores = team_.direct && static_cast<int>(team_.size) <= rt::UsableCores();
    spin_ = cores ? kPausesWithCores : kPausesWithout;
  }
  sent_.resize(team_.size);
  received_.resize(team_.size);
  std::vector<uint32_t> host_of(team_.size);
  for (uint32_t r = 0; r < team_.size; ++r) {
    host_of[r] = r;
    for (uint32_t s = 0; s < r && host_of[r] == r && !parts_.settings.tcp_only; ++s) {
      if (parts_.members[s].host_id == parts_.members[r].host_id &&
          parts_.members[s].machine == parts_.members[r].machine)
        host_of[r] = s;
    }
  }
  team_.layers = LayersOf(host_of, team_.rank);
  team_.wires = team_.size > 1;
  for (uint32_t r = 0; r < team_.size; ++r) team_.wires = team_.wires && host_of[r] == r;
  std::vector<device::ranks::Member> shown(team_.size);
  for (uint32_t r = 0; r < team_.size; ++r) {
    const Member& m = parts_.members[r];
    shown[r] = {m.host_id, m.pid, m.card};
    std::memcpy(shown[r].address, m.address, sizeof shown[r].address);
  }
  show_ =
      device::ranks::Take({team_.name, parts_.machine, team_.rank, team_.size, static_cast<uint32_t>(card()), shown});
}

Communicator::~Communicator() {
  Leave();
  device::ranks::Give(show_);
}

void Communicator::ShowIssued(const Fingerprint& print, uint64_t number) {
  if (show_ == nullptr) return;
  device::ranks::Call call;
  const auto put = [](auto& to, std::string_view from) {
    std::memcpy(to, from.data(), std::min(from.size(), sizeof to - 1));
  };
  put(call.op, NameOf(print.op));
  if (print.op != Op::kBarrier) put(call.type, InfoOf(print.type).name);
  if (print.reduce <= 3 && print.op != Op::kSendRecv) put(call.reduce, NameOfReduce(print.reduce));
  call.has_root = print.op == Op::kBroadcast || print.op == Op::kReduce || print.op == Op::kScatter ? 1 : 0;
  call.root = print.root;
  call.count = print.count;
  call.number = number;
  show_->Issue(call);
}

Status Communicator::Enqueue(GroupCall call, Bounces bounces, rt::Stream& stream) {
  if (failed_.load(std::memory_order_acquire)) return Failure();
  const std::lock_guard lock(issue_mutex_);
  const uint64_t key = StepKey(call);
  ShowIssued(call.print, issued_ + 1);
  auto operation = std::make_unique<GroupOp>(team_, ++issued_, std::move(call), &finished_);
  return stream.Enqueue(std::make_unique<CollTask>(Ref<Communicator>::Share(this), std::move(operation),
                                                   std::move(bounces), stream.Idle(), key));
}

Status Communicator::Enqueue(const char* name, std::vector<PairItem> items, Bounces bounces, rt::Stream& stream) {
  if (failed_.load(std::memory_order_acquire)) return Failure();
  const std::lock_guard lock(issue_mutex_);
  for (PairItem& item : items) item.seq = item.send ? ++sent_[item.peer] : ++received_[item.peer];
  ShowIssued(items.front().print, items.front().seq);
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

// One that ended without a word comes before those that gave up because of it, whoever it is that we wait for.
Status Communicator::CheckPeers(const Operation& op, const std::vector<uint32_t>& ranks) {
  Status found;
  uint32_t culprit = 0;
  bool gone = false;
  for (const uint32_t rank : ranks) {
    found = team_.to[rank]->Check(rank, &gone);
    culprit = rank;
    if (!found.ok()) break;
  }
  if (found.ok()) return {};
  for (uint32_t rank = 0; rank < team_.size && !gone; ++rank) {
    if (rank == team_.rank) continue;
    Status other = team_.to[rank]->Check(rank, &gone);
    if (other.ok()) gone = false;
    if (gone) found = std::move(other), culprit = rank;
  }
  return Error(Code::kRemoteError, "{}: {}; {}.", op.Describe(), found.text(), LastCallOf(culprit))
      .Remedy("Look into the log of rank {}, end the other ranks of communicator {} and start the job again.", culprit,
              team_.name);
}

Status Communicator::Dead(bool* others) const {
  *others = false;
  for (uint32_t rank = 0; rank < team_.size; ++rank) {
    if (rank == team_.rank) continue;
    bool gone = false;
    Status state = team_.to[rank]->Check(rank, &gone);
    if (state.ok()) continue;
    if (gone) return state;
    *others = true;
  }
  return {};
}

std::string Communicator::LastCallOf(uint32_t rank) const {
  Line line;
  uint64_t seq = 0;
  if (!team_.to[rank]->Newest(rank, &line, &seq)) return "it has made no collective call in this communicator";
  return fmt::format("its last call is {} (call {})", Describe(line.print), seq);
}

std::string Communicator::Doing(uint32_t rank) const {
  const Member& m = parts_.members[rank];
  const bool same_host = m.host_id == parts_.members[team_.rank].host_id;
  switch (same_host ? device::ranks::StateOf(m.pid) : 'R') {
    case 'T':
      return "its process is stopped (SIGSTOP or Ctrl-Z; kill -CONT lets it go on)";
    case 't':
      return "its process is held by a debugger";
    case 'D':
      return "its process waits for a disk or a device";
    default:
      break;
  }
  const milliseconds silent = team_.to[rank]->Silent(rank);
  if (silent < kSilentAfter) return "its process runs";
  return fmt::format("no sign of life for {:.1f} s: the network between is down, or it is stopped",
                     static_cast<double>(silent.count()) / 1000);
}

void Communicator::TellLate(const Operation& op, const std::vector<uint32_t>& ranks, std::chrono::milliseconds waited) {
  std::string who, key;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Member& m = parts_.members[ranks[i]];
    const std::string doing = Doing(ranks[i]);
    key += fmt::format("{}:{};", ranks[i], doing.substr(0, 24));
    if (i == 4) who += fmt::format(", and {} more", ranks.size() - i);
    if (i >= 4) continue;
    who += fmt::format("{}rank {} (pid {}, device {}, {}): {}, {}", i == 0 ? "" : "; ", ranks[i], m.pid, m.card,
                       m.address, doing, LastCallOf(ranks[i]));
  }
  {
    // The same rank late in call after call (an evaluation, a slow loader) is told at its 1st, 2nd, 4th, 8th … time.
    const std::lock_guard lock(late_mutex_);
    late_times_ = key == late_key_ ? late_times_ + 1 : 1;
    late_key_ = key;
    if ((late_times_ & (late_times_ - 1)) != 0) return;
  }
  const std::string line =
      fmt::format("anynpu: rank {} has waited {:.1f} s in {} for {}. It goes on waiting{}; see `anynpu ranks`.\n",
                  team_.rank, static_cast<double>(waited.count()) / 1000, op.Describe(), who,
                  parts_.settings.exec_timeout
                      ? fmt::format(" until {} s (HCCL_EXEC_TIMEOUT)", parts_.settings.exec_seconds.count())
                      : "");
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

Status Communicator::TimedOut(const Operation& op, const std::vector<uint32_t>& ranks) const {
  std::string who;
  for (const uint32_t rank : ranks) {
    const Member& m = parts_.members[rank];
    if (who.size() < 400)
      who += fmt::format("{}rank {} (pid {}, device {}; {}, {})", who.empty() ? "" : ", ", rank, m.pid, m.card,
                         Doing(rank), LastCallOf(rank));
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
    if (show_ != nullptr) show_->Break(std::string(why.text()));
    failed_.store(true, std::memory_order_release);
  }
  for (Transport* transport : team_.transports) transport->Leave(/*failed=*/true);
  Parking::Get().WakeAll();  // calls that wait for their turn end too
}

void Communicator::Leave() {
  for (Transport* transport : team_.transports) transport->Leave(/*failed=*/false);
}

}  // namespace npu::coll
