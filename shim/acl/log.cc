// aclAppLog: the client's own lines in the CANN log. Variadic, hence by hand.
#include <cstdarg>
#include <cstdio>
#include <string>

#include "base/log/log.h"
#include "base/status/boundary.h"
#include "gen/calls/acl.h"

namespace {

constexpr size_t kLongestLine = 1024;

std::string Format(const char* format, va_list arguments) {
  char text[kLongestLine];
  const int wanted = std::vsnprintf(text, sizeof text, format, arguments);
  if (wanted < 0) return "(a line that cannot be formatted)";
  std::string line(text);
  if (static_cast<size_t>(wanted) >= sizeof text) line += " [cut]";
  return line;
}

}  // namespace

extern "C" NPU_EXPORT void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
                                     const char* fmt, ...) {
  if (fmt == nullptr || func == nullptr || file == nullptr) return;
  if (logLevel < ACL_DEBUG || logLevel > ACL_ERROR) return;
  const auto level = static_cast<npu::log::Level>(logLevel);
  if (!npu::log::Enabled(level)) return;
  va_list arguments;
  va_start(arguments, fmt);
  npu::boundary::Value<int>("aclAppLog", [&] {
    npu::log::Write(level, "APP", fmt::format("{}: {}", func, Format(fmt, arguments)), {file, static_cast<int>(line)});
    return 0;
  });
  va_end(arguments);
}
