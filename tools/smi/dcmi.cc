#include "tools/smi/dcmi.h"

#include <filesystem>
#include <string>

namespace npu::smi {

int Dcmi::Open() {
  library_ = dlopen("libdcmi.so", RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    // Called by its path with no library path set: the library lies beside us in the install tree.
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    library_ = dlopen((self.parent_path().parent_path() / "lib64" / "libdcmi.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  return library_ ? Call("dcmi_init", static_cast<decltype(&::dcmi_init)>(nullptr)) : kInner;
}

}  // namespace npu::smi
