// Reads the machine through libdcmi.so.
#pragma once

#include <vector>

#include "base/extras/card_extras.h"
#include "tools/smi/dcmi.h"
#include "tools/smi/snapshot.h"

namespace npu::smi {

struct ChipId {
  int card = 0, chip = 0;
};

// All chips in card order; a DCMI code when the cards cannot be listed.
int ListChips(const Dcmi& dcmi, std::vector<ChipId>& chips);
Chip ReadChip(const Dcmi& dcmi, ChipId id);
int ReadSnapshot(const Dcmi& dcmi, Snapshot& snapshot);

std::string DriverVersion(const Dcmi& dcmi);
std::string BusId(const Dcmi& dcmi, ChipId id);
// One of the percentages of dcmi_get_device_utilization_rate.
std::optional<unsigned> Utilization(const Dcmi& dcmi, ChipId id, int kind);

// What only libraries of ours tell; false when the driver does not.
bool ReadExtras(const Dcmi& dcmi, ChipId id, CardExtras* extras);

// A field of fixed size that is NUL padded.
template <class Char, size_t n>
std::string Text(const Char (&field)[n]) {
  std::string text(reinterpret_cast<const char*>(field), n);
  return text.substr(0, text.find('\0'));
}

// The value of a call that fills one number, absent when the call fails.
template <class T>
std::optional<T> If(int code, const T& value) {
  return code == 0 ? std::optional<T>(value) : std::nullopt;
}

}  // namespace npu::smi
