// The one function that returns a std::string of the old ABI: its client is built for it.
#define _GLIBCXX_USE_CXX11_ABI 0
#include <string>

namespace ge {

const char* RecentMessage();

std::string GEGetErrorMsg() {
  const char* text = RecentMessage();
  return text != nullptr ? text : "";
}

}  // namespace ge
