#include "coll/transport/tcp_link.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/os/thread.h"
#include "coll/comm/parking.h"

namespace npu::coll {
namespace {
constexpr uint64_t kChunk = 256 << 10;  // bytes of data in a frame: others get their turn in between
constexpr int kReadsPerTurn = 64;
constexpr std::chrono::milliseconds kAliveEvery(500);
constexpr size_t kMostDeferred = 64;
constexpr uint64_t kMostBody = sizeof(Line) + kWireInlineBytes;
constexpr size_t kPartsAtOnce = 16;
}  // namespace

void TcpLink::Break(std::string why) {
  if (broken_.empty()) broken_ = std::move(why);
  news_ = true;
  tickets_.clear();
  direct_ = nullptr;
  out_.clear();
}

void TcpLink::Queue(const FrameHead& head, std::span<const std::byte> copied) {
  Piece piece;
  piece.own.resize(sizeof head + copied.size());
  std::memcpy(piece.own.data(), &head, sizeof head);
  if (!copied.empty()) std::memcpy(piece.own.data() + sizeof head, copied.data(), copied.size());
  piece.bytes = piece.own.size();
  out_.push_back(std::move(piece));
}

// Several pieces at once: a head goes out with what it announces, and wakes the peer once.
ssize_t TcpLink::SendPieces() {
  iovec parts[kPartsAtOnce];
  msghdr message{};
  message.msg_iov = parts;
  for (Piece& piece : out_) {
    if (message.msg_iovlen == kPartsAtOnce) break;
    const std::byte* from = piece.data != nullptr ? piece.data : piece.own.data();
    parts[message.msg_iovlen++] = {const_cast<std::byte*>(from) + piece.done, piece.bytes - piece.done};
  }
  return ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void TcpLink::Flush() {
  while (!out_.empty()) {
    const ssize_t n = SendPieces();
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      // What the peer said before it went may still be unread: reading notices the end.
      out_.clear();
      return;
    }
    for (auto left = static_cast<uint64_t>(n); left > 0;) {
      Piece& piece = out_.front();
      const uint64_t taken = std::min(left, piece.bytes - piece.done);
      piece.done += taken;
      left -= taken;
      if (piece.done == piece.bytes) out_.pop_front();
    }
  }
  if (out_.empty() && lingering_) ::shutdown(fd_.get(), SHUT_WR);
  if (watches_writing_ == !out_.empty()) return;
  watches_writing_ = !out_.empty();
  TcpPump::Get().Update(*this, watches_writing_);
}

void TcpLink::SendLine(Lane lane, uint64_t seq, const Line& line, std::span<const std::byte> payload,
                       const Offer& offer) {
  const std::lock_guard lock(mutex_);
  if (!broken_.empty() || left_) return;
  OfferedAt(lane, seq) = {seq, offer, line.in.bytes, line.out.bytes};
  FrameHead head;
  head.kind = FrameKind::kLine;
  head.lane = lane;
  head.seq = seq;
  head.bytes = sizeof line + payload.size();
  Queue(head, std::as_bytes(std::span(&line, 1)));
  if (payload.empty()) return Flush();
  // The caller's bytes may change once this call has returned: what does not go at once is copied.
  Piece& last = out_.emplace_back();
  last.data = payload.data();
  last.bytes = payload.size();
  Flush();
  if (out_.empty()) return;
  Piece& left = out_.back();
  left.own.assign(left.data + left.done, left.data + left.bytes);
  left.data = nullptr;
  left.bytes -= std::exchange(left.done, 0);
}

void TcpLink::SendReach(Lane lane, uint64_t step) {
  const std::lock_guard lock(mutex_);
  if (!broken_.empty() || left_) return;
  FrameHead head;
  (lane == Lane::kPair ? said_pair_ : said_group_) = step;
  head.kind = FrameKind::kReach;
  head.lane = lane;
  head.seq = step;
  Queue(head);
  for (const FrameHead& get : std::exchange(deferred_, {})) {
    if (!Serve(get)) return;
  }
  Flush();
}

void TcpLink::SendGet(Lane lane, uint64_t seq, Buffer buffer, uint64_t offset, std::span<std::byte> to,
                      std::atomic<uint32_t>* pending, uint64_t after) {
  const std::lock_guard lock(mutex_);
  pending->fetch_add(1, std::memory_order_relaxed);
  if (!broken_.empty() || left_) return;  // stays pending; State tells why
  FrameHead head;
  head.kind = FrameKind::kGet;
  head.lane = lane;
  head.buffer = buffer;
  head.seq = seq;
  head.ticket = next_ticket_++;
  head.offset = offset;
  head.bytes = to.size();
  head.after = after;
  tickets_[head.ticket] = {to.data(), to.size(), to.size(), pending};
  Queue(head);
  Flush();
}

void TcpLink::Leave(bool failed) {
  const std::lock_guard lock(mutex_);
  if (left_) return;
  left_ = true;
  tickets_.clear();
  direct_ = nullptr;
  if (!broken_.empty()) return;
  FrameHead head;
  head.kind = FrameKind::kLeave;
  head.failed = failed ? 1 : 0;
  Queue(head);
  Flush();
}

void TcpLink::Linger() {
  const std::lock_guard lock(mutex_);
  lingering_ = true;
  if (!broken_.empty()) {
    ::shutdown(fd_.get(), SHUT_RDWR);
  } else {
    Flush();
  }
}

Posted TcpLink::Peek(Lane lane, uint64_t seq) {
  const std::lock_guard lock(mutex_);
  const Shown& shown = ShownAt(lane, seq);
  if (shown.seq != seq) return {};
  return {&shown.line, shown.body.data() + sizeof(Line)};
}

uint64_t TcpLink::Reached(Lane lane) {
  const std::lock_guard lock(mutex_);
  return lane == Lane::kPair ? reached_pair_ : reached_group_;
}

Status TcpLink::State(bool* gone) {
  const std::lock_guard lock(mutex_);
  *gone = !said_farewell_;
  if (broken_.empty()) return {};
  return Error(Code::kRemoteError, "{}", broken_);
}

bool TcpLink::Newest(Line* line, uint64_t* seq) {
  const std::lock_guard lock(mutex_);
  const Shown& shown = group_[0].seq > group_[1].seq ? group_[0] : group_[1];
  if (shown.seq == 0) return false;
  *line = shown.line;
  *seq = shown.seq;
  return true;
}

std::chrono::milliseconds TcpLink::Silent() {
  const std::lock_guard lock(mutex_);
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - heard_);
}

