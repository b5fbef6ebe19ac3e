#include "coll/rendezvous/meeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/os/thread.h"

namespace npu::coll {
namespace {

constexpr uint32_t kMostRanks = 65536, kMostBlob = 1 << 16, kMostText = 1 << 14;
constexpr std::chrono::milliseconds kLook(100);  // how often the seated ranks are looked at while others are awaited
constexpr std::chrono::seconds kGrace(5);        // what a rank waits longer than the server, whose text is better

// Precedes every blob and every answer.
struct Frame {
  uint32_t code = 0;  // npu::Code; 0 is fine
  uint32_t bytes = 0;
};

Status SendFailure(int fd, const Status& status, Deadline deadline) {
  std::string text(status.text());
  text += '\0';
  text += status.remedy();
  text.resize(std::min<size_t>(text.size(), kMostText));
  const Frame frame{static_cast<uint32_t>(status.code()), static_cast<uint32_t>(text.size())};
  NPU_TRY(SendAll(fd, std::as_bytes(std::span(&frame, 1)), deadline));
  return SendAll(fd, std::as_bytes(std::span(text)), deadline);
}

// The failure that the frame announces, or that of receiving it.
Status ReceiveFailure(int fd, const Frame& frame, Deadline deadline) {
  std::string text(std::min(frame.bytes, kMostText), '\0');
  NPU_TRY(ReceiveAll(fd, std::as_writable_bytes(std::span(text)), deadline));
  const size_t end = text.find('\0');
  const auto code =
      frame.code <= static_cast<uint32_t>(Code::kCommMismatch) ? static_cast<Code>(frame.code) : Code::kInternal;
  std::string cause = text.substr(0, end);
  if (cause.empty()) cause = "EI0006: a rank gave up while the communicator was being made and did not say why.";
  Status status(code, std::move(cause));
  if (end != std::string::npos && end + 1 < text.size()) status = std::move(status).Remedy("{}", text.substr(end + 1));
  return status;
}

std::string Ranks(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size() && i < 8; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > 8) text += fmt::format(" and {} more", ranks.size() - 8);
  return text;
}

class Server {
 public:
  Server(std::shared_ptr<Listener> listener, std::string id, Settings settings)
      : inbox_(std::move(listener), std::move(id)), settings_(std::move(settings)) {}

  void Run() {
    Status status = Gather();
    while (status.ok()) status = Round();
    if (status.code() == Code::kOk || ended_) return;
    // Rank 0 last: this thread lives in its process, which may end as soon as it knows.
    for (auto fd = seats_.rbegin(); fd != seats_.rend(); ++fd) {
      if (*fd) static_cast<void>(SendFailure(fd->get(), status, Deadline::In(kGrace)));
    }
  }

 private:
  Status Late(const std::vector<uint32_t>& missing) const {
    return Error(Code::kCommTimeout,
                 "EI0006: rank {} of {} did not come to the communicator within {} s (HCCL_CONNECT_TIMEOUT).",
                 Ranks(missing), seats_.size(), settings_.connect_seconds.count())
        .Remedy("See why it was late or died (its own log), or raise HCCL_CONNECT_TIMEOUT on all ranks (120 to 7200).");
  }

  // Waits until every rank has taken its seat. A seated rank that dies meanwhile ends the meeting at once.
  Status Gather() {
    Deadline deadline = settings_.ConnectDeadline();
    uint32_t present = 0;
    do {
      Result<Caller> next = inbox_.Next(Deadline::In(std::min<std::chrono::nanoseconds>(deadline.left(), kLook)));
      if (!next.ok()) {
        NPU_TRY(CheckSeats());
        if (!deadline.passed()) continue;
        std::vector<uint32_t> missing;
        for (uint32_t r = 0; r < seats_.size(); ++r) {
          if (!seats_[r]) missing.push_back(r);
        }
        return Late(missing);
      }
      Caller caller = std::move(*next);
      if (seats_.empty()) {
        if (caller.ranks == 0 || caller.ranks > kMostRanks) continue;
        seats_.resize(caller.ranks);
        deadline = settings_.ConnectDeadline();
      }
      Status refused;
      if (caller.ranks != seats_.size()) {
        refused =
            Error(Code::kInvalidParam, "EI0003: rank {} says the communicator has {} ranks, another rank says {}.",
                  caller.rank, caller.ranks, seats_.size())
                .Remedy("Pass the same nRanks on every rank.");
      } else if (caller.rank >= seats_.size()) {
        refused = Error(Code::kInvalidParam, "EI0003: rank {} is not below nRanks {}.", caller.rank, caller.ranks);
      } else if (seats_[caller.rank]) {
        refused =
            Error(Code::kInvalidParam, "EI0003: two processes want to be rank {} of one communicator.", caller.rank)
                .Remedy("Give every process its own rank.");
      }
      if (!refused.ok()) {
        static_cast<void>(SendFailure(caller.fd.get(), refused, Deadline::In(kGrace)));
        return refused;
      }
      seats_[caller.rank] = std::move(caller.fd);
      ++present;
    } while (seats_.empty() || present < seats_.size());
    return {};
  }

