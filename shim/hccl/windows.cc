// Windows: device memory that a communicator's ranks have told each other of. Collectives here always work on mapped
// memory, so a window changes no result; an exchange maps the peers' memory and gives it its pages, which the first
// collective would do otherwise.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

#include "coll/comm/buffer.h"
#include "device/hbm/hbm.h"
#include "gen/calls/hccl.h"
#include "runtime/context/devices.h"
#include "shim/hccl/comms.h"

namespace npu::hccl {
namespace {

constexpr uint8_t kWindowKind = 49, kSymmetricKind = 50;
constexpr uint64_t kGranularity = 2u << 20;

class Window {
 public:
  Window(Ref<Client> of, void* begin, uint64_t size, coll::Place at)
      : client(std::move(of)), address(static_cast<std::byte*>(begin)), bytes(size), place(at) {}
  const Ref<Client> client;
  std::byte* const address;
  const uint64_t bytes;
  const coll::Place place;  // unset when it lies in several pieces
  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  ~Window() = default;
  std::atomic<uint32_t> refs_{1};
};

HandleTable<Window>& Windows() {
  static auto* windows = new HandleTable<Window>(kWindowKind, "window");
  return *windows;
}
HandleTable<Window>& Symmetric() {
  static auto* windows = new HandleTable<Window>(kSymmetricKind, "symmetric window");
  return *windows;
}

Result<Ref<Window>> MakeWindow(const Ref<Client>& client, void* address, uint64_t bytes, const char* function) {
  if (bytes == 0) {
    return Error(Code::kInvalidParam, "EI0003: {}: size is 0.", function).Remedy("Pass the bytes of the window.");
  }
  NPU_ASSIGN(const coll::Resolved resolved, coll::Resolve(address, bytes, client->comm()->card(), function, "addr"));
  const coll::Place place = resolved.bounce ? coll::Place{} : resolved.place;
  return Ref<Window>::Adopt(new Window(client, address, bytes, place));
}

Status NoHandle(const char* function) {
  return Error(Code::kResourceExhausted, "{}: no handle is left for a window.", function)
      .Remedy("Deregister windows that are no longer used.");
}

Status Meet(const Window& window, const std::vector<uint32_t>& ranks, const std::string& about,
            std::vector<coll::Place>* places, const char* function) {
  const Ref<coll::Communicator> comm = window.client->comm();
  coll::Place mine = window.place;
  mine.bytes = window.bytes;
  NPU_ASSIGN(const std::vector<std::byte> all, coll::Exchange(*comm, ranks, about, std::as_bytes(std::span(&mine, 1))));
  places->resize(ranks.size());
  std::memcpy(static_cast<void*>(places->data()), all.data(), all.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    coll::Transport* to = comm->team().to[ranks[i]];
    if (to == nullptr || !to->Maps() || (*places)[i].card < 0) continue;
    if (Status mapped = to->Map(ranks[i], (*places)[i]).status(); !mapped.ok()) {
      return Error(mapped.code(), "{}: the window of rank {}: {}", function, ranks[i], mapped.text());
    }
  }
  return {};
}

// What HcommMemAlloc has given.
struct Given {
  std::mutex mutex;
  std::set<void*> blocks;
};
Given& given() {
  static auto* g = new Given;
  return *g;
}

}  // namespace

void DropWindows(const Client& of) {
  for (HandleTable<Window>* table : {&Windows(), &Symmetric()}) {
    std::vector<void*> its;
    table->ForEach([&](void* raw, const Ref<Window>& window) {
      if (window->client.get() == &of) its.push_back(raw);
    });
    // One that its owner has taken back meanwhile is no longer there, which is what is wanted.
    for (void* raw : its) static_cast<void>(table->Remove(raw, __func__, "window"));
  }
}

}  // namespace npu::hccl

namespace npu::calls {

Status HcclCommRegister(HcclComm comm, void* addr, uint64_t size, void** handle, uint32_t) {
  HCCL_NOT_NULL(addr);
  HCCL_NOT_NULL(handle);
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  NPU_ASSIGN(Ref<hccl::Window> window, hccl::MakeWindow(client, addr, size, __func__));
  *handle = hccl::Windows().Add(std::move(window));
  return *handle != nullptr ? Status() : hccl::NoHandle(__func__);
}

Status HcclCommDeregister(HcclComm comm, void* handle) {
  HCCL_NOT_NULL(handle);
  NPU_TRY(hccl::Find(comm, __func__).status());
  return hccl::Windows().Remove(handle, __func__, "handle").status();
}

// Each pair of ranks that list each other meets by itself, in one order everywhere, so that lists may differ.
Status HcclCommExchangeMem(HcclComm comm, void* windowHandle, uint32_t* peerRanks, uint32_t peerRankNum) {
  HCCL_NOT_NULL(windowHandle);
  HCCL_NOT_NULL(peerRanks);
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  NPU_ASSIGN(const Ref<hccl::Window> window, hccl::Windows().Get(windowHandle, __func__, "windowHandle"));
  const uint32_t size = client->comm()->size(), me = client->comm()->rank();
  if (peerRankNum == 0 || peerRankNum > size) {
    return Error(Code::kInvalidParam, "EI0003: {}: peerRankNum is {}, the communicator has {} ranks.", __func__,
                 peerRankNum, size)
        .Remedy("List the ranks to exchange with.");
  }
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t i = 0; i < peerRankNum; ++i) {
    if (peerRanks[i] >= size) {
      return Error(Code::kInvalidParam, "EI0003: {}: peerRanks[{}] is {}, the communicator has {} ranks.", __func__, i,
                   peerRanks[i], size)
          .Remedy("List ranks of the communicator.");
    }
    if (peerRanks[i] != me) pairs.insert(std::minmax(peerRanks[i], me));
  }
  for (const auto& [low, high] : pairs) {
    const std::string pair = fmt::format("window/{}/{}", low, high);
    std::vector<coll::Place> places;
    NPU_TRY(hccl::Meet(*window, {low, high}, fmt::format("{}/{}", pair, client->Next(pair)), &places, __func__));
  }
  return {};
}

