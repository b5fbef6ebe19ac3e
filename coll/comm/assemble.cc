#include "coll/comm/assemble.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "base/os/process.h"
#include "coll/comm/device_host.h"
#include "coll/comm/legacy.h"
#include "coll/comm/parking.h"
#include "coll/net/listener.h"
#include "coll/rendezvous/meeting.h"
#include "coll/transport/shm.h"
#include "coll/transport/tcp.h"
#include "device/faults/faults.h"

namespace npu::coll {
namespace {

// How long a port that somebody holds is asked for again: the ranks of a job that was just killed still hold theirs.
constexpr std::chrono::seconds kPortPatience(3);
constexpr std::chrono::milliseconds kLook(100);  // how often a rank that waits for callers asks whether the others live

struct BlockOffer {
  int32_t pid = 0;
  int32_t fd = -1;
  uint64_t inode = 0;
};

// Listeners of this process by card: all communicators of a card share one, and the last closes it.
class CardListeners {
 public:
  static CardListeners& Get() {
    static auto* listeners = new CardListeners;
    return *listeners;
  }
  Result<std::shared_ptr<Listener>> Open(int card, const Settings& settings) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<Listener>& known = by_card_[card];
    if (std::shared_ptr<Listener> listener = known.lock()) return listener;
    const Deadline deadline = Deadline::In(kPortPatience);
    while (true) {
      Result<std::shared_ptr<Listener>> opened = Listener::Open(settings.address, settings.card_ports);
      if (opened.ok()) {
        known = *opened;
        return opened;
      }
      if (opened.status().code() != Code::kCommUnavailable || deadline.passed()) {
        return Error(opened.status().code(), "{}", opened.status().text())
            .Remedy("End that process, or set HCCL_NPU_SOCKET_PORT_RANGE to free ports (or auto) for one of the jobs.");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  std::shared_ptr<Listener> Known(int card) {
    const std::lock_guard lock(mutex_);
    return by_card_[card].lock();
  }

 private:
  std::mutex mutex_;
  std::map<int, std::weak_ptr<Listener>> by_card_;
};

// What the ranks learn from each other, and what is made of it.
class Assembly {
 public:
  Assembly(const AssembleRequest& request, device::Machine& machine) : request_(request), machine_(machine) {}

  Result<Ref<Communicator>> Run() {
    parts_.name = request_.name;
    parts_.machine = machine_.name();
    parts_.token = request_.point.id;
    parts_.rank = request_.rank;
    parts_.settings = request_.settings;
    parts_.transport_of.assign(request_.ranks, -1);
    if (request_.ranks == 1) {
      parts_.members = {Myself(0)};
      return Communicator::Make(std::move(parts_));
    }
    NPU_TRY(Parking::Get().StartWatcher());
    NPU_ASSIGN(listener_, CardListeners::Get().Open(request_.card, request_.settings));
    parts_.listener = listener_;
    NPU_ASSIGN(Meeting meeting, Meeting::Join(request_.point,
                                              {request_.rank, request_.ranks, request_.card, false, request_.announced},
                                              request_.settings, request_.patience));

    const Member me = Myself(listener_->port());
    NPU_ASSIGN(const std::vector<std::byte> members, meeting.Round(std::as_bytes(std::span(&me, 1)), LinkIsUp()));
    parts_.members.resize(request_.ranks);
    std::memcpy(static_cast<void*>(parts_.members.data()), members.data(), members.size());
    Status good = CheckMembers();

    FindNeighbours();
    BlockOffer offer;
    if (good.ok()) good = OfferBlock(&offer);
    NPU_ASSIGN(const std::vector<std::byte> offers, meeting.Round(std::as_bytes(std::span(&offer, 1)), good));
    good = JoinBlock(offers);
    if (good.ok()) good = ConnectOthers(meeting);
    const uint64_t ready = 1;
    NPU_TRY(meeting.Round(std::as_bytes(std::span(&ready, 1)), good).status());
    if (block_) block_->CloseFd();
    return Communicator::Make(std::move(parts_));
  }

 private:
  Member Myself(uint16_t port) const {
    Member me;
    const os::ProcessId self = os::Self();
    // Processes of different pid namespaces cannot open each other's descriptors: they count as different hosts.
    me.host_id = os::BootId() ^ (self.pid_namespace * 0x9E3779B97F4A7C15ull);
    me.machine = machine_.nonce();
    me.slot = machine_.slot();
    me.pid = self.pid;
    me.card = request_.card;
    me.port = port;
    std::memcpy(me.address, request_.settings.address.data(),
                std::min(request_.settings.address.size(), sizeof me.address - 1));
    return me;
  }

  // Told in the meeting, so that all ranks learn whose port it is.
  Status LinkIsUp() const {
    if (device::FaultHere(machine_.shared(), device::FaultKind::kLinkDown, request_.card) == nullptr) return {};
    return Error(Code::kLinkError, "EJ0002: the network port of device {} (rank {}, pid {}) is down.", request_.card,
                 request_.rank, ::getpid())
        .Remedy("See `hccn_tool -i {} -link -g`; bring the link up, then start the ranks again.", request_.card);
  }

  // One device, one rank.
  Status CheckMembers() const {
    const auto& members = parts_.members;
    for (size_t a = 0; a < members.size(); ++a) {
      for (size_t b = a + 1; b < members.size(); ++b) {
        const Member &x = members[a], &y = members[b];
        if (x.host_id != y.host_id || x.machine != y.machine || x.card != y.card) continue;
        std::string table;
        for (size_t r = 0; r < members.size() && table.size() < 600; ++r) {
          table += fmt::format("{}{} -> {}", r == 0 ? "" : ", ", r, members[r].card);
        }
        return Error(Code::kInvalidParam,
                     "EI0004: ranks {} (pid {}) and {} (pid {}) are both on device {}; rank -> device: {}.", a, x.pid,
                     b, y.pid, x.card, table)
            .Remedy("Give every rank of the communicator a device of its own (torch.npu.set_device(local_rank)).");
      }
    }
    return {};
  }

  void FindNeighbours() {
    const Member& me = parts_.members[request_.rank];
    for (uint32_t r = 0; r < request_.ranks; ++r) {
      const Member& other = parts_.members[r];
      const bool same = other.host_id == me.host_id && other.machine == me.machine && !request_.settings.tcp_only;
      if (same || r == request_.rank) here_.push_back(r);
    }
    parts_.direct = here_.size() == request_.ranks;
  }

  Status OfferBlock(BlockOffer* offer) {
    if (here_.size() < 2 || here_.front() != request_.rank) return {};
    NPU_ASSIGN(block_, ControlBlock::Make(request_.ranks));
    *offer = {static_cast<int32_t>(::getpid()), block_->fd(), block_->inode()};
    return {};
  }

  Status JoinBlock(std::span<const std::byte> offers) {
    if (here_.size() < 2) return {};
    if (!block_) {
      BlockOffer offer;
      std::memcpy(&offer, offers.data() + here_.front() * sizeof offer, sizeof offer);
      NPU_ASSIGN(block_, ControlBlock::Join(request_.ranks, offer.pid, offer.fd, offer.inode));
    }
    static auto* host = new DeviceHost(machine_);
    parts_.transports.push_back(std::make_unique<ShmTransport>(request_.rank, parts_.members, here_, block_, *host));
    for (const uint32_t r : here_) {
      if (r != request_.rank) parts_.transport_of[r] = 0;
    }
    return {};
  }

  // A connection to every rank that shares no memory with this one: the higher rank calls the lower.
  Status ConnectOthers(Meeting& meeting) {
    if (parts_.direct) return {};
    const Deadline deadline = request_.settings.ConnectDeadline();
    const std::string id = request_.point.id + "/link";
    std::vector<os::Fd> sockets(request_.ranks);
    uint32_t callers = 0;
    const auto far = [&](uint32_t r) { return std::find(here_.begin(), here_.end(), r) == here_.end(); };
    for (uint32_t r = request_.rank + 1; r < request_.ranks; ++r) callers += far(r) ? 1 : 0;
    // Every rank has an address of its own in the name: ranks of one process share a listener.
    Inbox inbox(listener_, fmt::format("{}/{}", id, request_.rank));
    for (uint32_t r = 0; r < request_.rank; ++r) {
      if (!far(r)) continue;
      const Member& other = parts_.members[r];
      Result<os::Fd> called = Error(Code::kCommTimeout, "not called");
      bool quiet = false;
      do {
        NPU_TRY(meeting.Interrupted());
        called = Call(other.address, static_cast<uint16_t>(other.port), fmt::format("{}/{}", id, r),
                      {request_.rank, request_.ranks, request_.card, quiet},
                      Deadline::In(std::min<std::chrono::nanoseconds>(deadline.left(), std::chrono::seconds(2))));
        quiet = true;
      } while (!called.ok() && called.status().code() == Code::kCommTimeout && !deadline.passed());
      if (!called.ok()) {
        return Error(called.status().code(), "{} (rank {} calls rank {}, pid {}, device {})", called.status().text(),
                     request_.rank, r, other.pid, other.card)
            .Remedy("{}", called.status().remedy());
      }
      sockets[r] = called.take();
    }
    for (; callers > 0; --callers) {
      Result<Caller> caller = Error(Code::kCommTimeout, "nobody called");
      do {
        NPU_TRY(meeting.Interrupted());
        caller = inbox.Next(Deadline::In(std::min<std::chrono::nanoseconds>(deadline.left(), kLook)));
      } while (!caller.ok() && !deadline.passed());
      if (!caller.ok()) {
        return Error(Code::kCommTimeout,
                     "EI0015: {} ranks above rank {} did not connect within {} s (HCCL_CONNECT_TIMEOUT).", callers,
                     request_.rank, request_.settings.connect_seconds.count())
            .Remedy(
                "See that the hosts reach each other's ports, and that HCCL_SOCKET_IFNAME names the right interface on "
                "each.");
      }
      if (caller->rank <= request_.rank || caller->rank >= request_.ranks || sockets[caller->rank]) {
        return Error(Code::kCommUnavailable, "A connection claims to be rank {} of {}.", caller->rank, request_.ranks);
      }
      sockets[caller->rank] = std::move(caller->fd);
    }
    NPU_ASSIGN(std::unique_ptr<TcpTransport> tcp,
               TcpTransport::Make(request_.rank, parts_.members, std::move(sockets)));
    parts_.transports.push_back(std::move(tcp));
    for (uint32_t r = 0; r < request_.ranks; ++r) {
      if (far(r)) parts_.transport_of[r] = static_cast<int>(parts_.transports.size()) - 1;
    }
    return {};
  }

  const AssembleRequest& request_;
  device::Machine& machine_;
  std::shared_ptr<Listener> listener_;
  Communicator::Parts parts_;
  std::vector<uint32_t> here_;  // the ranks that share memory with this one, itself included
  std::shared_ptr<ControlBlock> block_;
};

}  // namespace

Result<Ref<Communicator>> Assemble(const AssembleRequest& request) {
  LegacyRulesOfStart();
  NPU_ASSIGN(device::Machine * machine, device::Join());
  return Assembly(request, *machine).Run();
}

Result<MeetingPoint> OpenMeeting(const Settings& settings) {
  Result<std::shared_ptr<Listener>> opened = Listener::Open(settings.address, settings.host_ports);
  if (!opened.ok()) {
    return Error(opened.status().code(), "{}", opened.status().text())
        .Remedy("End that process, or choose other ports with HCCL_IF_BASE_PORT or HCCL_HOST_SOCKET_PORT_RANGE.");
  }
  MeetingPoint point{settings.address, (*opened)->port(), NewId()};
  (*opened)->ServeOnly(point.id);
  NPU_TRY(ServeMeeting(*opened, point.id, settings));
  return point;
}

Status OpenMeetingAt(const MeetingPoint& point, const Settings& settings) {
  const uint16_t ports[] = {point.port};
  NPU_ASSIGN(std::shared_ptr<Listener> listener, Listener::Open(point.address, ports));
  listener->ServeOnly(point.id);
  // The next meeting of this table wants the same port: it is given back at once.
  return ServeMeeting(std::move(listener), point.id, settings, /*tells_late_comers=*/false);
}

Status ServeAt(const Communicator& parent, const std::string& id) {
  std::shared_ptr<Listener> listener = CardListeners::Get().Known(parent.card());
  if (!listener) return Error(Code::kInternal, "The listener of device {} is gone.", parent.card());
  return ServeMeeting(std::move(listener), id, parent.settings());
}

Result<std::vector<std::byte>> Exchange(const Communicator& comm, std::span<const uint32_t> ranks,
                                        const std::string& about, std::span<const std::byte> blob) {
  const Member& leader = comm.member(ranks.front());
  const MeetingPoint point{leader.address, static_cast<uint16_t>(leader.port),
                           DerivedId(comm.token(), fmt::format("{}/{}", comm.name(), about))};
  if (ranks.front() == comm.rank()) NPU_TRY(ServeAt(comm, point.id));
  const auto place = static_cast<uint32_t>(std::find(ranks.begin(), ranks.end(), comm.rank()) - ranks.begin());
  NPU_ASSIGN(Meeting meeting, Meeting::Join(point, {place, static_cast<uint32_t>(ranks.size()), comm.card()},
                                            comm.settings(), std::chrono::seconds(20)));
  return meeting.Round(blob, {});
}

}  // namespace npu::coll
