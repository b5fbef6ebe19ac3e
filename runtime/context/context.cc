#include "runtime/context/context.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "base/handle/table.h"
#include "base/parity/parity.h"
#include "device/faults/act.h"
#include "runtime/callback/callback.h"
#include "runtime/context/chip_limits.h"
#include "runtime/context/limits.h"
#include "runtime/context/default_device.h"
#include "runtime/context/devices.h"
#include "runtime/context/kinds.h"
#include "runtime/workers/process.h"

namespace npu::rt {
namespace {

// A context that goes away waits for its work, but not for a wait that never ends.
constexpr auto kClosePatience = std::chrono::seconds(30);
constexpr auto kAbortPatience = std::chrono::seconds(5);

HandleTable<TaskStream>& stream_table() {
  static auto* table = new HandleTable<TaskStream>(kStreamHandle, "stream");
  return *table;
}
HandleTable<Context>& context_table() {
  static auto* table = new HandleTable<Context>(kContextHandle, "context");
  return *table;
}

// Small stream numbers of one card in this process, reused.
struct StreamIds {
  std::mutex mutex;
  std::vector<std::vector<bool>> used;  // by card
  std::vector<uint32_t> count;

  std::optional<uint32_t> Take(int card, uint32_t limit) {
    const std::lock_guard lock(mutex);
    if (used.size() <= static_cast<size_t>(card)) used.resize(card + 1), count.resize(card + 1);
    auto& ids = used[card];
    if (count[card] >= limit) return std::nullopt;
    ++count[card];
    const auto free = std::find(ids.begin(), ids.end(), false);
    const auto id = static_cast<uint32_t>(free - ids.begin());
    if (free == ids.end()) ids.push_back(true);
    ids[id] = true;
    return id;
  }
  void Give(int card, uint32_t id) {
    const std::lock_guard lock(mutex);
    used[card][id] = false;
    --count[card];
  }
  uint32_t Count(int card) {
    const std::lock_guard lock(mutex);
    return static_cast<size_t>(card) < count.size() ? count[card] : 0;
  }
};
StreamIds& stream_ids() {
  static auto* ids = new StreamIds;
  return *ids;
}

// Trivially destructible on purpose: static destructors of clients call us after a thread's objects are gone. The counted
// reference of a thread that ends is not given back, which keeps one small object.
struct ThreadState {
  Context* current;
  bool had_context;
};
thread_local ThreadState this_thread{};

void SetThread(const Ref<Context>& context) {
  Context* before = this_thread.current;
  this_thread.current = Ref<Context>(context).Leak();
  this_thread.had_context = true;
  if (before != nullptr) before->Release();
}

Status NoContext(const char* function, bool lost) {
  if (lost) {
    return Error(Code::kContextNull, "{}: the context of this thread was destroyed or its device was reset.", function)
        .Remedy("Call aclrtSetDevice or aclrtSetCurrentContext again in this thread.");
  }
  return Error(Code::kContextNull, "{}: this thread has no current context.", function)
      .Remedy("Call aclrtSetDevice or aclrtSetCurrentContext in this thread first.");
}

}  // namespace

struct Contexts {
  struct Primary {
    Ref<Context> context;
    uint64_t users = 0;
  };
  std::mutex mutex;  // guards primaries; held while a device opens
  std::unordered_map<int, Primary> primaries;  // by logical device

  static Contexts& Get() {
    static auto* all = new Contexts;
    return *all;
  }

  static Result<Ref<Context>> Make(int device, bool primary, const char* function) {
    NPU_ASSIGN(const int card, PhysicalOf(device, function));
    NPU_ASSIGN(device::Machine * machine, TheMachine());
    NPU_TRY(device::CheckDriver(machine->shared(), card, function));
    NoteUse();
    Pool& pool = Pool::Of(card);
    NPU_TRY(pool.EnsureWorker());
    Ref<Context> context = Ref<Context>::Adopt(new Context(device, card, primary));
    NPU_TRY(context->AddStream({}, function, &context->default_stream_raw_));
    NPU_ASSIGN(context->default_stream_, stream_table().Get(context->default_stream_raw_, function, "stream"));
    context->handle_ = context_table().Add(context);
    if (context->handle_ == nullptr) return Error(Code::kResourceExhausted, "{}: no context handles are left.", function);
    machine->SetOpen(card, true);
    ShareCores();
    return context;
  }

