// Where the ranks of a communicator meet while it is made: rounds in which everybody gives one blob and gets all of
// them.
//
//   server (one thread, where the meeting point is):  Serve(inbox, deadline, …);
//   every rank:  NPU_ASSIGN(Meeting meeting, Meeting::Join(point, rank, ranks, deadline));
//                NPU_ASSIGN(auto all, meeting.Round(AsBytes(mine), Status()));
//
// A rank that gives an error instead of a blob, dies, or does not come in time ends the meeting for all, and every rank
// is told which rank it was and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "coll/comm/settings.h"
#include "coll/net/listener.h"
#include "coll/rendezvous/root_info.h"

namespace npu::coll {

class Meeting {
 public:
  static Result<Meeting> Join(const MeetingPoint& point, const Calling& as, const Settings& settings,
                              std::chrono::nanoseconds patience);
  // Blobs of all ranks, by rank, all of the size of this one. With a failed `mine` all get that failure.
  Result<std::vector<std::byte>> Round(std::span<const std::byte> blob, const Status& mine);
  // Fails when the meeting has ended between two rounds: another rank failed or is gone.
  Status Interrupted();

 private:
  Status Lost(const Status& why) const;
  os::Fd fd_;
  MeetingPoint point_;
  bool ended_ = false;
  uint32_t ranks_ = 0;
  std::chrono::nanoseconds patience_{};
};

// Serves one meeting on a thread of its own, which ends with it. Of a failed one, ranks that come late are told for two
// seconds more.
Status ServeMeeting(std::shared_ptr<Listener> listener, std::string id, const Settings& settings,
                    bool tells_late_comers = true);

}  // namespace npu::coll
