// Bounded string functions. Their results are lengths and errno numbers, so no status and no message.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/status/boundary.h"
#include "gen/calls/csec.h"

extern "C" NPU_EXPORT int strcpy_s(char* strDest, size_t destMax, const char* strSrc) {
  if (strDest == nullptr || destMax == 0) return EINVAL;
  if (strSrc == nullptr) {
    strDest[0] = '\0';
    return EINVAL;
  }
  const size_t length = strnlen(strSrc, destMax);
  if (length == destMax) {
    strDest[0] = '\0';
    return ERANGE;
  }
  std::memmove(strDest, strSrc, length + 1);
  return 0;
}

extern "C" NPU_EXPORT int vsnprintf_s(char* strDest, size_t destMax, size_t count, const char* format,
                                      va_list arglist) {
  if (strDest == nullptr || destMax == 0) return -1;
  strDest[0] = '\0';
  if (format == nullptr) return -1;
  const size_t room = count < destMax ? count + 1 : destMax;
  const int length = std::vsnprintf(strDest, room, format, arglist);
  return length < 0 || static_cast<size_t>(length) >= room ? -1 : length;
}

extern "C" NPU_EXPORT int snprintf_s(char* strDest, size_t destMax, size_t count, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf_s(strDest, destMax, count, format, arguments);
  va_end(arguments);
  return length;
}
