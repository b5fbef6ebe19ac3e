// The form of CANN's texts: the number that a failure's text begins with, and the level of its line in the log.
//
//   EE1001: [PID: 4711] 2026-11-30-17:05:11.123.456 The argument is invalid.Reason: [AnyNPU] aclrtSetDevice: … (107001:
//   …)
//           Solution: …
//           TraceBack (most recent call last):
//           aclrtMalloc: … (107000: OutOfRange)
//           aclrtSetDevice: … (107001: InvalidDevice)
//
// On top stands the newest failure, under TraceBack all queued ones in the order of report (docs/decisions/log.md).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status/status.h"

namespace npu {

// CANN's number for a failure, such as EE1001: the one that its text begins with, else that of abi/messages.tsv for the
// library whose number `code` is.
std::string_view ErrorNumber(const Status& status, int32_t code);
// The text of a failure without that number.
std::string_view TextWithoutNumber(std::string_view text);
// The level of its line in the log: a log::Level.
int LogLevelOf(const Status& status);

}  // namespace npu
