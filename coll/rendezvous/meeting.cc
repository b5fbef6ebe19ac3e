#include "coll/rendezvous/meeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/os/thread.h"
#include "coll/net/refusal.h"

namespace npu::coll {
namespace {

constexpr uint32_t kMostRanks = 65536, kMostBlob = 1 << 16;
constexpr std::chrono::milliseconds kLateAfter(1500);  // ranks that are awaited so long are named
constexpr uint32_t kRounds = 3;                        // of Assemble; after them all merely leave
constexpr std::chrono::milliseconds kLook(100);  // how often the seated ranks are looked at while others are awaited
constexpr std::chrono::seconds kForLateComers(2);  // how long a meeting that has failed still tells why
constexpr std::chrono::seconds kGrace(5);        // what a rank waits longer than the server, whose text is better

std::string Ranks(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size() && i < 8; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > 8) text += fmt::format(" and {} more", ranks.size() - 8);
  return text;
}

class Server {
 public:
  Server(std::shared_ptr<Listener> listener, std::string id, Settings settings, bool tells_late_comers)
      : port_(listener->port()),
        inbox_(std::move(listener), std::move(id)),
        settings_(std::move(settings)),
        tells_late_comers_(tells_late_comers) {}

  void Run() {
    Status status = Gather();
    while (status.ok()) status = Round();
    if (status.code() == Code::kOk || ended_) return;
    // Rank 0 last: this thread lives in its process, which may end as soon as it knows.
    for (auto fd = seats_.rbegin(); fd != seats_.rend(); ++fd) {
      if (!fd->fd) continue;
      static_cast<void>(SendFailure(fd->fd.get(), status, Deadline::In(kGrace)));
      // What was sent to us and not read would turn the end into a reset, which throws the text away. A rank sends one
      // blob; one that goes on is not listened to for ever.
      char unread[4096];
      for (uint32_t n = 0; n <= kMostBlob / sizeof unread; ++n) {
        if (::recv(fd->fd.get(), unread, sizeof unread, MSG_DONTWAIT) <= 0) break;
      }
    }
    if (tells_late_comers_) TellLateComers(status);
  }

 private:
  // Ranks that are on their way learn why the meeting is over, instead of finding nobody.
  void TellLateComers(const Status& status) {
    const Deadline deadline = Deadline::In(kForLateComers);
    auto awaited = std::count_if(seats_.begin(), seats_.end(), [](const Seat& seat) { return !seat.fd; });
    for (; awaited > 0 && !deadline.passed(); --awaited) {
      Result<Caller> caller = inbox_.Next(deadline);
      if (caller.ok()) static_cast<void>(SendFailure(caller->fd.get(), status, Deadline::In(kGrace)));
    }
  }

  Status Late(const std::vector<uint32_t>& missing) const {
    return Error(Code::kCommTimeout,
                 "EI0006: rank {} of {} did not come to the communicator within {} s (HCCL_CONNECT_TIMEOUT).",
                 Ranks(missing), seats_.size(), settings_.connect_seconds.count())
        .Remedy("See why it was late or died (its own log), or raise HCCL_CONNECT_TIMEOUT on all ranks (120 to 7200).");
  }

  // Says once who lets the others wait.
  void TellLate(const std::vector<uint32_t>& missing, std::chrono::steady_clock::time_point since) {
    if (told_ || missing.empty() || missing.size() == seats_.size() ||
        std::chrono::steady_clock::now() - since < kLateAfter)
      return;
    told_ = true;
    Tell(fmt::format(
        "the communicator that meets at {} port {} has waited 1.5 s for rank {} of {}{}. It goes on waiting until {} s "
        "(HCCL_CONNECT_TIMEOUT).",
        settings_.address, port_, Ranks(missing), seats_.size(), Known(missing), settings_.connect_seconds.count()));
  }
  // What is known of the first of them.
  std::string Known(const std::vector<uint32_t>& ranks) const {
    const Seat& seat = seats_[ranks[0]];
    if (!seat.fd) return ", which has not come (not started, not yet this far, or it cannot reach this address)";
    return fmt::format(" (rank {}: pid {}, device {}), which has come but does not go on: stopped or busy", ranks[0],
                       seat.pid, seat.card);
  }

