// The blob that names a meeting point: what HcclGetRootInfo writes and every rank hands to HcclCommInitRootInfo.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/status/status.h"

namespace npu::coll {

inline constexpr size_t kRootInfoBytes = 4108;

struct MeetingPoint {
  std::string address;
  uint16_t port = 0;
  std::string id;  // of this meeting, and the default name of the communicator

  void Write(char (&blob)[kRootInfoBytes]) const;
  // Refuses a blob that HcclGetRootInfo of this library did not write.
  static Result<MeetingPoint> Read(const char* blob);
};

// 32 hexadecimal digits that no other call has given.
std::string NewId();
// 32 digits that only somebody who knows `token` can work out.
std::string DerivedId(const std::string& token, const std::string& purpose);

}  // namespace npu::coll
