// What libdcmi.so tells our own tools beyond the public interface: dcmi_get_device_info with main command 9 (memory) and the
// sub command below fills this struct. A real driver refuses the sub command, and the tools then leave the values out.
#pragma once

#include <cstdint>

namespace npu {

inline constexpr unsigned kExtrasMainCommand = 9, kExtrasSubCommand = 0x414E5901;

struct CardExtras {
  uint32_t bytes = sizeof(CardExtras);
  uint32_t link_up = 1;
  uint64_t fragmentation_ppm = 0;  // 1 - largest free range / free memory
  uint64_t link_ups = 0, link_downs = 0;
  uint64_t packets_lost = 0;
  uint64_t sent_bytes = 0, received_bytes = 0;
  uint64_t collectives = 0;
  uint64_t pcie_errors = 0, pcie_lanes = 16;
};

}  // namespace npu