  // Waits until every rank has taken its seat. A seated rank that dies meanwhile ends the meeting at once.
  Status Gather() {
    Deadline deadline = settings_.ConnectDeadline();
    uint32_t present = 0;
    auto since = std::chrono::steady_clock::now();
    do {
      Result<Caller> next = inbox_.Next(Deadline::In(std::min<std::chrono::nanoseconds>(deadline.left(), kLook)));
      if (!next.ok()) {
        NPU_TRY(CheckSeats());
        std::vector<uint32_t> missing;
        for (uint32_t r = 0; r < seats_.size(); ++r) {
          if (!seats_[r].fd) missing.push_back(r);
        }
        TellLate(missing, since);
        if (!deadline.passed()) continue;
        return Late(missing);
      }
      Caller caller = std::move(*next);
      if (seats_.empty()) {
        if (caller.ranks == 0 || caller.ranks > kMostRanks) continue;
        seats_.resize(caller.ranks);
        since = std::chrono::steady_clock::now();
        deadline = settings_.ConnectDeadline();
      }
      Status refused;
      if (caller.version != Hello::kVersion) {
        refused = Error(Code::kInvalidParam,
                        "EI0008: rank {} (pid {}) uses version {} of this library's protocol, this host version {}.",
                        caller.rank, caller.pid, caller.version, Hello::kVersion)
                      .Remedy("Install the same version of anynpu on all hosts.");
      } else if (caller.ranks != seats_.size()) {
        refused =
            Error(Code::kInvalidParam, "EI0003: rank {} says the communicator has {} ranks, another rank says {}.",
                  caller.rank, caller.ranks, seats_.size())
                .Remedy("Pass the same nRanks on every rank.");
      } else if (caller.rank >= seats_.size()) {
        refused = Error(Code::kInvalidParam, "EI0003: rank {} is not below nRanks {}.", caller.rank, caller.ranks);
      } else if (seats_[caller.rank].fd) {
        refused = Error(Code::kInvalidParam,
                        "EI0003: two processes want to be rank {} of one communicator: pid {} and pid {}.", caller.rank,
                        seats_[caller.rank].pid, caller.pid)
                      .Remedy("Give every process its own rank.");
      }
      if (!refused.ok()) {
        static_cast<void>(SendFailure(caller.fd.get(), refused, Deadline::In(kGrace)));
        return refused;
      }
      seats_[caller.rank] = {std::move(caller.fd), caller.pid, caller.card, {}};
      ++present;
    } while (seats_.empty() || present < seats_.size());
    return {};
  }