// Not while something else is under way: that says the same.
void TcpLink::SendAlive() {
  const std::lock_guard lock(mutex_);
  if (!broken_.empty() || left_ || !out_.empty()) return;
  FrameHead head;
  head.kind = FrameKind::kAlive;
  Queue(head);
  Flush();
}

bool TcpLink::WantsToWrite() {
  const std::lock_guard lock(mutex_);
  return !out_.empty();
}

bool TcpLink::TakeNews() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, false);
}

bool TcpLink::OnWritable() {
  const std::lock_guard lock(mutex_);
  Flush();
  return true;
}

// A peer's request: bytes of a buffer that stands behind one of our lines.
bool TcpLink::Serve(const FrameHead& get) {
  if (left_) return true;
  if (get.after > said_group_) {
    if (get.lane == Lane::kGroup && get.after / 4 == get.seq && deferred_.size() < kMostDeferred) {
      deferred_.push_back(get);
      return true;
    }
    Break("it sent a frame that makes no sense");
    return false;
  }
  const Offered& offered = OfferedAt(get.lane, get.seq);
  const void* begin = nullptr;
  uint64_t limit = 0;
  switch (get.buffer) {
    case Buffer::kIn:
      begin = offered.offer.in, limit = offered.in_bytes;
      break;
    case Buffer::kOut:
      begin = offered.offer.out, limit = offered.out_bytes;
      break;
    case Buffer::kPartial:
      begin = offered.offer.partial, limit = offered.offer.partial_bytes;
      break;
  }
  const auto* from = static_cast<const std::byte*>(begin);
  if (offered.seq != get.seq || from == nullptr || get.offset > limit || get.bytes > limit - get.offset) {
    Break("it asked for bytes that were not offered");
    return false;
  }
  for (uint64_t at = 0; at < get.bytes; at += kChunk) {
    FrameHead head;
    head.kind = FrameKind::kData;
    head.ticket = get.ticket;
    head.offset = at;
    head.bytes = std::min(kChunk, get.bytes - at);
    Queue(head);
    Piece& data = out_.emplace_back();
    data.data = from + get.offset + at;
    data.bytes = head.bytes;
  }
  Flush();
  return true;
}

