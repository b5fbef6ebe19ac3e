// One piece of a card's work, between the card's meter and the faults that were asked for (device/figures,
// device/faults).
//
//   Outcome outcome = RunMetered(pool.meter(), work, {.planned_ns = cost}, give_up, [&] { return task.Run(context); },
//                                [&](const Status& why) { task.Drop(why); });
#pragma once

#include "base/task/task.h"
#include "device/faults/act.h"
#include "device/figures/meter.h"

namespace npu::rt {

struct MeteredRun {
  uint32_t planned_ns = 0;
  bool off_caller = false;  // small enough for its caller's thread, but run by another
};

// `give_up()` is asked while a card hangs: an error ends the wait.
// `refused(why)` is told when a fault keeps the work from running.
template <class GiveUp, class Run, class Refused>
Outcome RunMetered(device::Meter& meter, const TaskWork& work, const MeteredRun& how, GiveUp&& give_up, Run&& run,
                   Refused&& refused) {
  if (!work.counted()) return run();
  const uint64_t began = meter.Begin(work);
  uint32_t planned_ns = how.planned_ns;
  Outcome outcome;
  try {
    if (device::AnyFault(meter)) [[unlikely]] {
      if (Status why = device::BeforeWork(meter, work, give_up); !why.ok()) {
        refused(why);
        outcome = Outcome::Done(std::move(why));
      } else {
        outcome = run();
        planned_ns = device::AfterWork(meter, work, began, planned_ns, give_up);
      }
    } else {
      outcome = run();
    }
  } catch (...) {
    meter.End(work, began, {.failed = true, .planned_ns = planned_ns});
    throw;  // the stream makes a status of it
  }
  meter.End(work, began,
            {.done = outcome.step == Outcome::Step::kDone,
             .failed = !outcome.status.ok(),
             .planned_ns = planned_ns,
             .off_caller = how.off_caller});
  return outcome;
}

}  // namespace npu::rt
