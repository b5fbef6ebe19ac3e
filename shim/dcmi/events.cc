// Fault events: a thread of ours looks at the machine's faults and tells subscribers once for each that comes or goes.
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/os/thread.h"
#include "device/faults/faults.h"
#include "gen/calls/dcmi.h"
#include "shim/dcmi/chips.h"

namespace npu::calls {

using namespace npu::dcmi;  // NOLINT: the adapters of this library

namespace {

constexpr auto kLook = std::chrono::milliseconds(100);
// Bits of dcmi_event_filter::filter_flag, and the kinds of event and assertion.
constexpr unsigned long long kByEvent = 1, kBySeverity = 2, kByNode = 4;
constexpr int kFaultEvent = 0;
constexpr unsigned char kGone = 0, kRaised = 1;

struct Subscription {
  int logic;  // -1: all
  dcmi_event_filter filter;
  dcmi_fault_event_callback handler;
};

class Events {
 public:
  static Events& Get() {
    static auto* events = new Events;  // its thread lives as long as the process
    return *events;
  }

  Status Subscribe(const Subscription& subscription) {
    const std::lock_guard lock(mutex_);
    if (!running_) {
      seen_ = Codes();
      NPU_TRY(os::Detach("npu-events", [this] { Look(); }));
      running_ = true;
    }
    subscriptions_.push_back(subscription);
    return {};
  }

 private:
  using Present = std::map<std::pair<int, uint32_t>, uint32_t>;  // (device, code) → severity

  static Present Codes() {
    Present present;
    Forget();
    auto world = LookAtMachine();
    if (!world.ok()) return present;
    for (const device::CardFigures& card : (*world)->cards) {
      for (const uint32_t code : card.fault_codes) present[{card.logic, code}] = card.health;
    }
    return present;
  }

  [[noreturn]] void Look() {
    for (;;) {
      std::this_thread::sleep_for(kLook);
      const Present now = Codes();
      std::vector<std::pair<dcmi_event, Subscription>> due;
      {
        const std::lock_guard lock(mutex_);
        for (const auto& [what, severity] : now) {
          if (!seen_.contains(what)) Collect(what.first, what.second, severity, kRaised, &due);
        }
        for (const auto& [what, severity] : seen_) {
          if (!now.contains(what)) Collect(what.first, what.second, severity, kGone, &due);
        }
        seen_ = now;
      }
      for (auto& [event, to] : due) to.handler(&event);
    }
  }

  void Collect(int logic, uint32_t code, uint32_t severity, unsigned char assertion,
               std::vector<std::pair<dcmi_event, Subscription>>* due) {
    ++serial_;
    for (const Subscription& to : subscriptions_) {
      if (to.logic >= 0 && to.logic != logic) continue;
      if ((to.filter.filter_flag & kByEvent) != 0 && to.filter.event_id != code) continue;
      if ((to.filter.filter_flag & kBySeverity) != 0 && severity < to.filter.severity) continue;
      if ((to.filter.filter_flag & kByNode) != 0 && to.filter.node_type != 0) continue;
      dcmi_event event{};
      event.type = static_cast<decltype(event.type)>(kFaultEvent);
      dcmi_dms_fault_event fault{};
      fault.event_id = code;
      fault.deviceid = static_cast<unsigned short>(logic);
      fault.severity = static_cast<unsigned char>(severity);
      fault.assertion = assertion;
      fault.event_serial_num = fault.notify_serial_num = static_cast<int>(serial_);
      fault.alarm_raised_time = static_cast<unsigned long long>(
          std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count());
      std::string_view name = "device fault";
      for (const device::FaultFacts& facts : device::AllFaultFacts()) {
        if (facts.dcmi_code == code) name = facts.event;
      }
      FillField(fault.event_name, name);
      static_assert(sizeof fault == sizeof event.event_t);
      std::memcpy(&event.event_t, &fault, sizeof fault);
      due->emplace_back(event, to);
    }
  }

  std::mutex mutex_;
  bool running_ = false;
  uint64_t serial_ = 0;
  Present seen_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace

Status dcmi_subscribe_fault_event(int card_id, int device_id, dcmi_event_filter filter,
                                  dcmi_fault_event_callback handler) {
  constexpr const char* kName = "dcmi_subscribe_fault_event";
  NPU_TRY(NeedPointers(kName, {reinterpret_cast<const void*>(handler)}));
  int logic = -1;
  if (card_id != -1 || device_id != -1) {  // both -1: all chips
    NPU_ASSIGN(const Chip chip, FindChip(kName, card_id, device_id));
    logic = chip.logic;
  } else {
    NPU_TRY(NeedInit(kName));
  }
  return Events::Get().Subscribe({logic, filter, handler});
}

}  // namespace npu::calls
