// `anynpu run --dev-nodes`: a private /dev in which /dev/davinci0 … stand, for programs that count them.
#pragma once

#include "base/status/status.h"

namespace npu::launch {

// Moves this process into a mount namespace of its own whose /dev is the old one plus davinci files (empty, not
// devices). Needs user and mount namespaces, which some containers and kernels forbid; then nothing has changed.
Status PrivateDev(int cards);

}  // namespace npu::launch
