// How this process counts what it does on one card. Streams call it around every task that uses the card.
//
//   Meter& meter = Meter::Of(card);
//   const uint64_t began = meter.Begin(work);       // work: what the task says it does (base/task/task.h)
//   … run …
//   meter.End(work, began, {.done = true});
//
// A pair of calls costs some 100 ns, the operator's own meter (device/meters) included. Threads of the card's streams
// may call at the same time. Without a machine (unit tests of streams) it counts into nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/task/task.h"
#include "device/machine/machine.h"

namespace npu::device {

// Which unit runs an operator, by the function's name: products, convolutions and attention on the cubes.
Unit UnitOfFunction(std::string_view function);
// Whether it is one of those by which optimisers, and hardly anybody else, change parameters.
bool IsUpdate(std::string_view function);

class Meter {
 public:
  static Meter& Of(int card);

  uint64_t Begin(const TaskWork& work);
  struct Ended {
    bool done = true;  // false: it was parked
    bool failed = false;
    uint32_t planned_ns = 0;
    bool off_caller = false;  // small work that an idle stream would have run on its caller's thread, which it did not
  };
  void End(const TaskWork& work, uint64_t began, const Ended& how);
  // Bytes that a collective brought; what it sent is in its TaskWork.
  void Received(uint64_t bytes);

  // The card's state, or null without a machine.
  StateLayout* layout();
  int card() const { return card_; }

 private:
  explicit Meter(int card) : card_(card) {}
  ProcessWork& Work();
  struct Kind {
    uint8_t unit;
    bool update;
  };
  Kind KindOf(const TaskWork& work);

  const int card_;
  std::atomic<Machine*> machine_{nullptr};
  std::atomic<uint64_t> active_since_{0};  // ticks; when the first of the running tasks began
  std::atomic<uint64_t> moved_{0};         // ticks
  std::atomic<uint64_t> monotonic_{0};     // the monotonic clock's lead over the ticks, taken anew in every window
  // Kinds of operators by the address of their name.
  static constexpr size_t kTable = 4096;
  std::array<std::atomic<uintptr_t>, kTable> kinds_{};
};

}  // namespace npu::device
