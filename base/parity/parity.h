// Parity mode: what the chosen card would refuse is refused here as well, or listed.
//
//   if (parity::On()) NPU_TRY(parity::Judge({.code = Code::kInvalidParam, .call = op.name, .what = "Tensor self not …",
//                                            .change = "cast self first", .rule = "dtype", .source = "ops-math: …"}));
//
// ANYNPU_PARITY=refuse or warn switches it on when the library is loaded. Judge writes a finding down, with the line of
// Python that made the call, and answers with the failure (refuse) or with success (warn). With ANYNPU_PARITY_REPORT
// each process appends its findings to parity-<pid>.tsv in that folder, which the launcher tells when the command has
// ended; without, each finding is a line on stderr when it is met first. Off, a call pays one load. Any thread;
// fork-safe.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "base/status/status.h"

namespace npu::parity {

enum class Mode : int { kOff, kWarn, kRefuse };

extern std::atomic<Mode> mode;
inline bool On() { return mode.load(std::memory_order_relaxed) != Mode::kOff; }

struct Finding {
  Code code = Code::kInvalidParam;
  std::string_view call;    // the function that would fail
  std::string what;         // the card's text, as far as it is known
  std::string change;       // what to do about it
  std::string_view rule;    // dtype, rank, limit …: a rule of abi/parity.tsv
  std::string_view source;  // where the fact stands
};

Status Judge(const Finding& finding);
// What a page forbids and nobody knows a card to enforce: written down with the line of Python, never refused.
void Doubt(const Finding& finding);
// A call of which something is not known, so that the report can say so: `what` is a rule of abi/parity.tsv. Counted.
void Unknown(std::string_view what, std::string_view call);
// A call that was looked at, whatever came of it.
void Looked();

// Reads the environment again and forgets what was found; for tests.
void Reload();

}  // namespace npu::parity
