// Devices, streams and events.
#include <fmt/format.h>

#include "tools/check/check.h"

namespace npu::check {
namespace {

void Tell(Sink& sink, const std::string& name, const std::string& why) {
  if (why.empty())
    sink.Passed(name);
  else
    sink.Failed(name, why);
}

// Work of one device: a stream, an event on it, a second stream that waits for the event.
std::string Streams(const Client& client) {
  void *first = nullptr, *second = nullptr, *event = nullptr;
  std::string why = client.Do("aclrtCreateStream", &first);
  if (why.empty()) why = client.Do("aclrtCreateStream", &second);
  if (why.empty()) why = client.Do("aclrtCreateEvent", &event);
  if (why.empty()) why = client.Do("aclrtRecordEvent", event, first);
  if (why.empty()) why = client.Do("aclrtStreamWaitEvent", second, event);
  if (why.empty()) why = client.Do("aclrtSynchronizeStream", second);
  if (why.empty()) why = client.Do("aclrtSynchronizeDevice");
  if (event != nullptr && why.empty()) why = client.Do("aclrtDestroyEvent", event);
  for (void* stream : {first, second}) {
    if (stream != nullptr && why.empty()) why = client.Do("aclrtDestroyStream", stream);
  }
  return why;
}

}  // namespace

void CheckDevices(Sink& sink) {
  Client client;
  if (const std::string why = Begin(&client, /*operators=*/false); !why.empty()) return sink.Failed("aclInit", why);
  sink.Passed("aclInit");
  uint32_t count = 0;
  if (const std::string why = client.Do("aclrtGetDeviceCount", &count); !why.empty())
    return sink.Failed("aclrtGetDeviceCount", why);
  if (count == 0) return sink.Failed("aclrtGetDeviceCount", "no device is visible; look at ASCEND_RT_VISIBLE_DEVICES");
  sink.Passed("aclrtGetDeviceCount");
  auto* soc = client.Call<const char*()>("aclrtGetSocName");
  std::string name;
  for (uint32_t device = 0; device < count; ++device) {
    const auto item = [&](const char* what) { return fmt::format("device {}: {}", device, what); };
    if (const std::string why = client.Do("aclrtSetDevice", static_cast<int32_t>(device)); !why.empty()) {
      sink.Failed(item("aclrtSetDevice"), why);
      continue;
    }
    sink.Passed(item("aclrtSetDevice"));
    if (soc != nullptr && soc() != nullptr) name = soc();
    int32_t current = -1;
    std::string why = client.Do("aclrtGetDevice", &current);
    if (why.empty() && current != static_cast<int32_t>(device))
      why = fmt::format("aclrtGetDevice says {} after aclrtSetDevice({})", current, device);
    Tell(sink, item("aclrtGetDevice"), why);
    size_t free = 0, total = 0;
    why = client.Do("aclrtGetMemInfo", 1, &free, &total);  // ACL_HBM_MEM
    if (why.empty() && (total == 0 || free > total)) why = fmt::format("{} bytes free of {}", free, total);
    Tell(sink, item("memory is told"), why);
    Tell(sink, item("streams and events"), Streams(client));
    Tell(sink, item("aclrtResetDevice"), client.Do("aclrtResetDevice", static_cast<int32_t>(device)));
  }
  sink.Note(fmt::format("{} x {}", count, name.empty() ? "device of unknown kind" : name));
  Tell(sink, "aclFinalize", client.Do("aclFinalize"));
}

}  // namespace npu::check
