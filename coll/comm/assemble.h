// Making a communicator: the ranks meet, learn of each other, and connect by memory or by sockets.
#pragma once

#include <chrono>

#include "coll/comm/communicator.h"
#include "coll/rendezvous/root_info.h"

namespace npu::coll {

struct AssembleRequest {
  MeetingPoint point;
  uint32_t rank = 0, ranks = 1;
  int card = 0;  // physical
  std::string name;
  Settings settings;
  // How long a meeting point that does not answer is tried: its blob was given away after it listened, a rank table was
  // not.
  std::chrono::nanoseconds patience = std::chrono::seconds(20);
  bool announced = true;  // its blob was given away by whoever listens there
};
// Blocks until all ranks have come, at most the connect limit. Needs no context, so several may run in one process.
Result<Ref<Communicator>> Assemble(const AssembleRequest& request);

// Opens a meeting of a given id at one address and port: for rank tables, where every rank works these out by itself.
Status OpenMeetingAt(const MeetingPoint& point, const Settings& settings);
// Opens a meeting on this host and serves it: for HcclGetRootInfo.
Result<MeetingPoint> OpenMeeting(const Settings& settings);
// Serves a meeting of that id at the listener of a card's communicator: for sub communicators. The other ranks find it
// at Member::address and port.
Status ServeAt(const Communicator& parent, const std::string& id);

// Blobs of some ranks of a communicator, in their order, exchanged outside its streams: as many times as many bytes as
// this one has, else it fails. `ranks` is the same ascending list on each of them, `about` the same text and new each
// time. Blocks until all have come, at most the connect limit.
Result<std::vector<std::byte>> Exchange(const Communicator& comm, std::span<const uint32_t> ranks,
                                        const std::string& about, std::span<const std::byte> blob);

}  // namespace npu::coll
