#include "shim/dcmi/chips.h"

#include <atomic>
#include <chrono>
#include <mutex>

namespace npu::dcmi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kFresh = std::chrono::milliseconds(20);

std::atomic<bool> initialised{false};

}  // namespace

void MarkInitialised() { initialised.store(true, std::memory_order_relaxed); }

Status NeedInit(const char* function) {
  if (initialised.load(std::memory_order_relaxed)) return {};
  return Error(Code::kUninitialized, "{}: dcmi_init was not called.", function).Remedy("Call dcmi_init first.");
}

Result<World> LookAtMachine() {
  static std::mutex mutex;
  static World last;
  static Clock::time_point taken;
  const std::lock_guard lock(mutex);
  if (last && Clock::now() - taken < kFresh) return last;
  NPU_ASSIGN(const device::MachineConfig config, device::ConfigFromEnvironment());
  NPU_ASSIGN(device::MachineSnapshot snapshot, device::Snapshot(config));
  last = std::make_shared<const device::MachineSnapshot>(std::move(snapshot));
  taken = Clock::now();
  return last;
}

int CardCount(const device::MachineSnapshot& world) {
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
