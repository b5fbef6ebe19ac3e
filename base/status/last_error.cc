#include "base/status/last_error.h"

#include <deque>
#include <string>

namespace npu {
namespace {

constexpr size_t kMessagesKept = 4;

struct ThreadErrors {
  std::deque<std::string> queue;  // newest first
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

}  // namespace

void RecordError(const Status& status, int32_t code) {
  ThreadErrors& mine = Mine();
  std::string text = fmt::format("[AnyNPU] {} ({}: {})", status.Message(), code, CodeName(status.code()));
  if (mine.queue.empty() || mine.queue.front() != text) mine.queue.push_front(std::move(text));
  if (mine.queue.size() > kMessagesKept) mine.queue.pop_back();
  if (IsRuntimeCode(code)) mine.code = code;
}

const char* TakeErrorMessage() {
  ThreadErrors& mine = Mine();
  if (mine.queue.empty()) return nullptr;
  mine.taken = std::move(mine.queue.front());
  mine.queue.pop_front();
  for (const std::string& older : mine.queue) mine.taken += "\n  before that: " + older;
  mine.queue.clear();
  return mine.taken.c_str();
}

int32_t PeekErrorCode() { return Mine().code; }
int32_t TakeErrorCode() { return std::exchange(Mine().code, 0); }

}  // namespace npu
