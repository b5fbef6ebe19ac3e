#include "tools/check/client.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace npu::check {

std::string Client::Load(const std::string& name, const std::vector<std::string>& places) {
  if (dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  const char* told = dlerror();
  std::string why = told != nullptr ? told : name + " cannot be loaded";
  for (const std::string& place : places) {
    if (dlopen((place + "/" + name).c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  }
  return why;
}

void* Client::Find(const char* name) { return dlsym(RTLD_DEFAULT, name); }

std::string Client::Why(int code, const char* function) const {
  if (code == 0) return {};
  auto* recent = Call<const char*()>("aclGetRecentErrMsg");
  const char* text = recent != nullptr ? recent() : nullptr;
  return fmt::format("{} answers {}{}{}", function, code, text != nullptr ? ": " : "", text != nullptr ? text : "");
}

std::string Begin(Client* client, bool operators) {
  if (std::string why = client->Load("libascendcl.so"); !why.empty()) return why;
  if (operators) {
    for (const char* name : {"libnnopbase.so", "libopapi.so"}) {
      if (std::string why = client->Load(name); !why.empty()) return why;
    }
  }
  return client->Do("aclInit", static_cast<const char*>(nullptr));
}

}  // namespace npu::check
