// A process has one machine, and tests want different ones: ISOLATED runs its body in a process of its own and passes
// failures on. Variables of the environment set before it hold inside.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "device/testing/child.h"

#define ISOLATED(...)                                                  \
  do {                                                                 \
    ::npu::testing::Child isolated([&](::npu::testing::Child::Side&) { \
      [&]() -> void { __VA_ARGS__; }();                                \
      return ::testing::Test::HasFailure() ? 1 : 0;                    \
    });                                                                \
    ASSERT_EQ(isolated.Wait(), 0);                                     \
  } while (false)

namespace npu::testing {

// A machine of its own for each test, with the defaults.
class OwnMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"ANYNPU_CARDS", "ANYNPU_SOC", "ANYNPU_HBM", "ANYNPU_CANN", "ANYNPU_HOST_MEMORY"})
      unsetenv(name);
    setenv("ANYNPU_MACHINE", "test", 1);
  }
  void TearDown() override {
    SetUp();
    unsetenv("ANYNPU_MACHINE");
  }
  ScratchRuntimeDir scratch_;
};

}  // namespace npu::testing
