#include "shim/hccl/comms.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "base/os/thread.h"
#include "coll/comm/calls.h"
#include "runtime/context/devices.h"

namespace npu::hccl {
namespace {

constexpr uint8_t kHandleKind = 48;

HandleTable<Client>& Comms() {
  static auto* comms = new HandleTable<Client>(kHandleKind, "communicator");
  return *comms;
}

// Names of communicators by card: one name, one communicator.
class Names {
 public:
  static Names& Get() {
    static auto* names = new Names;
    return *names;
  }
  bool Take(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return taken_.insert(key).second;
  }
  void Give(const std::string& key) {
    const std::lock_guard lock(mutex_);
    taken_.erase(key);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> taken_;
};

std::atomic<int> determinism{0};

}  // namespace

Client::~Client() { Names::Get().Give(key_); }

// The ranks meet anew, as for a sub communicator of all of them: nothing of the calls that were under way is left.
Status Client::Resume() {
  const Ref<coll::Communicator> old = comm();
  const Status failure = old->Failure();
  bool others = false;
  const Status dead = old->Dead(&others);
  const bool recoverable = failure.ok() || failure.code() == Code::kTaskAbort || failure.code() == Code::kRemoteError;
  if (!dead.ok() || !recoverable) {
    const Status& why = dead.ok() ? failure : dead;
    return Error(why.code(), "HcclCommResume: communicator {} cannot be used again: {}", old->name(), why.text())
        .Remedy("Destroy it and make a new one on the ranks that are left.");
  }
  if (failure.ok() && !others) return {};
  const std::string id = coll::DerivedId(old->token(), fmt::format("{}/resume/{}", old->name(), Next("resume")));
  coll::AssembleRequest request = request_;
  request.point = {old->member(0).address, static_cast<uint16_t>(old->member(0).port), id};
  if (old->rank() == 0 && old->size() > 1) NPU_TRY(coll::ServeAt(*old, id));
  old->Leave();
  NPU_ASSIGN(Ref<coll::Communicator> made, coll::Assemble(request));
  made->determinism = old->determinism.load();
  const std::lock_guard lock(mutex_);
  comm_ = std::move(made);
  return {};
}

Result<Ref<Client>> Find(HcclComm comm, const char* function) {
  NPU_TRY(NotNull(comm, function, "comm"));
  return Comms().Get(comm, function, "comm");
}

Status Destroy(HcclComm comm, const char* function) {
  if (comm == nullptr) return {};
  NPU_ASSIGN(const Ref<Client> client, Comms().Remove(comm, function, "comm"));
  DropWindows(*client);
  return {};
}

Result<CommConfig> ReadConfig(const HcclCommConfig* config, const char* function) {
  const auto bad = [&](const std::string& what) {
    return Error(Code::kInvalidParam, "EI0003: {}: config {}.", function, what)
        .Remedy("Fill the block with HcclCommConfigInit before setting its fields.");
  };
  if (config == nullptr) return bad("is null");
  uint64_t bytes = 0;
  uint32_t magic = 0;
  std::memcpy(&bytes, config, sizeof bytes);
  std::memcpy(&magic, reinterpret_cast<const char*>(config) + 8, sizeof magic);
  if (magic != HCCL_COMM_CONFIG_MAGIC_WORD)
    return bad(fmt::format("has magic word {:#x} instead of {:#x}", magic, HCCL_COMM_CONFIG_MAGIC_WORD));
  if (bytes < HCCL_COMM_CONFIG_INFO_BYTES) return bad(fmt::format("says that it has {} bytes", bytes));
  HcclCommConfig mine;
  std::memset(&mine, 0, sizeof mine);
  mine.hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
  mine.hcclExecTimeOut = -1;
  std::memcpy(&mine, config, std::min<uint64_t>(bytes, sizeof mine));
  CommConfig read;
  const size_t length = ::strnlen(mine.hcclCommName, sizeof mine.hcclCommName);
  if (length == sizeof mine.hcclCommName) return bad(fmt::format("has a name of more than {} characters", length - 1));
  read.name.assign(mine.hcclCommName, length);
  if (mine.hcclDeterministic != HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET) {
    if (mine.hcclDeterministic > 2) return bad(fmt::format("asks for determinism {}", mine.hcclDeterministic));
    read.deterministic = static_cast<int>(mine.hcclDeterministic);
  }
  if (mine.hcclExecTimeOut > 0) read.exec_timeout = mine.hcclExecTimeOut;
  return read;
}

Result<coll::Settings> SettingsOf(int card) {
  NPU_ASSIGN(device::Machine * machine, rt::TheMachine());
  return coll::ReadSettings(card, machine->name());
}

Result<int> CurrentCard(const char* function) {
  NPU_ASSIGN(const Ref<rt::Context> context, rt::Current(function));
  return context->card();
}

Status Make(coll::AssembleRequest request, const CommConfig& config, const char* function, HcclComm* out) {
  *out = nullptr;
  if (!config.name.empty()) request.name = config.name;
  if (request.name.size() >= COMM_NAME_MAX_LENGTH) request.name.resize(COMM_NAME_MAX_LENGTH - 1);
  const std::string key = fmt::format("{}/{}", request.card, request.name);
  if (!Names::Get().Take(key)) {
    return Error(Code::kInvalidParam, "EI0003: {}: device {} has a communicator named '{}' already.", function,
                 request.card, request.name)
        .Remedy("Call HcclGetRootInfo anew for each communicator, or give each another name.");
  }
  if (config.exec_timeout > 0) {
    request.settings.exec_seconds = std::chrono::seconds(config.exec_timeout);
    request.settings.exec_timeout = request.settings.exec_seconds;
  }
  Result<Ref<coll::Communicator>> made = coll::Assemble(request);
  if (!made.ok()) {
    Names::Get().Give(key);
    return made.status();
  }
  (*made)->determinism = config.deterministic >= 0 ? config.deterministic : Determinism();
  *out = Comms().Add(Ref<Client>::Adopt(new Client(made.take(), std::move(request), key)));
  if (*out == nullptr) return Error(Code::kResourceExhausted, "{}: no handle is left for a communicator.", function);
  return {};
}

int Determinism() { return determinism.load(std::memory_order_relaxed); }

void SetDeterminism(int value) {
  determinism.store(value, std::memory_order_relaxed);
  Comms().ForEach([&](void*, const Ref<Client>& client) { client->comm()->determinism = value; });
}

Status On(HcclComm comm, aclrtStream stream, const char* function, const std::function<Status(coll::Where)>& call) {
  NPU_ASSIGN(const Ref<Client> client, Find(comm, function));
  NPU_TRY(NotNull(stream, function, "stream"));
  NPU_ASSIGN(const Ref<rt::TaskStream> on, rt::ResolveAnyStream(stream, function));
  const Ref<coll::Communicator> communicator = client->comm();
  if (on->card() != communicator->card()) {
    return Error(Code::kInvalidParam, "EI0003: {}: the stream is on device {}, the communicator on device {}.",
                 function, on->card(), communicator->card())
        .Remedy("Pass a stream of the communicator's device.");
  }
  return call({*communicator, *on});
}

Status SendRecvOn(HcclComm comm, aclrtStream stream, const char* function, std::span<const HcclSendRecvItem> items) {
  std::vector<coll::SendRecvItem> list;
  for (const HcclSendRecvItem& item : items) {
    if (item.sendRecvType != HCCL_SEND && item.sendRecvType != HCCL_RECV) {
      return Error(Code::kInvalidParam, "EI0003: {}: an item has sendRecvType {}.", function,
                   static_cast<int>(item.sendRecvType))
          .Remedy("Pass HCCL_SEND or HCCL_RECV.");
    }
    list.push_back(
        {item.sendRecvType == HCCL_SEND, item.buf, item.count, static_cast<uint32_t>(item.dataType), item.remoteRank});
  }
  return On(comm, stream, function, [&](coll::Where at) { return coll::SendRecv(at, function, list); });
}

Group& Group::OfThread() {
  thread_local Group group;
  return group;
}

Status Together(const std::vector<std::function<Status()>>& works) {
  std::vector<Status> results(works.size());
  std::vector<std::thread> threads;
  Status failed;
  for (size_t i = 0; i < works.size(); ++i) {
    auto thread = os::Start("npu-comm", [&, i] {
      try {
        results[i] = works[i]();
      } catch (const std::exception& e) {
        results[i] = Error(Code::kInternal, "Making a communicator ended with an exception: {}.", e.what());
      }
    });
    if (!thread.ok()) {
      failed = thread.status();
      break;
    }
    threads.push_back(thread.take());
  }
  for (auto& thread : threads) thread.join();
  for (const Status& status : results) {
    if (failed.ok()) failed = status;
  }
  return failed;
}

// Sends and receives go out as one batch for each communicator and stream. The first failure is returned: the real
// library only logs it, and the ranks then wait for each other until the time limit.
Status Group::End() {
  if (depth_ == 0) {
    return Error(Code::kNotSupported, "HcclGroupEnd: this thread has started no group.")
        .Remedy("Call HcclGroupStart first.");
  }
  if (--depth_ > 0) return {};
  const auto items = std::move(items_);
  const auto makes = std::move(makes_);
  const auto destroys = std::move(destroys_);
  items_.clear();
  makes_.clear();
  destroys_.clear();
  Status failed;
  const auto keep = [&](Status status) {
    if (failed.ok()) failed = std::move(status);
  };
  keep(Together(makes));
  std::vector<bool> done(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (done[i]) continue;
    std::vector<HcclSendRecvItem> batch;
    for (size_t j = i; j < items.size(); ++j) {
      if (items[j].comm != items[i].comm || items[j].stream != items[i].stream) continue;
      batch.push_back(items[j].item);
      done[j] = true;
    }
    keep(SendRecvOn(items[i].comm, items[i].stream, "HcclGroupEnd", batch));
  }
  for (HcclComm comm : destroys) keep(Destroy(comm, "HcclCommDestroy"));
  return failed;
}

}  // namespace npu::hccl
