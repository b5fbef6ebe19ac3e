#include "coll/transport/tcp.h"

#include "coll/transport/tcp_link.h"

namespace npu::coll {

Result<std::unique_ptr<TcpTransport>> TcpTransport::Make(uint32_t, std::vector<Member> members,
                                                         std::vector<os::Fd> sockets) {
  std::unique_ptr<TcpTransport> transport(new TcpTransport);
  transport->members_ = std::move(members);
  transport->links_.resize(sockets.size());
  for (size_t r = 0; r < sockets.size(); ++r) {
    if (!sockets[r]) continue;
    transport->links_[r] = std::make_shared<TcpLink>(std::move(sockets[r]), TcpPump::Get().NewId());
    NPU_TRY(TcpPump::Get().Add(transport->links_[r]));
  }
  return transport;
}

TcpTransport::~TcpTransport() {
  TcpTransport::Leave(false);
  for (const auto& link : links_) {
    if (link) link->Linger();
  }
}

bool TcpTransport::Post(Lane lane, uint32_t peer, uint64_t seq, const Line& line, std::span<const std::byte> payload,
                        const Offer& offer) {
  if (lane == Lane::kPair) {
    if (links_[peer]->Reached(Lane::kPair) / 4 + 1 != seq) return false;
    links_[peer]->SendLine(lane, seq, line, payload, offer);
    return true;
  }
  for (const auto& link : links_) {
    if (link) link->SendLine(lane, seq, line, payload, offer);
  }
  return true;
}

Posted TcpTransport::Peek(uint32_t peer, Lane lane, uint64_t seq) { return links_[peer]->Peek(lane, seq); }

void TcpTransport::Reach(Lane lane, uint32_t peer, uint64_t step) {
  if (lane == Lane::kPair) return links_[peer]->SendReach(lane, step);
  for (const auto& link : links_) {
    if (link) link->SendReach(lane, step);
  }
}

uint64_t TcpTransport::ReachedBy(uint32_t peer, Lane lane) { return links_[peer]->Reached(lane); }

Result<void*> TcpTransport::Map(uint32_t, const Place&) {
  return Error(Code::kInternal, "Memory behind a connection was to be mapped.");
}

Status TcpTransport::Fetch(uint32_t peer, Lane lane, uint64_t seq, Buffer buffer, uint64_t offset,
                           std::span<std::byte> to, std::atomic<uint32_t>* pending, uint64_t after) {
  if (!to.empty()) links_[peer]->SendGet(lane, seq, buffer, offset, to, pending, after);
  return {};
}

Status TcpTransport::Check(uint32_t peer, bool* gone) {
  const Status state = links_[peer]->State(gone);
  if (state.ok()) return {};
  const Member& member = members_[peer];
  return Error(Code::kRemoteError, "rank {} (pid {}, device {} at {}) {}", peer, member.pid, member.card,
               member.address, state.text());
}

bool TcpTransport::Newest(uint32_t peer, Line* line, uint64_t* seq) { return links_[peer]->Newest(line, seq); }

std::chrono::milliseconds TcpTransport::Silent(uint32_t peer) { return links_[peer]->Silent(); }

void TcpTransport::Leave(bool failed) {
  for (const auto& link : links_) {
    if (link) link->Leave(failed);
  }
}

}  // namespace npu::coll
