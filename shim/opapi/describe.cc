// anynpu_describe_operators: the whole table as one JSON array, for tests and reference pages. Not part of the vendor's ABI.
#include <string>

#include "ops/core/describe.h"
#include "ops/core/table.h"
#include "shim/opapi/phase.h"

extern "C" NPU_ENTRY const char* anynpu_describe_operators() {
  static const std::string text = [] {
    std::string all = "[\n";
    for (size_t i = 0; i < npu::ops::kOperatorCount; ++i)
      all += npu::ops::Describe(*npu::ops::kOperators[i]) + (i + 1 < npu::ops::kOperatorCount ? ",\n" : "\n");
    return all + "]\n";
  }();
  return text.c_str();
}
