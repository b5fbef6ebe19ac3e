// A communicator: the ranks that call collectives together, as one of them sees it.
//
//   NPU_ASSIGN(Ref<Communicator> comm, Communicator::Make(std::move(plan)));
//   NPU_TRY(comm->Enqueue(call, *stream));      // returns at once; the stream does the waiting
//
// Calls are numbered as they are issued and take turns. The first failure breaks the communicator: every call after it
// answers with the same error, and the peers learn that this rank has given up. Any thread may call anything.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/handle/ref.h"
#include "coll/algo/group_op.h"
#include "coll/algo/pair_op.h"
#include "coll/comm/buffer.h"
#include "coll/comm/settings.h"
#include "coll/transport/host.h"
#include "device/ranks/board.h"
#include "runtime/stream/stream.h"

namespace npu::coll {

class Communicator {
 public:
  struct Parts {
    std::string name, machine;
    std::string token;  // only ranks of the job know it; sub communicators meet under it
    uint32_t rank = 0;
    std::vector<Member> members;
    std::vector<std::unique_ptr<Transport>> transports;
    std::vector<int> transport_of;  // by rank, index into transports; -1 for itself
    bool direct = true;
    Settings settings;
    std::shared_ptr<void> listener;  // kept open as long as the communicator lives
  };
  static Ref<Communicator> Make(Parts parts);

  Status Enqueue(GroupCall call, Bounces bounces, rt::Stream& stream);
  // Items in issue order; their sequence numbers are given here.
  Status Enqueue(const char* name, std::vector<PairItem> items, Bounces bounces, rt::Stream& stream);

  const std::string& name() const { return team_.name; }
  uint32_t rank() const { return team_.rank; }
  uint32_t size() const { return team_.size; }
  int card() const { return parts_.members[team_.rank].card; }
  const Team& team() const { return team_; }
  const Settings& settings() const { return parts_.settings; }
  const std::string& token() const { return parts_.token; }
  const Member& member(uint32_t rank) const { return parts_.members[rank]; }

  // The process of a rank that has ended, if any; *others: some rank has given up or left.
  Status Dead(bool* others) const;

  // What broke it; ok while it works.
  Status Failure() const;
  void Fail(const Status& why);
  // Takes no further part; peers that wait for this rank are told.
  void Leave();

  std::atomic<int> determinism{0};  // HcclSetConfig; results are the same every time whatever it says

  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  friend class CollTask;
  explicit Communicator(Parts parts);
  ~Communicator();
  void Arm(const void* key, const Waker& waker);
  void Disarm(const void* key);
  // Names the first of `ranks` that is gone.
  Status CheckPeers(const Operation& op, const std::vector<uint32_t>& ranks);
  Status TimedOut(const Operation& op, const std::vector<uint32_t>& ranks) const;
  std::string LastCallOf(uint32_t rank) const;
  // One line on stderr: whom a call has been waiting for, and what that process does.
  void TellLate(const Operation& op, const std::vector<uint32_t>& ranks, std::chrono::milliseconds waited);
  std::string Doing(uint32_t rank) const;
  void ShowIssued(const Fingerprint& print, uint64_t number);

  Parts parts_;
  Team team_;
  int spin_ = 0;            // pauses before a waiting call yields; 0 when a peer may need this very thread
  bool crowded_ = false;    // no core is left for helping threads
  std::mutex issue_mutex_;  // held from numbering a call to queueing it
  uint64_t issued_ = 0;
  std::vector<uint64_t> sent_, received_;  // by peer
  std::atomic<uint64_t> finished_{0};
  std::mutex arm_mutex_;
  std::atomic<int> armed_{0};  // changed under arm_mutex_
  mutable std::mutex failure_mutex_;
  Status failure_;
  std::atomic<bool> failed_{false};
  device::ranks::Show* show_ = nullptr;  // on the board of `anynpu ranks`
  std::mutex late_mutex_;
  std::string late_key_;  // whom the last line was about, and how often in a row
  uint64_t late_times_ = 0;
  std::atomic<uint32_t> refs_{1};
};

}  // namespace npu::coll
