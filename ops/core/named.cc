#include "ops/core/named.h"

namespace npu::ops::named {

namespace {
constexpr uint8_t kAttributesKind = 42;  // base/handle/table.h: one table a kind
}  // namespace

HandleTable<Attributes>& AttributeSets() {
  static auto* table = new HandleTable<Attributes>(kAttributesKind, "attribute set");
  return *table;
}

std::atomic<Runner>& TheRunner() {
  static std::atomic<Runner> runner{nullptr};
  return runner;
}

}  // namespace npu::ops::named
