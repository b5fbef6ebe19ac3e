// What ranks send each other while they come together and while they work: blobs, hellos, frames. A stranger on the
// port may get an error or be hung up on; the ranks beside it go on.
#include <sys/socket.h>

#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "coll/net/listener.h"
#include "coll/rendezvous/meeting.h"
#include "coll/rendezvous/root_info.h"
#include "coll/transport/tcp_link.h"
#include "tests/fuzz/fuzz.h"

namespace npu::fuzz {
namespace {

using namespace coll;
using namespace std::chrono_literals;

Settings Quick() {
  Settings settings;
  settings.connect_timeout = 30s;
  settings.connect_seconds = 30s;
  settings.address = "127.0.0.1";
  return settings;
}

TEST(RootInfo, SpoiltBlobsAreRefusedOrReadWhole) {
  Source source;
  for (int round = 0; round < Rounds() * 200; ++round) {
    char blob[kRootInfoBytes];
    MeetingPoint{"127.0.0.1", static_cast<uint16_t>(1 + source.Below(65535)), NewId()}.Write(blob);
    if (source.Chance(90)) source.Spoil(blob, sizeof blob);
    if (source.Chance(10)) std::memset(blob + source.Below(100), 'A', 100);  // texts that do not end
    auto read = MeetingPoint::Read(blob);
    if (!read.ok()) {
      EXPECT_FALSE(read.status().remedy().empty());
      continue;
    }
    EXPECT_LT(read->address.size(), 64u);
    EXPECT_LT(read->id.size(), 64u);
    EXPECT_NE(read->port, 0);
    char again[kRootInfoBytes];
    read->Write(again);
    EXPECT_EQ(MeetingPoint::Read(again)->id, read->id);
  }
}

// A connection that says something a rank might say, then nonsense.
void Disturb(const MeetingPoint& point, Source& source) {
  auto socket = Connect(point.address, point.port, Deadline::In(2s));
  if (!socket.ok()) return;
  Hello hello;
  std::memcpy(hello.id.data(), point.id.data(), std::min(point.id.size(), hello.id.size() - 1));
  if (source.Chance(60)) hello.id[0] = '?';  // for somebody else's meeting
  hello.rank = static_cast<uint32_t>(source.Word());
  hello.ranks = static_cast<uint32_t>(source.Word());
  if (source.Chance(50)) source.Spoil(&hello, sizeof hello);
  std::vector<std::byte> bytes(sizeof hello + source.Below(300));
  std::memcpy(bytes.data(), &hello, sizeof hello);
  if (bytes.size() > sizeof hello) source.Spoil(bytes.data() + sizeof hello, bytes.size() - sizeof hello);
  if (source.Chance(20)) bytes.resize(source.Below(bytes.size()));
  ::send(socket->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

TEST(Meeting, StrangersOnThePortDisturbNobodyElsesMeeting) {
  Source source;
  const uint16_t any[] = {0};
  auto listener = Listener::Open("127.0.0.1", any);
  ASSERT_TRUE(listener.ok());
  for (int round = 0; round < Rounds(); ++round) {
    const MeetingPoint ours{"127.0.0.1", (*listener)->port(), NewId()},
        theirs{"127.0.0.1", (*listener)->port(), NewId()};
    ASSERT_TRUE(ServeMeeting(*listener, ours.id, Quick()).ok());
    Settings short_lived = Quick();
    short_lived.connect_timeout = 100ms;
    ASSERT_TRUE(ServeMeeting(*listener, theirs.id, short_lived).ok());
    for (int i = 0; i < 3; ++i) Disturb(theirs, source);
    const uint32_t ranks = 2 + static_cast<uint32_t>(source.Below(3));
    std::vector<std::thread> threads;
    std::vector<std::vector<std::byte>> got(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        auto meeting = coll::Meeting::Join(ours, {rank, ranks}, Quick(), 5s);
        if (!meeting.ok()) return;
        const std::vector<std::byte> mine(16, static_cast<std::byte>(rank + 1));
        if (auto all = meeting->Round(mine, Status()); all.ok()) got[rank] = *all;
      });
    }
    for (int i = 0; i < 3; ++i) Disturb(theirs, source);
    for (auto& thread : threads) thread.join();
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      ASSERT_EQ(got[rank].size(), size_t{16} * ranks) << "round " << round;
      for (uint32_t r = 0; r < ranks; ++r) EXPECT_EQ(got[rank][16 * r], static_cast<std::byte>(r + 1));
    }
  }
}

TEST(Meeting, ASpoiltRankEndsItsMeetingForAllWithAText) {
  Source source;
  const uint16_t any[] = {0};
  auto listener = Listener::Open("127.0.0.1", any);
  ASSERT_TRUE(listener.ok());
  for (int round = 0; round < Rounds(); ++round) {
    const MeetingPoint point{"127.0.0.1", (*listener)->port(), NewId()};
    Settings settings = Quick();
    settings.connect_timeout = 300ms;
    ASSERT_TRUE(ServeMeeting(*listener, point.id, settings).ok());
    std::thread spoilt([&] {
      auto socket = Call(point.address, point.port, point.id, {1, 2}, Deadline::In(2s));
      if (!socket.ok()) return;
      std::vector<std::byte> bytes(8 + source.Below(64));
      source.Spoil(bytes.data(), bytes.size());
      ::send(socket->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (source.Chance(50)) std::this_thread::sleep_for(5ms);
    });
    auto meeting = coll::Meeting::Join(point, {0, 2}, settings, 1s);
    ASSERT_TRUE(meeting.ok());
    const std::vector<std::byte> mine(16);
    auto all = meeting->Round(mine, Status());
    if (!all.ok()) {
      EXPECT_FALSE(all.status().text().empty());
    } else {
      EXPECT_EQ(all->size(), 32u);
    }
    spoilt.join();
  }
}

// The answer of a server that is none.
TEST(Meeting, ASpoiltServerIsAnError) {
  Source source;
  const uint16_t any[] = {0};
  for (int round = 0; round < Rounds(); ++round) {
    auto listening = Listen("127.0.0.1", any);
    ASSERT_TRUE(listening.ok());
    std::thread server([&] {
      const int fd = ::accept(listening->fd.get(), nullptr, nullptr);
      std::vector<std::byte> bytes(8 + source.Below(200));
      source.Spoil(bytes.data(), bytes.size());
      ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ::close(fd);
    });
    Settings settings = Quick();
    settings.connect_timeout = 300ms;
    auto meeting = coll::Meeting::Join({"127.0.0.1", listening->port, NewId()}, {0, 2}, settings, 1s);
    ASSERT_TRUE(meeting.ok());
    const std::vector<std::byte> mine(source.Below(100));
    auto all = meeting->Round(mine, Status());
    if (all.ok()) {
      EXPECT_EQ(all->size(), 2 * mine.size());
    }
    server.join();
  }
}

// Root info of another job, or of one that is over: whoever listens there says so at once.
TEST(Meeting, TheBlobOfAnotherJobIsRefused) {
  const uint16_t any[] = {0};
  auto listener = Listener::Open("127.0.0.1", any);
  ASSERT_TRUE(listener.ok());
  (*listener)->ServeOnly(NewId());
  auto meeting = coll::Meeting::Join({"127.0.0.1", (*listener)->port(), NewId()}, {1, 2}, Quick(), 1s);
  ASSERT_TRUE(meeting.ok());
  const std::vector<std::byte> mine(16);
  const auto start = std::chrono::steady_clock::now();
  auto all = meeting->Round(mine, Status());
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.status().code(), Code::kInvalidParam);
  EXPECT_NE(std::string(all.status().text()).find("rootInfo"), std::string::npos) << all.status().Message();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);  // a hang
}

