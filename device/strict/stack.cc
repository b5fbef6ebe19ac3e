#include "device/strict/stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

namespace npu::strict {
namespace {

std::string_view FileOf(const Dl_info& info) {
  if (info.dli_fname == nullptr) return {};
  const char* slash = std::strrchr(info.dli_fname, '/');
  return slash != nullptr ? slash + 1 : info.dli_fname;
}

// The folder of our libraries: frames there are ours.
std::string_view OurFolder() {
  static const std::string folder = [] {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&Stack::Here), &info) == 0 || info.dli_fname == nullptr) return std::string();
    char* real = realpath(info.dli_fname, nullptr);
    std::string path = real != nullptr ? real : info.dli_fname;
    std::free(real);
    if (path.rfind("/lib/") == std::string::npos && path.find("libnpu_core") == std::string::npos) return std::string();
    return path.substr(0, path.rfind("/anynpu/lib/") == std::string::npos ? path.rfind('/') : path.rfind("/anynpu/lib/"));
  }();
  return folder;
}

bool Ours(void* code) {
  Dl_info info{};
  if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view folder = OurFolder();
  if (folder.empty()) {  // linked into one program: by name
    return info.dli_sname != nullptr && (std::strncmp(info.dli_sname, "acl", 3) == 0 || std::strstr(info.dli_sname, "3npu") != nullptr);
  }
  if (std::strncmp(info.dli_fname, folder.data(), folder.size()) == 0) return true;
  static thread_local std::pair<const char*, bool> last{nullptr, false};
  if (last.first == info.dli_fname) return last.second;
  char* real = realpath(info.dli_fname, nullptr);
  const bool ours = real != nullptr && std::strncmp(real, folder.data(), folder.size()) == 0;
  std::free(real);
  last = {info.dli_fname, ours};
  return ours;
}

}  // namespace

Stack Stack::Here() {
  Stack stack;
  stack.depth = backtrace(stack.at.data(), kDepth);
  return stack;
}

bool Stack::HereThrough(const char* name) {
  std::array<void*, 96> deep{};
  const int depth = backtrace(deep.data(), static_cast<int>(deep.size()));
  for (int i = 0; i < depth; ++i) {
    Dl_info info{};
    if (dladdr(deep[i], &info) != 0 && info.dli_sname != nullptr && std::strstr(info.dli_sname, name) != nullptr) return true;
  }
  return false;
}

void* Stack::Caller() const {
  for (int i = 0; i < depth; ++i) {
    if (!Ours(at[i])) return at[i];
  }
  return nullptr;
}

bool OfTorch(void* code) {
  Dl_info info{};
  return code != nullptr && dladdr(code, &info) != 0 && FileOf(info).starts_with("libtorch_npu");
}

std::string Stack::Tell(const char* indent, int most) const {
  std::string text;
  int told = 0;
  for (int i = 0; i < depth && told < most; ++i) {
    if (told == 0 && Ours(at[i])) continue;
    // A return address stands behind its call.
    void* const code = static_cast<char*>(at[i]) - 1;
    Dl_info info{};
    if (dladdr(code, &info) == 0) {
      text += fmt::format("{}{}\n", indent, at[i]);
    } else {
      const auto offset = static_cast<char*>(at[i]) - static_cast<char*>(info.dli_fbase);
      std::string name = "?";
      if (info.dli_sname != nullptr) {
        int status = 0;
        const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), std::free);
        name = status == 0 ? plain.get() : info.dli_sname;
        if (name.size() > 120) name.resize(120);
      }
      text += fmt::format("{}{}  ({}+{:#x})\n", indent, name, info.dli_fname != nullptr ? info.dli_fname : "?", offset);
    }
    ++told;
  }
  return text;
}

}  // namespace npu::strict
