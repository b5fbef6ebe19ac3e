#include "runtime/context/visible.h"

#include <algorithm>
#include <string_view>

namespace npu::rt {
namespace {
constexpr int kMostDigits = 6;

// The id that starts `text`, as far as digits go; negative when there is none.
int LeadingId(std::string_view text) {
  int id = -1;
  for (size_t i = 0; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    if (i == kMostDigits) return -1;
    id = std::max(id, 0) * 10 + (text[i] - '0');
  }
  return id;
}
bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}
}  // namespace

Visible ReadVisible(const char* value, int cards) {
  Visible visible;
  if (value == nullptr) {
    for (int i = 0; i < cards; ++i) visible.physical.push_back(i);
    if (cards == 0) visible.problem = Error(Code::kNoDevice, "This machine has no card.");
    return visible;
  }
  visible.set = true;
  visible.value = value;
  bool ascending = true;
  for (std::string_view rest = visible.value; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string_view element = rest.substr(0, comma);
    const int id = LeadingId(element);
    if (id < 0 || id >= cards) {
      visible.stopped_at = element;
      break;
    }
    if (!visible.physical.empty() && id <= visible.physical.back()) ascending = false;
    visible.physical.push_back(id);
    if (!AllDigits(element)) {  // the id counts, what follows it ends the list
      visible.stopped_at = element;
      break;
    }
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  if (!ascending) {
    visible.physical.clear();
    visible.problem = Error(Code::kNoDevice,
                            "EE1001: ASCEND_RT_VISIBLE_DEVICES is \"{}\", which is not in ascending order, so no card is visible.",
                            visible.value)
                          .Remedy("List each card once, in ascending order, for example \"0,1\".");
  } else if (visible.physical.empty()) {
    visible.problem =
        Error(Code::kNoDevice, "EE1001: ASCEND_RT_VISIBLE_DEVICES is \"{}\", which names no card of this machine (0 to {}).",
              visible.value, cards - 1)
            .Remedy("Set it to ids of the machine's cards, such as \"0\", or unset it to see all.");
  }
  return visible;
}

Status Visible::Explain(int logical, const char* function) const {
  const size_t count = physical.size();
  std::string why = fmt::format("EE1001: {}: invalid device={}{}: device {} does not exist; ", function, logical,
                                set ? ", input visible devices:" + value : "", logical);
  why += count == 0   ? std::string("no card is visible")
         : count == 1 ? std::string("the only one is 0")
                      : fmt::format("devices are 0 to {}", count - 1);
  if (set) why += fmt::format(" (visible devices: ASCEND_RT_VISIBLE_DEVICES=\"{}\")", value);
  why += ".";
  if (!stopped_at.empty()) why += fmt::format(" Reading the list stopped at \"{}\", which is not the id of a card.", stopped_at);
  Status status(Code::kInvalidDevice, std::move(why));
  const auto found = std::find(physical.begin(), physical.end(), logical);
  if (set && found != physical.end()) {
    return std::move(status).Remedy("Card {} of the machine is device {} in this process; use {}.", logical,
                                    found - physical.begin(), found - physical.begin());
  }
  return std::move(status).Remedy("Ask aclrtGetDeviceCount for the number of devices.");
}

}  // namespace npu::rt
