// libdcmi.so, found by name as any monitor finds it; a function that the library does not have answers "not supported".
//
//   Dcmi dcmi;
//   if (int code = dcmi.Open()) ...
//   unsigned health;
//   int code = dcmi.Call("dcmi_get_device_health", &dcmi_get_device_health, card, chip, &health);   // by NPU_DCMI
//   below
#pragma once

#include <dlfcn.h>

#include <utility>

#include "dcmi_interface_api.h"

namespace npu::smi {

inline constexpr int kInvalid = -8001, kInner = -8005, kNoDevice = -8008, kNotSupported = -8255;

class Dcmi {
 public:
  // Loads the library and calls dcmi_init; its code, or kInner when there is no library.
  int Open();
  bool Loaded() const { return library_ != nullptr; }

  template <class Function, class... Args>
  int Call(const char* name, Function, Args&&... args) const {
    const auto function = library_ ? reinterpret_cast<Function>(dlsym(library_, name)) : nullptr;
    return function ? function(std::forward<Args>(args)...) : kNotSupported;
  }

  // The driver speaks dcmiv2_*: devices are listed by one number.
  bool second() const { return second_; }

 private:
  void* library_ = nullptr;
  bool second_ = false;
};

// The declaration gives the type, the library the function: nothing is linked.
#define NPU_DCMI(dcmi, function, ...) (dcmi).Call(#function, static_cast<decltype(&::function)>(nullptr), __VA_ARGS__)

}  // namespace npu::smi
