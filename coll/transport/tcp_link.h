// One connection of a TcpTransport, and the thread that serves all connections of this process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/os/fd.h"
#include "base/status/status.h"
#include "coll/transport/transport.h"

namespace npu::coll {

// kAlive says only that the process runs: a stopped process or a dead network is silent.
enum class FrameKind : uint32_t { kLine, kReach, kGet, kData, kLeave, kAlive };

struct FrameHead {
  FrameKind kind = FrameKind::kLine;
  Lane lane = Lane::kGroup;
  Buffer buffer = Buffer::kIn;
  uint8_t failed = 0;
  uint8_t spare = 0;
  uint64_t seq = 0;     // line number, or the step reached
  uint64_t ticket = 0;  // kGet, kData
  uint64_t offset = 0;  // in the buffer; kData: in the fetch
  uint64_t bytes = 0;   // that follow; kGet: wanted
  uint64_t after = 0;   // kGet of a group line: not before this step of its sender
};
static_assert(sizeof(FrameHead) == 48);

// All members behind mutex_, which the pump and the tasks of the communicator take for short.
class TcpLink {
 public:
  TcpLink(os::Fd fd, uint64_t id) : fd_(std::move(fd)), id_(id) {}

  void SendLine(Lane lane, uint64_t seq, const Line& line, std::span<const std::byte> payload, const Offer& offer);
  void SendReach(Lane lane, uint64_t step);
  void SendGet(Lane lane, uint64_t seq, Buffer buffer, uint64_t offset, std::span<std::byte> to,
               std::atomic<uint32_t>* pending, uint64_t after = 0);
  void Leave(bool failed);  // no fetch destination is touched afterwards
  void Linger();            // the owner is gone: sends what is queued, then closes

  Posted Peek(Lane lane, uint64_t seq);
  uint64_t Reached(Lane lane);
  Status State(bool* gone);  // why nothing more comes, or ok; gone: it ended without a word
  bool Newest(Line* line, uint64_t* seq);
  std::chrono::milliseconds Silent();

  // For the pump. False: the link is finished.
  bool OnReadable();
  bool OnWritable();
  bool WantsToWrite();
  bool TakeNews();  // whether something has come since that a call may wait for
  void SendAlive();
  int fd() const { return fd_.get(); }
  uint64_t id() const { return id_; }

 private:
  struct Shown {
    uint64_t seq = 0;
    Line line;
    std::vector<std::byte> body;  // the line, then its payload
  };
  struct Offered {
    uint64_t seq = 0;
    Offer offer;
    uint64_t in_bytes = 0, out_bytes = 0;
  };
  struct Ticket {
    std::byte* to = nullptr;
    uint64_t bytes = 0, left = 0;
    std::atomic<uint32_t>* pending = nullptr;
  };
  struct Piece {
    std::vector<std::byte> own;
    const std::byte* data = nullptr;  // borrowed; null: own
    uint64_t bytes = 0, done = 0;
  };

  void Queue(const FrameHead& head, std::span<const std::byte> copied = {});
  void Flush();
  ssize_t SendPieces();
  void Break(std::string why);
  bool Begin();  // a head is complete
  bool End();    // its bytes are complete
  bool Serve(const FrameHead& get);
  bool MayShow(Lane lane, uint64_t seq);
  Shown& ShownAt(Lane lane, uint64_t seq) { return lane == Lane::kPair ? pair_ : group_[seq & 1]; }
  Offered& OfferedAt(Lane lane, uint64_t seq) { return lane == Lane::kPair ? pair_offer_ : group_offer_[seq & 1]; }

  std::mutex mutex_;
  os::Fd fd_;
  const uint64_t id_;
  std::string broken_;
  bool left_ = false, lingering_ = false, said_farewell_ = false;
  bool news_ = false, watches_writing_ = false;
  Shown group_[2], pair_;
  Offered group_offer_[2], pair_offer_;
  uint64_t reached_group_ = 0, reached_pair_ = 0;
  // What we said: lines we are through with may be written over by the peer's next ones, others may not.
  uint64_t said_group_ = 0, said_pair_ = 0;
  std::chrono::steady_clock::time_point heard_ = std::chrono::steady_clock::now();
  std::map<uint64_t, Ticket> tickets_;
  uint64_t next_ticket_ = 1;
  std::deque<Piece> out_;
  std::vector<FrameHead> deferred_;  // gets that wait for a step of ours
  FrameHead head_;
  uint64_t head_got_ = 0, body_got_ = 0;
  std::vector<std::byte> body_;
  std::byte* direct_ = nullptr;  // where the bytes of a data frame go
};

// The thread that moves frames of all links. Lives as long as the process.
class TcpPump {
 public:
  static TcpPump& Get();
  Status Add(const std::shared_ptr<TcpLink>& link);
  void Update(const TcpLink& link, bool write);
  uint64_t NewId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

 private:
  TcpPump() = default;
  void Run();
  os::Fd epoll_;
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<TcpLink>> links_;
  std::atomic<uint64_t> next_id_{1};
};

}  // namespace npu::coll