  Status CheckSeats() const {
    for (uint32_t r = 0; r < seats_.size(); ++r) {
      if (!seats_[r]) continue;
      char byte;
      const ssize_t n = ::recv(seats_[r].get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return Gone(r);
    }
    return {};
  }

  static Status Gone(uint32_t rank) {
    return Error(Code::kRemoteError, "EI0006: rank {} left while the communicator was being made.", rank)
        .Remedy("Look into its log; start the job again when the cause is gone.");
  }

  Status Round() {
    std::vector<std::byte> all;
    uint32_t bytes = 0;
    for (uint32_t r = 0; r < seats_.size(); ++r) {
      const Deadline deadline = settings_.ConnectDeadline();
      Frame frame;
      Status got = ReceiveAll(seats_[r].get(), std::as_writable_bytes(std::span(&frame, 1)), deadline);
      if (got.code() == Code::kCommTimeout) return Late({r});
      if (!got.ok()) {
        ended_ = r == 0 && rounds_ > 0;  // the usual end: all leave after the last round
        return Gone(r);
      }
      if (frame.code != 0) {
        return ReceiveFailure(seats_[r].get(), frame, deadline);
      }
      if (r == 0) bytes = frame.bytes;
      if (frame.bytes != bytes || bytes > kMostBlob) {
        return Error(Code::kInvalidParam, "EI0008: ranks 0 and {} use different versions of this library.", r)
            .Remedy("Give all ranks the same libraries.");
      }
      all.resize((r + size_t{1}) * bytes);
      got = ReceiveAll(seats_[r].get(), std::span(all).last(bytes), deadline);
      if (!got.ok()) return got.code() == Code::kCommTimeout ? Late({r}) : Gone(r);
    }
    const Frame frame{0, static_cast<uint32_t>(all.size())};
    for (uint32_t r = static_cast<uint32_t>(seats_.size()); r-- > 0;) {  // rank 0 last, see Run
      const Deadline deadline = settings_.ConnectDeadline();
      if (!SendAll(seats_[r].get(), std::as_bytes(std::span(&frame, 1)), deadline).ok() ||
          !SendAll(seats_[r].get(), all, deadline).ok()) {
        return Gone(r);
      }
    }
    ++rounds_;
    return {};
  }

  Inbox inbox_;
  const Settings settings_;
  std::vector<os::Fd> seats_;
  uint32_t rounds_ = 0;
  bool ended_ = false;
};

}  // namespace

Result<Meeting> Meeting::Join(const MeetingPoint& point, uint32_t rank, uint32_t ranks, const Settings& settings,
                              std::chrono::nanoseconds patience) {
  Meeting meeting;
  meeting.ranks_ = ranks;
  meeting.patience_ = settings.connect_timeout + kGrace;
  NPU_ASSIGN(meeting.fd_, Call(point.address, point.port, point.id, rank, ranks,
                               Deadline::In(std::min(settings.connect_timeout, patience))));
  return meeting;
}

Result<std::vector<std::byte>> Meeting::Round(std::span<const std::byte> blob, const Status& mine) {
  const Deadline deadline = Deadline::In(patience_);
  if (!mine.ok()) {
    static_cast<void>(SendFailure(fd_.get(), mine, deadline));
    return mine;
  }
  const auto lost = [](const Status& why) {
    return Error(why.code(), "EI0006: the rank that leads the communicator's set-up does not answer: {}", why.text())
        .Remedy("Look into the log of rank 0.");
  };
  const Frame frame{0, static_cast<uint32_t>(blob.size())};
  // A failed send is not the end: the answer that explains it may be there already.
  if (SendAll(fd_.get(), std::as_bytes(std::span(&frame, 1)), deadline).ok()) {
    static_cast<void>(SendAll(fd_.get(), blob, deadline));
  }
  Frame answer;
  if (Status got = ReceiveAll(fd_.get(), std::as_writable_bytes(std::span(&answer, 1)), deadline); !got.ok())
    return lost(got);
  if (answer.code != 0) return ReceiveFailure(fd_.get(), answer, deadline);
  if (answer.bytes != blob.size() * ranks_)
    return Error(Code::kInternal, "The meeting answered with {} bytes.", answer.bytes);
  std::vector<std::byte> all(answer.bytes);
  if (Status got = ReceiveAll(fd_.get(), all, deadline); !got.ok()) return lost(got);
  return all;
}

Status ServeMeeting(std::shared_ptr<Listener> listener, std::string id, const Settings& settings) {
  auto server = std::make_shared<Server>(std::move(listener), std::move(id), settings);
  return os::Detach("npu-meeting", [server = std::move(server)] { server->Run(); });
}

}  // namespace npu::coll
