// Status and Result<T>: how every room reports failure.
//
//   Status Free(void* p) {
//     if (p == nullptr) return Error(Code::kInvalidParam, "aclrtFree: devPtr is null.").Remedy("Pass what aclrtMalloc returned.");
//     NPU_TRY(Release(p));
//     return {};
//   }
//   NPU_ASSIGN(Ref<Stream> stream, FindStream(raw));     // returns the status on failure
//
// A Status is one pointer: null when fine, else code, text and remedy. It is a value: copy it between threads freely.
// Codes and their numbers in each library come from abi/errors.tsv. No exception carries an error between rooms.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "gen/errors.h"  // enum class Code

namespace npu {

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string text) : rep_(std::make_shared<Rep>(Rep{code, std::move(text), {}})) {}

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::kOk; }
  // Cause, naming function, parameter and the values that disagree. Empty when ok.
  std::string_view text() const { return rep_ ? std::string_view(rep_->text) : std::string_view(); }
  std::string_view remedy() const { return rep_ ? std::string_view(rep_->remedy) : std::string_view(); }
  // "text remedy", what a client reads through aclGetRecentErrMsg.
  std::string Message() const;

  // Adds what the caller can do about it. Keeps the first remedy given. `this` must hold the only reference.
  template <class... A>
  Status Remedy(fmt::format_string<A...> format, A&&... args) && {
    if (rep_ && rep_->remedy.empty()) rep_->remedy = fmt::format(format, std::forward<A>(args)...);
    return std::move(*this);
  }

 private:
  struct Rep {
    Code code;
    std::string text;
    std::string remedy;
  };
  std::shared_ptr<Rep> rep_;
};

template <class... A>
Status Error(Code code, fmt::format_string<A...> format, A&&... args) {
  return Status(code, fmt::format(format, std::forward<A>(args)...));
}

// What we owe and do not have. `name` is the ABI name; the text always contains it.
Status NotYet(std::string_view name, std::string_view what = {});
// What the real product refuses as well, or what has no meaning on a CPU.
Status Unsupported(std::string_view name, std::string_view why);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                 // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {          // NOLINT(google-explicit-constructor)
    if (status_.ok()) status_ = Status(Code::kInternal, "A Result was made from an ok Status.");
  }
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  T&& take() { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

// Numbers of a code in each library's own range; see abi/errors.tsv.
int32_t AclCode(Code code);
int32_t NnCode(Code code);
int32_t HcclCode(Code code);
int32_t DcmiCode(Code code);
std::string_view CodeName(Code code);

#define NPU_CONCAT_INNER(a, b) a##b
#define NPU_CONCAT(a, b) NPU_CONCAT_INNER(a, b)
#define NPU_TRY(expr)                                  \
  do {                                                 \
    if (::npu::Status npu_try_ = (expr); !npu_try_.ok()) return npu_try_; \
  } while (false)
#define NPU_ASSIGN(decl, expr)                                             \
  auto NPU_CONCAT(npu_result_, __LINE__) = (expr);                         \
  if (!NPU_CONCAT(npu_result_, __LINE__).ok()) return NPU_CONCAT(npu_result_, __LINE__).status(); \
  decl = NPU_CONCAT(npu_result_, __LINE__).take()

}  // namespace npu
