#include "runtime/callback/exception.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "base/os/thread.h"
#include "runtime/workers/process.h"

namespace npu::rt {
namespace {

// More failures than this that nobody has been told of yet are not kept: the first ones say what is wrong.
constexpr size_t kMostWaiting = 1024;

struct Board {
  std::atomic<bool> anybody{false};
  std::mutex mutex;
  std::condition_variable changed;
  ExceptionFunction first = nullptr;
  std::vector<ExceptionFunction> further;
  std::deque<Exception> waiting;
  bool served = false;

  void Count() { anybody.store(first != nullptr || !further.empty(), std::memory_order_release); }

  [[noreturn]] void Serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return !waiting.empty(); });
      Exception exception = waiting.front();
      waiting.pop_front();
      std::vector<ExceptionFunction> functions = further;
      if (first != nullptr) functions.insert(functions.begin(), first);
      lock.unlock();
      // At exit the interpreter or objects behind a function may be gone.
      for (const ExceptionFunction function : functions) {
        if (!Exiting()) function(&exception);
      }
      lock.lock();
    }
  }
};
Board& board() {
  static auto* b = new Board;
  return *b;
}

}  // namespace

void SetExceptionFunction(ExceptionFunction function) {
  Board& b = board();
  const std::lock_guard lock(b.mutex);
  b.first = function;
  b.Count();
}

Status AddExceptionFunction(ExceptionFunction added, const char* function) {
  Board& b = board();
  const std::lock_guard lock(b.mutex);
  if (std::find(b.further.begin(), b.further.end(), added) != b.further.end()) {
    return Error(Code::kOutOfRange, "{}: this function is registered already.", function).Remedy("Register it once.");
  }
  b.further.push_back(added);
  b.Count();
  return {};
}

Status RemoveExceptionFunction(ExceptionFunction removed, const char* function) {
  Board& b = board();
  const std::lock_guard lock(b.mutex);
  const auto found = std::find(b.further.begin(), b.further.end(), removed);
  if (found == b.further.end()) {
    return Error(Code::kOutOfRange, "{}: this function is not registered.", function)
        .Remedy("Pass what was registered, once.");
  }
  b.further.erase(found);
  b.Count();
  return {};
}

void NoteException(const Exception& exception) {
  Board& b = board();
  if (!b.anybody.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(b.mutex);
  if (b.waiting.size() >= kMostWaiting) return;
  if (!b.served) {
    b.served = os::Detach("npu-exception", [&b] { b.Serve(); }).ok();
    if (!b.served) return;
  }
  b.waiting.push_back(exception);
  b.changed.notify_one();
}

}  // namespace npu::rt
