#include "tools/smi/dcmi.h"

#include <filesystem>
#include <string>

namespace npu::smi {

int Dcmi::Open() {
  library_ = dlopen("libdcmi.so", RTLD_NOW | RTLD_LOCAL);
  // Called by its path with no library path set: the install tree is around us, or beside an installed program.
  std::error_code error;
  const std::filesystem::path prefix =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  for (const char* folder : {"lib64", "share/anynpu/lib64"}) {
    if (!library_) library_ = dlopen((prefix / folder / "libdcmi.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!library_) return kInner;
  const int code = Call("dcmi_init", static_cast<decltype(&::dcmi_init)>(nullptr));
  if (code != kNotSupported) return code;
  // Drivers of the 950 answer the second generation only.
  using Init = int (*)();
  second_ = dlsym(library_, "dcmiv2_init") != nullptr;
  return second_ ? Call("dcmiv2_init", static_cast<Init>(nullptr)) : code;
}

}  // namespace npu::smi
