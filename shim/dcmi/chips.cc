#include "shim/dcmi/chips.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/os/process.h"
#include "gen/fault_errors.h"

namespace npu::dcmi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kFresh = std::chrono::milliseconds(20);

std::atomic<bool> initialised{false};
std::mutex last_mutex;
World last;  // with when it was taken
Clock::time_point taken;

}  // namespace

void MarkInitialised() { initialised.store(true, std::memory_order_relaxed); }

Status NeedInit(const char* function) {
  if (initialised.load(std::memory_order_relaxed)) return {};
  return Error(Code::kUninitialized, "{}: dcmi_init was not called.", function).Remedy("Call dcmi_init first.");
}

void Forget() {
  const std::lock_guard lock(last_mutex);
  last.reset();
}

Result<World> LookAtMachine() {
  const std::lock_guard lock(last_mutex);
  if (last && Clock::now() - taken < kFresh) return last;
  NPU_ASSIGN(const device::MachineConfig config, device::ConfigFromEnvironment());
  NPU_ASSIGN(device::MachineFigures figures, device::ReadFigures(config));
  last = std::make_shared<const device::MachineFigures>(std::move(figures));
  taken = Clock::now();
  return last;
}

int CardCount(const device::MachineFigures& world) {
  const int dies = world.profile->dies_per_card;
  return (static_cast<int>(world.cards.size()) + dies - 1) / dies;
}

Result<World> FindCard(const char* function, int card) {
  NPU_TRY(NeedInit(function));
  NPU_ASSIGN(World world, LookAtMachine());
  if (card >= 0 && card < CardCount(*world)) return world;
  return Error(Code::kInvalidParam, "{}: there is no card {}; machine {} has cards 0 to {}.", function, card,
               world->name, CardCount(*world) - 1)
      .Remedy("Take the ids that dcmi_get_card_list gives.");
}

Result<Chip> FindChip(const char* function, int card, int chip) {
  NPU_ASSIGN(World world, FindCard(function, card));
  const int dies = world->profile->dies_per_card, logic = card * dies + chip;
  if (chip >= 0 && chip < dies && logic < static_cast<int>(world->cards.size())) return Chip{std::move(world), logic};
  return Error(Code::kInvalidParam, "{}: card {} has no chip {}; it has {}.", function, card, chip, dies)
      .Remedy("Take the number of chips from dcmi_get_device_num_in_card.");
}

Result<Chip> AskChip(const char* function, int card, int chip) {
  NPU_ASSIGN(Chip found, FindChip(function, card, chip));
  const device::CardFigures& state = found.state();
  if (!state.present) {
    return Error(fault::kLostHeartbeat, "{}: card {} does not answer: the fault card-lost was injected.", function,
                 card)
        .Remedy("anynpu faults lists what was injected, anynpu clear ends it.");
  }
  if (state.driver_timeout_ms != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(state.driver_timeout_ms));
    return Error(fault::kDriverTimeout,
                 "{}: the driver did not answer within {} ms: the fault driver-timeout was injected.", function,
                 state.driver_timeout_ms)
        .Remedy("anynpu faults lists what was injected, anynpu clear ends it.");
  }
  return found;
}

namespace {
std::string_view DriverSetting() {
  const char* text = std::getenv("ANYNPU_DRIVER");
  return text == nullptr ? std::string_view() : std::string_view(text);
}
}  // namespace

bool DriverMismatched() { return DriverSetting() == "mismatched"; }

Status CheckAccess(const char* function) {
  // A private /dev shows the cards' nodes, and with them the manager's must be there.
  const bool nodes = access("/dev/davinci0", F_OK) == 0, manager = access("/dev/davinci_manager", F_OK) == 0;
  if (DriverSetting() == "absent" || (nodes && !manager)) {
    return Error(Code::kUninitialized, "{}: there is no driver: {}.", function,
                 nodes && !manager ? "/dev/davinci0 exists, but /dev/davinci_manager does not"
                                   : "ANYNPU_DRIVER is absent")
        .Remedy("Give the container /dev/davinci_manager beside the cards' nodes, or unset ANYNPU_DRIVER.");
  }
  NPU_ASSIGN(const World world, LookAtMachine());
  const uint64_t here = os::Self().pid_namespace;
  for (const device::CardFigures& card : world->cards) {
    if (!card.exclusive) continue;
    for (const device::CardProcess& process : card.processes) {
      if (process.pid_namespace == here) continue;
      return Error(fault::kOccupied, "{}: device {} is used by another container (process {} there).", function,
                   card.logic, process.pid)
          .Remedy("End that process, or let the chips be shared: npu-smi set -t device-share -i {} -c 0 -d 1.",
                  card.logic);
    }
  }
  return {};
}

Status NeedPointers(const char* function, std::initializer_list<const void*> pointers) {
  int place = 0;
  for (const void* pointer : pointers) {
    ++place;
    if (!pointer) {
      return Error(Code::kInvalidParam, "{}: result pointer {} is null.", function, place)
          .Remedy("Pass where the result goes.");
    }
  }
  return {};
}

Status CopyText(const char* function, std::string_view text, char* buffer, size_t size) {
  NPU_TRY(NeedPointers(function, {buffer}));
  if (text.size() + 1 > size) {
    return Error(Code::kInvalidParam, "{}: the buffer has {} bytes, the text needs {}.", function, size,
                 text.size() + 1)
        .Remedy("Pass a larger buffer.");
  }
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = 0;
  return {};
}

}  // namespace npu::dcmi
