// Communicators as clients hold them, and what the adapters share.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/handle/table.h"
#include "coll/comm/assemble.h"
#include "coll/comm/calls.h"
#include "coll/comm/communicator.h"
#include "hccl/hccl.h"
#include "runtime/context/context.h"

namespace npu::hccl {

// A communicator with what only this interface knows of it. Resuming puts another one in its place.
class Client {
 public:
  Client(Ref<coll::Communicator> comm, coll::AssembleRequest request, std::string key)
      : request_(std::move(request)), key_(std::move(key)), comm_(std::move(comm)) {}
  Ref<coll::Communicator> comm() const {
    const std::lock_guard lock(mutex_);
    return comm_;
  }
  // Makes it usable again after it was suspended or its tasks were aborted; the other ranks do the same.
  Status Resume();
  // A number for the next exchange about `what`: all ranks that take part count the same.
  uint64_t Next(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return ++counts_[what];
  }
  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  ~Client();
  const coll::AssembleRequest request_;
  const std::string key_;  // in the list of names in use
  mutable std::mutex mutex_;
  Ref<coll::Communicator> comm_;
  std::map<std::string, uint64_t> counts_;
  std::atomic<uint32_t> refs_{1};
};

// null: 2; foreign or destroyed: 1.
Result<Ref<Client>> Find(HcclComm comm, const char* function);
Status Destroy(HcclComm comm, const char* function);
// Windows that were registered with a communicator end with it.
void DropWindows(const Client& of);

struct CommConfig {
  std::string name;           // empty: not given
  int32_t exec_timeout = -1;  // seconds; -1: not given
  int deterministic = -1;
};
// Reads as much of the caller's block as it says it has.
Result<CommConfig> ReadConfig(const HcclCommConfig* config, const char* function);

// Makes a communicator on a physical card; blocks until all ranks are there.
Status Make(coll::AssembleRequest request, const CommConfig& config, const char* function, HcclComm* out);
Result<coll::Settings> SettingsOf(int card);
// The physical card of the calling thread's device.
Result<int> CurrentCard(const char* function);

int Determinism();
void SetDeterminism(int value);  // and of all communicators

// HcclGroupStart … HcclGroupEnd of this thread.
class Group {
 public:
  static Group& OfThread();
  bool active() const { return depth_ > 0; }
  void Start() { ++depth_; }
  Status End();
  // Made together when the group ends, each on a thread of its own.
  void LaterMake(std::function<Status()> make) { makes_.push_back(std::move(make)); }
  void LaterDestroy(HcclComm comm) { destroys_.push_back(comm); }
  void LaterSendRecv(HcclComm comm, aclrtStream stream, const HcclSendRecvItem& item) {
    items_.push_back({comm, stream, item});
  }

 private:
  struct Item {
    HcclComm comm;
    aclrtStream stream;
    HcclSendRecvItem item;
  };
  int depth_ = 0;
  std::vector<std::function<Status()>> makes_;
  std::vector<HcclComm> destroys_;
  std::vector<Item> items_;
};
// Runs all at once, one thread each; the first failure.
Status Together(const std::vector<std::function<Status()>>& works);

// Checks handle and stream and runs `call` with them.
Status On(HcclComm comm, aclrtStream stream, const char* function, const std::function<Status(coll::Where)>& call);
Status SendRecvOn(HcclComm comm, aclrtStream stream, const char* function, std::span<const HcclSendRecvItem> items);

inline Status NotNull(const void* pointer, const char* function, const char* param) {
  if (pointer != nullptr) [[likely]]
    return {};
  return Error(Code::kNullPointer, "EI0003: {}: {} is null.", function, param).Remedy("Pass a valid pointer.");
}

}  // namespace npu::hccl

#define HCCL_NOT_NULL(param) NPU_TRY(::npu::hccl::NotNull(reinterpret_cast<const void*>(param), __func__, #param))