  // Takes the device out of use when nothing of this process is on the card any more.
  static void Close(Context& context, bool force = false) {
    context.Close(force ? Deadline::In(std::chrono::seconds(0)) : Deadline::In(kClosePatience));
    const auto machine = TheMachine();
    if (machine.ok() && stream_ids().Count(context.card()) == 0) (*machine)->SetOpen(context.card(), false);
  }

  Result<Ref<Context>> Open(int device, const char* function, bool count) {
    const std::lock_guard lock(mutex);
    Primary& primary = primaries[device];
    if (!primary.context) {
      NPU_ASSIGN(primary.context, Make(device, true, function));
      primary.users = 0;
    }
    if (count) ++primary.users;
    return primary.context;
  }
};

Context::Context(int device, int card, bool primary)
    : device_(device), card_(card), primary_(primary), pool_(Pool::Of(card)) {}

Context::~Context() = default;

Ref<TaskStream> Context::default_stream() const {
  const std::lock_guard lock(mutex_);
  return default_stream_;
}

Status Context::AddStream(const StreamOptions& options, const char* function, void** raw) {
  NPU_ASSIGN(device::Machine * machine, TheMachine());
  const uint32_t limit = machine->profile().max_streams;
  const auto id = stream_ids().Take(card_, limit);
  if (id && parity::On()) [[unlikely]] {
    if (Status status = CheckLimit("streams", machine->profile().soc, *id + 1, function, Code::kNoStreamResource); !status.ok()) {
      stream_ids().Give(card_, *id);
      return status;
    }
  }
  if (!id) {
    return Error(Code::kNoStreamResource, "{}: device {} ({}) has {} streams, which is its limit.", function, device_,
                 machine->profile().soc, limit)
        .Remedy("Destroy streams that are no longer used, or use fewer in each process.");
  }
  AddRef();
  const TaskStream::Options full{this, [](Context* context) { context->Release(); }, *id,
                                 std::min<uint32_t>(options.priority, Pool::kPriorities - 1), options.flags,
                                 SaturationMode(device_) == 0};
  *raw = stream_table().Add(TaskStream::Make(pool_, full));
  if (*raw == nullptr) {
    stream_ids().Give(card_, *id);
    return Error(Code::kNoStreamResource, "{}: no stream handles are left.", function);
  }
  const std::lock_guard lock(mutex_);
  streams_.push_back(*raw);
  return {};
}

Result<void*> Context::CreateStream(const StreamOptions& options, const char* function) {
  if (!open()) return NoContext(function, true);
  void* raw = nullptr;
  NPU_TRY(AddStream(options, function, &raw));
  return raw;
}

Status Context::DestroyStream(void* raw, bool force, const char* function) {
  NPU_ASSIGN(Ref<TaskStream> stream, FindStream(raw, function));
  if (raw == default_stream_raw_) {
    return Error(Code::kOutOfRange, "{}: the default stream goes with its context.", function)
        .Remedy("Destroy only streams that you created.");
  }
  // The handle is stale from here on, so nothing can be queued behind the wait.
  NPU_TRY(stream_table().Remove(raw, function, "stream").status());
  {
    const std::lock_guard lock(mutex_);
    std::erase(streams_, raw);
  }
  const Status gone = Error(Code::kStreamAbort, "{}: stream {} was destroyed before its work was done.", function, stream->id());
  if (!force) static_cast<void>(stream->WaitIdle(Deadline::In(kClosePatience)));
  stream->Abort(gone);
  static_cast<void>(stream->WaitIdle(Deadline::In(kAbortPatience)));
  ForgetCallbacks(*stream, force);
  stream_ids().Give(card_, stream->id());
  return {};
}

std::vector<Ref<TaskStream>> Context::Streams() const {
  std::vector<void*> handles;
  {
    const std::lock_guard lock(mutex_);
    handles = streams_;
  }
  std::vector<Ref<TaskStream>> streams;
  for (void* raw : handles) {
    auto stream = stream_table().Get(raw, "", "stream");
    if (stream.ok()) streams.push_back(std::move(*stream));
  }
  return streams;
}

Status Context::Synchronize(Deadline deadline) {
  Status first;
  for (const auto& stream : Streams()) {
    Status status = stream->Synchronize(deadline);
    if (!status.ok() && first.ok()) first = std::move(status);
    if (first.code() == Code::kSyncTimeout) return first;
  }
  return first;
}

Status Context::Abort(const Status& why, Deadline deadline) {
  const auto streams = Streams();
  for (const auto& stream : streams) stream->Abort(why);
  for (const auto& stream : streams) NPU_TRY(stream->WaitIdle(deadline));
  return {};
}

void Context::Close(Deadline patience) {
  const auto streams = Streams();
  for (const auto& stream : streams) static_cast<void>(stream->WaitIdle(patience));
  open_.store(false, std::memory_order_release);
  const Status gone = Error(Code::kContextNull, "Device {} was reset or its context destroyed.", device_);
  for (const auto& stream : streams) stream->Abort(gone);
  for (const auto& stream : streams) static_cast<void>(stream->WaitIdle(Deadline::In(kAbortPatience)));
  std::vector<void*> handles;
  {
    const std::lock_guard lock(mutex_);
    handles.swap(streams_);
    default_stream_ = {};
  }
  for (void* raw : handles) {
    auto stream = stream_table().Remove(raw, "", "stream");
    if (!stream.ok()) continue;
    ForgetCallbacks(**stream, /*abandon=*/true);
    stream_ids().Give(card_, (*stream)->id());
  }
  static_cast<void>(context_table().Remove(handle_, "", "context"));
}

Status SetDevice(int device, const char* function) {
  if (Forked()) return ForkedError(function);
  NPU_ASSIGN(Ref<Context> context, Contexts::Get().Open(device, function, /*count=*/true));
  SetThread(context);
  return {};
}

Status ResetDevice(int device, bool force, const char* function) {
  if (Forked()) return ForkedError(function);
  NPU_TRY(PhysicalOf(device, function).status());
  Contexts& all = Contexts::Get();
  std::unique_lock lock(all.mutex);
  const auto found = all.primaries.find(device);
  if (found == all.primaries.end() || !found->second.context) {
    return Error(Code::kContextRelease, "{}: device {} was not set in this process.", function, device)
        .Remedy("Reset a device as often as aclrtSetDevice was called for it, not more.");
  }
  Contexts::Primary& primary = found->second;
  if (!force && primary.users > 1) {
    --primary.users;
    return {};
  }
  primary.users = 0;
  const Ref<Context> context = std::move(primary.context);
  primary.context = {};
  // Without the lock: a host function that is waited for may set a device.
  lock.unlock();
  Contexts::Close(*context, force);
  return {};
}

bool PrimaryActive(int device) {
  Contexts& all = Contexts::Get();
  const std::lock_guard lock(all.mutex);
  const auto found = all.primaries.find(device);
  return found != all.primaries.end() && found->second.context;
}

Result<Ref<Context>> PrimaryOf(int device, const char* function) {
  if (Forked()) return ForkedError(function);
  NPU_TRY(PhysicalOf(device, function).status());
  Contexts& all = Contexts::Get();
  const std::lock_guard lock(all.mutex);
  const auto found = all.primaries.find(device);
  if (found != all.primaries.end() && found->second.context) return found->second.context;
  return Error(Code::kDeviceSetup, "{}: device {} is not opened in this process.", function, device)
      .Remedy("Call aclrtSetDevice({}) first.", device);
}

Result<Ref<Context>> Current(const char* function) {
  if (Forked()) [[unlikely]] return ForkedError(function);
  if (Context* current = this_thread.current; current != nullptr && current->open()) return Ref<Context>::Share(current);
  const int device = DefaultDevice();
  if (this_thread.had_context || device < 0) return NoContext(function, this_thread.had_context);
  NPU_ASSIGN(Ref<Context> context, Contexts::Get().Open(device, function, /*count=*/false));
  SetThread(context);
  return context;
}

Ref<Context> CurrentOrNull() {
  if (Forked()) return {};
  Context* current = this_thread.current;
  return current != nullptr && current->open() ? Ref<Context>::Share(current) : Ref<Context>();
}

Result<int> CurrentDevice(const char* function) {
  if (const Ref<Context> context = CurrentOrNull()) return context->device();
  const int device = DefaultDevice();
  if (!this_thread.had_context && device >= 0) return device;
  return NoContext(function, this_thread.had_context);
}

Result<Ref<Context>> CreateContext(int device, const char* function) {
  if (Forked()) return ForkedError(function);
  Contexts& all = Contexts::Get();
  const std::lock_guard lock(all.mutex);
  NPU_ASSIGN(Ref<Context> context, Contexts::Make(device, false, function));
  SetThread(context);
  return context;
}

Status DestroyContext(void* raw, const char* function) {
  if (Forked()) return ForkedError(function);
  auto found = context_table().Get(raw, function, "context");
  if (!found.ok()) return Status(Code::kContextNull, std::string(found.status().text())).Remedy("Destroy a context once.");
  if ((*found)->primary()) {
    return Error(Code::kContextNull, "{}: the context is the primary one of device {}.", function, (*found)->device())
        .Remedy("Primary contexts end with aclrtResetDevice.");
  }
  Contexts::Close(**found);
  return {};
}

Status SetCurrent(void* raw, const char* function) {
  if (Forked()) return ForkedError(function);
  auto found = context_table().Get(raw, function, "context");
  if (!found.ok()) {
    return Status(Code::kOutOfRange, std::string(found.status().text())).Remedy("Pass what aclrtCreateContext or aclrtGetCurrentContext gave.");
  }
  SetThread(*found);
  return {};
}

Result<uint32_t> StreamsLeft(int card) {
  NPU_ASSIGN(const device::Machine* machine, TheMachine());
  const uint32_t used = stream_ids().Count(card), limit = machine->profile().max_streams;
  return limit - std::min(used, limit);
}

Status AbortDevice(int device, Deadline deadline, const char* function) {
  if (Forked()) return ForkedError(function);
  const Status why = Error(Code::kTaskAbort, "The tasks of device {} were aborted by aclrtDeviceTaskAbort.", device)
                         .Remedy("Reset the device, or use streams made after the abort.");
  std::vector<Ref<Context>> contexts;
  context_table().ForEach([&](void*, Ref<Context> context) {
    if (context->device() == device && context->open()) contexts.push_back(std::move(context));
  });
  for (const auto& context : contexts) {
    if (!context->Abort(why, deadline).ok()) {
      return Error(Code::kWaitTimeout, "{}: a task of device {} did not stop within the time limit.", function, device)
          .Remedy("Wait longer; a kernel that runs is not interrupted.");
    }
  }
  return {};
}

Result<Ref<TaskStream>> FindStream(const void* raw, const char* function) {
  if (Forked()) [[unlikely]] return ForkedError(function);
  return stream_table().Get(raw, function, "stream");
}

namespace {
// Another thread may have reset the device since the context was found: then there is no default stream any more.
Result<Ref<TaskStream>> DefaultStream(const Context& context, const char* function) {
  Ref<TaskStream> stream = context.default_stream();
  if (!stream) return NoContext(function, true);
  return stream;
}
}  // namespace

Result<Ref<TaskStream>> ResolveTaskStream(void* raw, const char* function) {
  NPU_ASSIGN(Ref<Context> context, Current(function));
  if (raw == nullptr) return DefaultStream(*context, function);
  NPU_ASSIGN(Ref<TaskStream> stream, stream_table().Get(raw, function, "stream"));
  if (&stream->context() != context.get()) [[unlikely]] {
    return Error(Code::kStreamContext, "{}: stream {} belongs to device {}, but this thread works in {} context of device {}.",
                 function, stream->id(), stream->context().device(),
                 stream->context().device() == context->device() ? "another" : "the", context->device())
        .Remedy("Make the stream's device current (aclrtSetDevice) or use a stream of the current device.");
  }
  return stream;
}

Result<Ref<TaskStream>> ResolveAnyStream(void* raw, const char* function) {
  NPU_ASSIGN(Ref<Context> context, Current(function));
  if (raw == nullptr) return DefaultStream(*context, function);
  return stream_table().Get(raw, function, "stream");
}

Result<Ref<Stream>> ResolveStream(void* raw, const char* function) {
  NPU_ASSIGN(Ref<TaskStream> stream, ResolveTaskStream(raw, function));
  return Ref<Stream>::Adopt(stream.Leak());
}

}  // namespace npu::rt
