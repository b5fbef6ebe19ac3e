// Single operators by type name (aclopCompileAndExecute): attributes, operands, and who runs them.
//
// libacl_op_compiler checks a call and makes a Request; libopapi, which has the operators, registers the runner.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/handle/table.h"
#include "base/status/status.h"
#include "tensor/dtype.h"

namespace npu::ops::named {

// Types are kept as numbers.
using Value = std::variant<bool, int64_t, float, std::string, std::vector<bool>, std::vector<int64_t>,
                           std::vector<float>, std::vector<std::string>, std::vector<std::vector<int64_t>>>;

// What stands behind aclopAttr.
struct Attributes {
  std::map<std::string, Value> values;
  void AddRef() { refs.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  std::atomic<uint32_t> refs{1};
};
HandleTable<Attributes>& AttributeSets();

// An input or output: dense in the shape `dims`, at a device address, or a host address for constants. dtype none:
// absent.
struct Operand {
  void* data = nullptr;
  size_t bytes = 0;
  DType dtype = DType::none;
  int32_t format = 2;
  std::vector<int64_t> dims;
};

struct Request {
  std::string_view type;
  std::vector<Operand> in, out;
  const Attributes* attributes = nullptr;
  void* stream = nullptr;
};

using Runner = Status (*)(const Request&);
std::atomic<Runner>& TheRunner();

}  // namespace npu::ops::named
