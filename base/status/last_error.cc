#include "base/status/last_error.h"

#include <unistd.h>

#include <deque>
#include <utility>

#include "base/log/log.h"
#include "base/status/error_text.h"

namespace npu {
namespace {

using log::kError;
using log::kInfo;
using log::kOff;
using log::kWarning;

constexpr size_t kMessagesKept = 8;

struct Message {
  std::string number;
  std::string time, text, remedy;
  std::string tail;  // "(107001: InvalidDevice)"
  bool operator==(const Message& o) const { return text == o.text && tail == o.tail; }
};

struct ThreadErrors {
  std::deque<Message> queue;  // oldest first
  std::string taken;
  int32_t code = 0;
};

ThreadErrors& Mine() {
  thread_local ThreadErrors errors;
  return errors;
}

bool IsRuntimeCode(int32_t code) {
  const int32_t family = code / 1000;
  return family == 107 || family == 207 || family == 507;
}

// aclnn's numbers.
bool OfOperators(int32_t code) {
  const int32_t family = code / 1000;
  return family == 161 || family == 361 || family == 561;
}
constexpr int32_t kRuntimeFailed = 361001;

struct Numbers {
  std::string_view acl, nn, hccl;
  log::Level level;
};
constexpr Numbers kNumbers[] = {
#define NPU_MESSAGE(acl, nn, hccl, level) {acl, nn, hccl, level},
#include "gen/messages.inc"
#undef NPU_MESSAGE
};

bool Digit(char c) { return c >= '0' && c <= '9'; }

// "EE1001: …": an E, a letter or digit, and four digits.
bool BeginsWithNumber(std::string_view text) {
  return text.size() > 8 && text[0] == 'E' && (Digit(text[1]) || (text[1] >= 'A' && text[1] <= 'Z')) &&
         Digit(text[2]) && Digit(text[3]) && Digit(text[4]) && Digit(text[5]) && text[6] == ':' && text[7] == ' ';
}

bool Inner(std::string_view number) { return number.ends_with("9999"); }

}  // namespace

std::string_view ErrorNumber(const Status& status, int32_t code) {
  if (BeginsWithNumber(status.text())) return status.text().substr(0, 6);
  const Numbers& row = kNumbers[static_cast<size_t>(status.code())];
  if (OfOperators(code)) return row.nn;
  return code > 0 && code < 1000 ? row.hccl : row.acl;
}

std::string_view TextWithoutNumber(std::string_view text) { return BeginsWithNumber(text) ? text.substr(8) : text; }

void RecordError(const Status& status, int32_t code) {
  ThreadErrors& mine = Mine();
  Message message{std::string(ErrorNumber(status, code)), log::TimeText(),
                  std::string(TextWithoutNumber(status.text())), std::string(status.remedy()),
                  fmt::format("({}: {})", code, CodeName(status.code()))};
  if (mine.queue.empty() || mine.queue.back() != message) mine.queue.push_back(std::move(message));
  if (mine.queue.size() > kMessagesKept) mine.queue.pop_front();
  if (IsRuntimeCode(code)) {
    mine.code = code;
  } else if (OfOperators(code)) {
    // torch_npu prints what it finds here in place of the operator's number, so it must be of the same failure: what
    // the runtime answered beneath the operator, or nothing (docs/decisions/log.md).
    const int32_t beneath = AclCode(status.code());
    mine.code = code == kRuntimeFailed && IsRuntimeCode(beneath) ? beneath : 0;
  }
}

const char* TakeErrorMessage() {
  ThreadErrors& mine = Mine();
  if (mine.queue.empty()) return nullptr;
  const std::deque<Message> queue = std::exchange(mine.queue, {});
  const Message& newest = queue.back();
  std::string text;
  if (Inner(newest.number)) text = fmt::format("{}: Inner Error!\n", newest.number);
  text += fmt::format("{}: [PID: {}] {} {}[AnyNPU] {} {}\n", newest.number, getpid(), newest.time,
                      newest.number == "EE1001" ? "The argument is invalid.Reason: " : "", newest.text, newest.tail);
  if (!newest.remedy.empty()) text += fmt::format("        Solution: {}\n", newest.remedy);
  text += "        TraceBack (most recent call last):\n";
  for (const Message& message : queue) text += fmt::format("        {} {}\n", message.text, message.tail);
  mine.taken = std::move(text);
  return mine.taken.c_str();
}

int32_t PeekErrorCode() { return Mine().code; }
int32_t TakeErrorCode() { return std::exchange(Mine().code, 0); }

int LogLevelOf(const Status& status) { return kNumbers[static_cast<size_t>(status.code())].level; }

}  // namespace npu