// A line may only follow the one before it, and only where nobody here still reads the one it writes over.
bool TcpLink::MayShow(Lane lane, uint64_t seq) {
  if (seq == 0) return false;
  if (lane == Lane::kPair) return seq == pair_.seq + 1 && said_pair_ / 4 + 1 >= seq;
  return seq == std::max(group_[0].seq, group_[1].seq) + 1 && (seq <= 2 || said_group_ >= (seq - 2) * 4 + 3);
}

bool TcpLink::Begin() {
  body_got_ = 0;
  direct_ = nullptr;
  const uint64_t lanes = static_cast<uint64_t>(head_.lane), buffers = static_cast<uint64_t>(head_.buffer);
  bool sound = lanes <= 1 && buffers <= 2;
  switch (head_.kind) {
    case FrameKind::kLine:
      sound = sound && head_.bytes >= sizeof(Line) && head_.bytes <= kMostBody && MayShow(head_.lane, head_.seq);
      if (sound) body_.resize(head_.bytes);
      break;
    case FrameKind::kData: {
      const auto at = tickets_.find(head_.ticket);
      if (at == tickets_.end()) {  // its call has failed meanwhile
        sound = sound && head_.bytes <= kChunk;
        if (sound) body_.resize(head_.bytes);
        break;
      }
      sound = sound && head_.offset <= at->second.bytes && head_.bytes <= at->second.bytes - head_.offset &&
              head_.bytes <= at->second.left;
      if (sound) direct_ = at->second.to + head_.offset;
      break;
    }
    case FrameKind::kReach:
    case FrameKind::kLeave:
    case FrameKind::kAlive:
      sound = sound && head_.bytes == 0;
      break;
    case FrameKind::kGet:
      return sound ? Serve(head_) : (Break("it sent a frame that makes no sense"), false);
    default:
      sound = false;
  }
  if (!sound) Break("it sent a frame that makes no sense");
  return sound;
}

bool TcpLink::End() {
  news_ = news_ || head_.kind == FrameKind::kLine || head_.kind == FrameKind::kReach;
  switch (head_.kind) {
    case FrameKind::kLine: {
      Shown& shown = ShownAt(head_.lane, head_.seq);
      shown.body.swap(body_);
      std::memcpy(static_cast<void*>(&shown.line), shown.body.data(), sizeof(Line));
      if (shown.line.payload_bytes != shown.body.size() - sizeof(Line)) {
        Break("it sent a line of the wrong length");
        return false;
      }
      shown.seq = head_.seq;
      break;
    }
    case FrameKind::kReach: {
      uint64_t& reached = head_.lane == Lane::kPair ? reached_pair_ : reached_group_;
      reached = std::max(reached, head_.seq);
      break;
    }
    case FrameKind::kData: {
      const auto at = tickets_.find(head_.ticket);
      if (at == tickets_.end()) break;
      at->second.left -= head_.bytes;
      if (at->second.left == 0) {
        news_ = true;
        at->second.pending->fetch_sub(1, std::memory_order_release);  // pairs with the operation's look at it
        tickets_.erase(at);
      }
      break;
    }
    case FrameKind::kLeave:
      said_farewell_ = true;
      Break(head_.failed != 0 ? "gave up after an error of its own" : "has left the communicator");
      break;
    case FrameKind::kGet:
    case FrameKind::kAlive:
      break;
  }
  return true;
}

