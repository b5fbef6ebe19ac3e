// What the DCMI adapters share: the machine as it is now, and a chip of it by the two numbers that DCMI uses.
//
//   NPU_ASSIGN(const Chip chip, FindChip("dcmi_get_device_health", card_id, device_id));
//
// A card has as many chips as the profile says dies; logic id, physical id and card * dies + chip are the same number.
// Clients ask value by value: calls that come within a few milliseconds see one snapshot of the machine.
#pragma once

#include <array>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "base/status/status.h"
#include "device/figures/read.h"

namespace npu::dcmi {

using World = std::shared_ptr<const device::MachineFigures>;

// dcmi_init was called. Lists answer kUninitialized before it.
void MarkInitialised();
Status NeedInit(const char* function);

Result<World> LookAtMachine();
// The next look takes the machine as it is then.
void Forget();

struct Chip {
  World world;
  int logic = 0;  // index of world->cards
  const device::Profile& profile() const { return *world->profile; }
  const device::CardFigures& state() const { return world->cards[logic]; }
};
Result<Chip> FindChip(const char* function, int card, int chip);
// A chip that must answer for itself: a lost one does not, a driver that hangs gives up after a while.
Result<Chip> AskChip(const char* function, int card, int chip);
Result<World> FindCard(const char* function, int card);
int CardCount(const device::MachineFigures& world);

Status NeedPointers(const char* function, std::initializer_list<const void*> pointers);

// What keeps this process from the driver: none here (-8005), the cards held by another container (-8020).
Status CheckAccess(const char* function);
// A driver made for another type of chip (ANYNPU_DRIVER=mismatched).
bool DriverMismatched();

// Copies text into a client's buffer of `size` bytes with its NUL; fails when it does not fit.
Status CopyText(const char* function, std::string_view text, char* buffer, size_t size);

// Fills a field of fixed size, NUL padded.
template <class Byte, size_t n>
void FillField(Byte (&field)[n], std::string_view text) {
  std::memset(field, 0, n);
  std::memcpy(field, text.data(), std::min(n - 1, text.size()));
}

}  // namespace npu::dcmi