  Status CheckSeats() const {
    for (uint32_t r = 0; r < seats_.size(); ++r) {
      if (!seats_[r].fd) continue;
      char byte;
      const ssize_t n = ::recv(seats_[r].fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return Gone(r);
    }
    return {};
  }

  Status Gone(uint32_t rank) const {
    return Error(Code::kRemoteError, "EI0006: rank {} (pid {}, device {}) left while the communicator was being made.",
                 rank, seats_[rank].pid, seats_[rank].card)
        .Remedy("Look into its log; start the job again when the cause is gone.");
  }

  // Reads what has come from one rank. False while its blob is not whole.
  Result<bool> Hear(uint32_t rank, uint32_t* bytes) {
    Seat& seat = seats_[rank];
    while (true) {
      const bool in_head = seat.got.size() < sizeof(Frame);
      Frame frame;
      if (!in_head) std::memcpy(&frame, seat.got.data(), sizeof frame);
      const size_t wanted = in_head ? sizeof(Frame) : sizeof(Frame) + frame.bytes;
      if (!in_head && frame.code != 0) return ReceiveFailure(seat.fd.get(), frame, Deadline::In(kGrace));
      if (!in_head && *bytes == 0) *bytes = frame.bytes;
      if (!in_head && (frame.bytes != *bytes || frame.bytes == 0 || frame.bytes > kMostBlob)) {
        return Error(Code::kInvalidParam,
                     "EI0008: rank {} (pid {}) and another use different versions of this library.", rank, seat.pid)
            .Remedy("Give all ranks the same libraries.");
      }
      if (!in_head && seat.got.size() == wanted) return true;
      const size_t have = seat.got.size();
      seat.got.resize(wanted);
      const ssize_t n = ::recv(seat.fd.get(), seat.got.data() + have, wanted - have, MSG_DONTWAIT);
      seat.got.resize(have + static_cast<size_t>(std::max<ssize_t>(n, 0)));
      if (n > 0 || (n < 0 && errno == EINTR)) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
      ended_ = rank == 0 && rounds_ > 0 && have == 0;  // the usual end: all leave after the last round
      return Gone(rank);
    }
  }

  // All ranks at once: one that dies ends the meeting though another is still busy.
  Status Round() {
    const Deadline deadline = settings_.ConnectDeadline();
    const auto since = std::chrono::steady_clock::now();
    uint32_t bytes = 0;
    for (Seat& seat : seats_) seat.got.clear();
    std::vector<bool> whole(seats_.size());
    while (true) {
      std::vector<pollfd> polls;
      std::vector<uint32_t> missing;
      // A failure that a rank tells comes before the end of another, which may be its consequence.
      Status gone;
      for (uint32_t r = 0; r < seats_.size(); ++r) {
        if (whole[r]) continue;
        Result<bool> heard = Hear(r, &bytes);
        if (!heard.ok() && heard.status().code() != Code::kRemoteError) return heard.status();
        if (!heard.ok() && gone.ok()) gone = heard.status();
        whole[r] = heard.ok() && *heard;
        if (whole[r]) continue;
        missing.push_back(r);
        polls.push_back({seats_[r].fd.get(), POLLIN, 0});
      }
      if (!gone.ok()) return gone;
      if (missing.empty()) break;
      if (rounds_ < kRounds) TellLate(missing, since);
      if (deadline.passed()) return Late(missing);
      ::poll(polls.data(), polls.size(), static_cast<int>(kLook.count()));
    }
    std::vector<std::byte> all;
    for (const Seat& seat : seats_) all.insert(all.end(), seat.got.begin() + sizeof(Frame), seat.got.end());
    const Frame frame{0, static_cast<uint32_t>(all.size())};
    for (uint32_t r = static_cast<uint32_t>(seats_.size()); r-- > 0;) {  // rank 0 last, see Run
      const Deadline limit = settings_.ConnectDeadline();
      if (!SendAll(seats_[r].fd.get(), std::as_bytes(std::span(&frame, 1)), limit).ok() ||
          !SendAll(seats_[r].fd.get(), all, limit).ok()) {
        return Gone(r);
      }
    }
    ++rounds_;
    return {};
  }

  struct Seat {
    os::Fd fd;
    int32_t pid = 0, card = -1;
    std::vector<std::byte> got;
  };

  const uint16_t port_;
  Inbox inbox_;
  const Settings settings_;
  const bool tells_late_comers_;
  std::vector<Seat> seats_;
  bool told_ = false;
  uint32_t rounds_ = 0;
  bool ended_ = false;
};

}  // namespace

Result<Meeting> Meeting::Join(const MeetingPoint& point, const Calling& as, const Settings& settings,
                              std::chrono::nanoseconds patience) {
  Meeting meeting;
  meeting.ranks_ = as.ranks;
  meeting.point_ = point;
  meeting.patience_ = settings.connect_timeout + kGrace;
  Result<os::Fd> called =
      Call(point.address, point.port, point.id, as, Deadline::In(std::min(settings.connect_timeout, patience)));
  if (!called.ok()) {
    return Error(called.status().code(), "{} That is where the communicator's ranks meet, at rank 0 as a rule.",
                 called.status().text())
        .Remedy("{}", called.status().remedy());
  }
  meeting.fd_ = called.take();
  return meeting;
}

Status Meeting::Lost(const Status& why) const {
  return Error(why.code() == Code::kInvalidParam ? Code::kRemoteError : why.code(),
               "EI0006: the rank that leads the communicator's set-up (rank 0 as a rule; it listens at {} port {}) "
               "does not answer: {}",
               point_.address, point_.port, why.text())
      .Remedy("Look into the log of rank 0.");
}

Result<std::vector<std::byte>> Meeting::Round(std::span<const std::byte> blob, const Status& mine) {
  const Deadline deadline = Deadline::In(patience_);
  if (!mine.ok()) {
    // The meeting's own word on it may be there already, and names the culprit.
    if (ended_) return mine;
    if (Status told = Interrupted(); !told.ok()) return told;
    static_cast<void>(SendFailure(fd_.get(), mine, deadline));
    return mine;
  }
  const Frame frame{0, static_cast<uint32_t>(blob.size())};
  // A failed send is not the end: the answer that explains it may be there already.
  if (SendAll(fd_.get(), std::as_bytes(std::span(&frame, 1)), deadline).ok()) {
    static_cast<void>(SendAll(fd_.get(), blob, deadline));
  }
  Frame answer;
  if (Status got = ReceiveAll(fd_.get(), std::as_writable_bytes(std::span(&answer, 1)), deadline); !got.ok())
    return Lost(got);
  if (answer.code != 0) return ReceiveFailure(fd_.get(), answer, deadline);
  if (answer.bytes != blob.size() * ranks_)
    return Error(Code::kInternal, "The meeting answered with {} bytes.", answer.bytes);
  std::vector<std::byte> all(answer.bytes);
  if (Status got = ReceiveAll(fd_.get(), all, deadline); !got.ok()) return Lost(got);
  return all;
}

Status Meeting::Interrupted() {
  if (!Readable(fd_.get(), Deadline::In(std::chrono::nanoseconds(0)))) return {};
  ended_ = true;
  Frame answer;
  const Deadline deadline = Deadline::In(kGrace);
  if (Status got = ReceiveAll(fd_.get(), std::as_writable_bytes(std::span(&answer, 1)), deadline); !got.ok())
    return Lost(got);
  if (answer.code != 0) return ReceiveFailure(fd_.get(), answer, deadline);
  return Error(Code::kInternal, "The meeting answered before it was asked.");
}

Status ServeMeeting(std::shared_ptr<Listener> listener, std::string id, const Settings& settings,
                    bool tells_late_comers) {
  auto server = std::make_shared<Server>(std::move(listener), std::move(id), settings, tells_late_comers);
  return os::Detach("npu-meeting", [server = std::move(server)] { server->Run(); });
}

}  // namespace npu::coll