bool TcpLink::OnReadable() {
  const std::lock_guard lock(mutex_);
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    const bool in_head = head_got_ < sizeof head_;
    std::byte* to = nullptr;
    uint64_t want = 0;
    if (in_head) {
      to = reinterpret_cast<std::byte*>(&head_) + head_got_;
      want = sizeof head_ - head_got_;
    } else {
      if (head_.kind == FrameKind::kData && direct_ == nullptr && body_.size() < head_.bytes) body_.resize(head_.bytes);
      to = (direct_ != nullptr ? direct_ : body_.data()) + body_got_;
      want = head_.bytes - body_got_;
    }
    const ssize_t n = ::recv(fd_.get(), to, want, MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
      Break(std::string("broke its connection: ") + std::strerror(errno));
      return false;
    }
    if (n == 0) {
      Break("closed its connection");
      return false;
    }
    heard_ = std::chrono::steady_clock::now();
    if (in_head) {
      head_got_ += static_cast<uint64_t>(n);
      if (head_got_ < sizeof head_) continue;
      if (!Begin()) return false;
    } else {
      body_got_ += static_cast<uint64_t>(n);
    }
    const uint64_t body = head_.kind == FrameKind::kGet ? 0 : head_.bytes;
    if (body_got_ == body) {
      if (!End()) return false;
      head_got_ = 0;
    }
  }
  return true;
}

TcpPump& TcpPump::Get() {
  static auto* pump = new TcpPump;
  return *pump;
}

Status TcpPump::Add(const std::shared_ptr<TcpLink>& link) {
  const std::lock_guard lock(mutex_);
  if (!epoll_) {
    epoll_.Reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) return Error(Code::kResourceExhausted, "epoll_create1: {}.", std::strerror(errno));
    if (Status started = os::Detach("npu-tcp", [this] { Run(); }); !started.ok()) {
      epoll_.Reset();
      return started;
    }
  }
  links_[link->id()] = link;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = link->id();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, link->fd(), &event) != 0) {
    return Error(Code::kResourceExhausted, "epoll_ctl: {}.", std::strerror(errno));
  }
  return {};
}

void TcpPump::Update(const TcpLink& link, bool write) {
  epoll_event event{};
  event.events = write ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = link.id();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link.fd(), &event);  // fails harmlessly once the pump has dropped the link
}

void TcpPump::Run() {
  epoll_event events[64];
  auto spoke = std::chrono::steady_clock::now();
  while (true) {
    const int n = ::epoll_wait(epoll_.get(), events, 64, static_cast<int>(kAliveEvery.count()));
    if (n < 0 && errno != EINTR) return;
    if (const auto now = std::chrono::steady_clock::now(); now - spoke >= kAliveEvery) {
      spoke = now;
      std::vector<std::shared_ptr<TcpLink>> links;
      {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, link] : links_) links.push_back(link);
      }
      for (const auto& link : links) link->SendAlive();
    }
    bool news = false;
    for (int i = 0; i < n; ++i) {
      std::shared_ptr<TcpLink> link;
      {
        const std::lock_guard lock(mutex_);
        const auto at = links_.find(events[i].data.u64);
        if (at == links_.end()) continue;
        link = at->second;
      }
      bool alive = true;
      if ((events[i].events & EPOLLOUT) != 0) alive = link->OnWritable();
      if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) alive = link->OnReadable() && alive;
      news = link->TakeNews() || news;
      if (!alive) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link->fd(), nullptr);
        const std::lock_guard lock(mutex_);
        links_.erase(link->id());
      }
    }
    if (news) Parking::Get().WakeAll();
  }
}

}  // namespace npu::coll