Status HcclCommSymWinRegister(HcclComm comm, void* addr, uint64_t size, HcclCommSymWindow* winHandle, uint32_t flag) {
  HCCL_NOT_NULL(addr);
  HCCL_NOT_NULL(winHandle);
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  if (flag != 1) {
    return Error(Code::kInvalidParam, "EI0003: {}: flag is {}.", __func__, flag).Remedy("Pass 1, a symmetric window.");
  }
  NPU_ASSIGN(Ref<hccl::Window> window, hccl::MakeWindow(client, addr, size, __func__));
  const uint32_t ranks = client->comm()->size();
  if (ranks > 1) {
    std::vector<uint32_t> all(ranks);
    for (uint32_t r = 0; r < ranks; ++r) all[r] = r;
    std::vector<coll::Place> places;
    NPU_TRY(hccl::Meet(*window, all, fmt::format("symmetric/{}", client->Next("symmetric")), &places, __func__));
    for (uint32_t r = 0; r < ranks; ++r) {
      if (places[r].bytes == size) continue;
      return Error(Code::kInvalidParam, "EI0003: {}: the window has {} bytes on rank {} and {} on rank {}.", __func__,
                   size, client->comm()->rank(), places[r].bytes, r)
          .Remedy("Register the same size on all ranks.");
    }
  }
  *winHandle = hccl::Symmetric().Add(std::move(window));
  return *winHandle != nullptr ? Status() : hccl::NoHandle(__func__);
}

Status HcclCommSymWinDeregister(HcclCommSymWindow winHandle) {
  HCCL_NOT_NULL(winHandle);
  return hccl::Symmetric().Remove(winHandle, __func__, "winHandle").status();
}

Status HcclCommSymWinGet(HcclComm comm, void* ptr, size_t size, HcclCommSymWindow* winHandle, size_t* offset) {
  HCCL_NOT_NULL(ptr);
  HCCL_NOT_NULL(winHandle);
  HCCL_NOT_NULL(offset);
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(comm, __func__));
  if (size == 0) {
    return Error(Code::kInvalidParam, "EI0003: {}: size is 0.", __func__).Remedy("Pass the bytes that are looked for.");
  }
  const auto* at = static_cast<const std::byte*>(ptr);
  void* found = nullptr;
  if (client->comm()->size() > 1) {
    hccl::Symmetric().ForEach([&](void* raw, const Ref<hccl::Window>& window) {
      if (found != nullptr || window->client.get() != client.get() || at < window->address) return;
      const auto begin = static_cast<uint64_t>(at - window->address);
      if (begin > window->bytes || size > window->bytes - begin) return;
      found = raw;
      *offset = begin;
    });
  }
  if (found == nullptr) {
    return Error(Code::kOpNotFound, "{}: no symmetric window of communicator {} holds {} bytes at {}.", __func__,
                 client->comm()->name(), size, fmt::ptr(ptr))
        .Remedy("Register it with HcclCommSymWinRegister on all ranks.");
  }
  *winHandle = found;
  return {};
}

Status HcommMemAlloc(void** ptr, size_t size) {
  HCCL_NOT_NULL(ptr);
  if (size == 0 || size > SIZE_MAX - hccl::kGranularity) {
    return Error(Code::kInvalidParam, "EI0003: {}: size is {}.", __func__, size)
        .Remedy("Pass the bytes that are wanted.");
  }
  NPU_ASSIGN(const int card, hccl::CurrentCard(__func__));
  const size_t bytes = (size + hccl::kGranularity - 1) / hccl::kGranularity * hccl::kGranularity;
  Result<void*> block = hbm::AllocateFor(card, bytes, size, __func__);
  if (!block.ok()) {
    return Error(Code::kDriverError, "{}: {}", __func__, block.status().text()).Remedy("{}", block.status().remedy());
  }
  const std::lock_guard lock(hccl::given().mutex);
  hccl::given().blocks.insert(*block);
  *ptr = *block;
  return {};
}

Status HcommMemFree(void* ptr) {
  if (ptr == nullptr) return {};
  {
    const std::lock_guard lock(hccl::given().mutex);
    if (hccl::given().blocks.erase(ptr) == 0) {
      return Error(Code::kDriverError, "{}: {} is no memory that HcommMemAlloc gave.", __func__, fmt::ptr(ptr))
          .Remedy("Free each block once, and others where they come from.");
    }
  }
  return hbm::Free(ptr);
}

}  // namespace npu::calls
