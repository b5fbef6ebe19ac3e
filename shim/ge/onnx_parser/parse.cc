// Reading ONNX models: owed.
#include "shim/ge/ge.h"

namespace ge {

Status aclgrphParseONNXFromMem(const char*, size_t, const Options&, Graph&) {
  return Owed("ge::aclgrphParseONNXFromMem");
}

}  // namespace ge
