// The vendor's libraries as any program finds them: by name, through the loader's path; nothing is linked.
//
//   Client client;
//   if (std::string why = client.Load("libascendcl.so"); !why.empty()) …
//   const int code = client.Call<int(int)>("aclrtSetDevice")(0);
//
// A function that no library has is null; Has() asks. Texts of failures carry the library's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace npu::check {

class Client {
 public:
  // Empty when loaded, else the loader's text. `places` are folders to look in when the name is not on the path.
  std::string Load(const std::string& name, const std::vector<std::string>& places = {});

  template <class F>
  F* Call(const char* name) const {
    return reinterpret_cast<F*>(Find(name));
  }
  bool Has(const char* name) const { return Find(name) != nullptr; }

  // "aclrtSetDevice answers 107001: EE1001: …"; empty for code 0.
  std::string Why(int code, const char* function) const;
  // Calls a function that takes numbers and pointers only; a missing one is a failure too.
  template <class... Args>
  std::string Do(const char* function, Args... args) const {
    auto* call = Call<int(Args...)>(function);
    if (call == nullptr) return std::string(function) + " is not exported";
    return Why(call(args...), function);
  }

 private:
  static void* Find(const char* name);
};

// Loads AscendCL and the operator libraries and calls aclInit; the reason when that fails.
std::string Begin(Client* client, bool operators);

}  // namespace npu::check
