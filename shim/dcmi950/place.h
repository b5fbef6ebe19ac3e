// Card and chip behind the one device number of the second generation.
#pragma once

#include "shim/dcmi/chips.h"

namespace npu::dcmi {

struct Place {
  int card = 0, chip = 0;
};
Result<Place> PlaceOf(const char* function, int device);

}  // namespace npu::dcmi