TEST(Meeting, AnotherVersionIsNamed) {
  const uint16_t any[] = {0};
  auto listener = Listener::Open("127.0.0.1", any);
  ASSERT_TRUE(listener.ok());
  const MeetingPoint point{"127.0.0.1", (*listener)->port(), NewId()};
  ASSERT_TRUE(ServeMeeting(*listener, point.id, Quick()).ok());
  auto meeting = coll::Meeting::Join(point, {0, 2}, Quick(), 1s);
  ASSERT_TRUE(meeting.ok());
  auto other = Connect(point.address, point.port, Deadline::In(2s));
  ASSERT_TRUE(other.ok());
  Hello hello;
  std::memcpy(hello.id.data(), point.id.data(), point.id.size());
  hello.version = Hello::kVersion + 1;
  hello.rank = 1, hello.ranks = 2, hello.pid = 4711;
  ::send(other->get(), &hello, sizeof hello, MSG_NOSIGNAL);
  const std::vector<std::byte> mine(16);
  auto all = meeting->Round(mine, Status());
  ASSERT_FALSE(all.ok());
  const std::string text(all.status().text());
  EXPECT_NE(text.find("EI0008"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 1 (pid 4711)"), std::string::npos) << text;
}

// A line that stands is not written over while this side may still read it.
TEST(TcpLink, LinesComeInOrderOnly) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  coll::TcpLink link(os::Fd(ends[0]), 1);
  os::Fd peer(ends[1]);
  const auto show = [&](uint64_t seq) {
    FrameHead head;
    head.kind = FrameKind::kLine;
    head.seq = seq;
    Line line;
    head.bytes = sizeof line;
    ::send(peer.get(), &head, sizeof head, MSG_NOSIGNAL);
    ::send(peer.get(), &line, sizeof line, MSG_NOSIGNAL);
    return link.OnReadable();
  };
  EXPECT_TRUE(show(1));
  EXPECT_TRUE(show(2));
  EXPECT_NE(link.Peek(Lane::kGroup, 1).line, nullptr);
  link.SendReach(Lane::kGroup, 1 * 4 + 3);
  EXPECT_TRUE(show(3));
  EXPECT_FALSE(show(4));  // call 2 has not ended here
}

// Frames of a peer: what was offered is all it gets, and it writes only where a fetch asked for.
TEST(TcpLink, SpoiltFramesEndTheConnection) {
  Source source;
  for (int round = 0; round < Rounds() * 10; ++round) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    coll::TcpLink link(os::Fd(ends[0]), 1);
    os::Fd peer(ends[1]);
    constexpr size_t kWanted = 4096, kGuard = 512;
    std::vector<std::byte> offered(4096, std::byte{7}), around(kWanted + 2 * kGuard);
    const std::span<std::byte> wanted = std::span(around).subspan(kGuard, kWanted);
    Line line;
    line.in.bytes = line.out.bytes = offered.size();
    Offer offer;
    offer.in = offered.data();
    link.SendLine(Lane::kGroup, 1, line, {}, offer);
    std::atomic<uint32_t> pending{1};
    link.SendGet(Lane::kGroup, 1, Buffer::kIn, 0, wanted, &pending);
    for (int frames = 0; frames < 6; ++frames) {
      FrameHead head;
      head.kind = static_cast<FrameKind>(source.Chance(90) ? source.Below(6) : source.Word());
      head.lane = static_cast<Lane>(source.Chance(90) ? source.Below(2) : source.Word());
      head.seq = source.Chance(70) ? 1 : source.Word();
      head.ticket = source.Chance(70) ? 1 : source.Word();
      head.offset = source.Chance(50) ? source.Below(5000) : source.Word();
      head.bytes = source.Chance(50) ? source.Below(5000) : source.Word();
      if (source.Chance(10)) source.Spoil(&head, sizeof head);
      ::send(peer.get(), &head, sizeof head, MSG_NOSIGNAL | MSG_DONTWAIT);
      std::vector<std::byte> body(std::min<uint64_t>(head.bytes, 8000));
      if (!body.empty()) source.Spoil(body.data(), body.size());
      ::send(peer.get(), body.data(), body.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (!link.OnReadable()) break;
      if (link.WantsToWrite() && !link.OnWritable()) break;
      std::byte sink[65536];
      while (::recv(peer.get(), sink, sizeof sink, MSG_DONTWAIT) > 0) {
      }
    }
    link.Leave(false);
    for (size_t i = 0; i < kGuard; ++i)
      ASSERT_TRUE(around[i] == std::byte{0} && around[kGuard + kWanted + i] == std::byte{0});
  }
}

}  // namespace
}  // namespace npu::fuzz
