// HCCL on all visible cards, one thread a card, as a program of one process uses it.
#include <fmt/format.h>

#include <cmath>
#include <thread>

#include "tools/check/check.h"

namespace npu::check {
namespace {

constexpr int kFloat = 4, kInt32 = 2, kSum = 0, kMax = 2;  // HcclDataType FP32 and INT32, HcclReduceOp
constexpr int kHostToDevice = 1, kDeviceToHost = 2;
constexpr uint64_t kCount = 4099;

struct Card {
  int device = 0;
  void *comm = nullptr, *stream = nullptr, *send = nullptr, *receive = nullptr;
  std::string why;
};

struct Run {
  const Client& client;
  std::vector<Card>& cards;
  uint64_t elements;  // room of a buffer

  // Fills the send buffers with value(rank, i), calls on every card, compares the receive buffers.
  template <class T, class Value, class Call, class Expected>
  std::string Try(uint64_t sent, uint64_t received, Value value, Call call, Expected expected) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < cards.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Card& card = cards[rank];
        std::vector<T> data(elements, T(-7));
        for (uint64_t i = 0; i < sent; ++i) data[i] = value(rank, i);
        const size_t bytes = elements * sizeof(T);
        const void* from = data.data();
        void* to = data.data();
        const void* result = card.receive;
        std::vector<T> nothing(elements, T(-7));
        const void* blank = nothing.data();
        std::string why = client.Do("aclrtSetDevice", card.device);
        if (why.empty()) why = client.Do("aclrtMemcpy", card.send, bytes, from, bytes, kHostToDevice);
        if (why.empty()) why = client.Do("aclrtMemcpy", card.receive, bytes, blank, bytes, kHostToDevice);
        if (why.empty()) why = call(card);
        if (why.empty()) why = client.Do("aclrtSynchronizeStream", card.stream);
        if (why.empty()) why = client.Do("aclrtMemcpy", to, bytes, result, bytes, kDeviceToHost);
        for (uint64_t i = 0; why.empty() && i < elements; ++i) {
          const T wanted = i < received ? expected(rank, i) : T(-7);
          if (data[i] != wanted) why = fmt::format("element {} is {} instead of {}", i, data[i], wanted);
        }
        card.why = why.empty() ? why : fmt::format("card {}: {}", card.device, why);
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::string why;
    for (const Card& card : cards) {
      if (!card.why.empty()) why += (why.empty() ? "" : "; ") + card.why;
    }
    return why;
  }
};

}  // namespace

void CheckCollectives(Sink& sink, unsigned seed) {
  Client client;
  std::string why = Begin(&client, /*operators=*/false);
  if (!why.empty()) return sink.Failed("aclInit", why);
  if (why = client.Load("libhccl.so"); !why.empty()) return sink.Failed("libhccl.so", why);
  uint32_t count = 0;
  why = client.Do("aclrtGetDeviceCount", &count);
  if (!why.empty()) return sink.Failed("aclrtGetDeviceCount", why);
  if (count < 2) return sink.LeftOut("collectives", "they need two cards, and one is visible");
  std::vector<Card> cards(count);
  std::vector<int32_t> devices(count);
  std::vector<void*> comms(count);
  const uint64_t elements = kCount * count;
  for (uint32_t i = 0; i < count && why.empty(); ++i) {
    cards[i].device = devices[i] = static_cast<int32_t>(i);
    why = client.Do("aclrtSetDevice", devices[i]);
    if (why.empty()) why = client.Do("aclrtCreateStream", &cards[i].stream);
    if (why.empty()) why = client.Do("aclrtMalloc", &cards[i].send, size_t{elements * 4}, 0);
    if (why.empty()) why = client.Do("aclrtMalloc", &cards[i].receive, size_t{elements * 4}, 0);
  }
  if (!why.empty()) return sink.Failed("streams and memory of the cards", why);
  why = client.Do("HcclCommInitAll", uint32_t{count}, devices.data(), comms.data());
  if (!why.empty()) return sink.Failed("HcclCommInitAll", why);
  sink.Passed("HcclCommInitAll");
  for (uint32_t i = 0; i < count; ++i) cards[i].comm = comms[i];
  sink.Note(fmt::format("{} cards", count));

  Run run{client, cards, elements};
  const auto tell = [&](const char* name, const std::string& reason) {
    if (reason.empty())
      sink.Passed(name);
    else
      sink.Failed(name, reason);
  };
  // Whole numbers small enough that sums are exact in float in any order.
  const auto value = [&](size_t rank, uint64_t i) { return static_cast<int32_t>((i * 7 + rank * 13 + seed) % 1000); };
  const auto sum = [&](uint64_t i) {
    int32_t total = 0;
    for (size_t rank = 0; rank < count; ++rank) total += value(rank, i);
    return total;
  };
  const auto real = [&](size_t rank, uint64_t i) { return static_cast<float>(value(rank, i)); };
  tell("HcclAllReduce float sum", run.Try<float>(
                                      kCount, kCount, real,
                                      [&](Card& c) {
                                        return client.Do("HcclAllReduce", c.send, c.receive, kCount, kFloat, kSum,
                                                         c.comm, c.stream);
                                      },
                                      [&](size_t, uint64_t i) { return static_cast<float>(sum(i)); }));
  tell("HcclAllReduce int32 max", run.Try<int32_t>(
                                      kCount, kCount, value,
                                      [&](Card& c) {
                                        return client.Do("HcclAllReduce", c.send, c.receive, kCount, kInt32, kMax,
                                                         c.comm, c.stream);
                                      },
                                      [&](size_t, uint64_t i) {
                                        int32_t largest = 0;
                                        for (size_t rank = 0; rank < count; ++rank)
                                          largest = std::max(largest, value(rank, i));
                                        return largest;
                                      }));
  tell("HcclAllGather",
       run.Try<float>(
           kCount, elements, real,
           [&](Card& c) { return client.Do("HcclAllGather", c.send, c.receive, kCount, kFloat, c.comm, c.stream); },
           [&](size_t, uint64_t i) { return real(i / kCount, i % kCount); }));
  tell("HcclReduceScatter", run.Try<float>(
                                elements, kCount, real,
                                [&](Card& c) {
                                  return client.Do("HcclReduceScatter", c.send, c.receive, kCount, kFloat, kSum, c.comm,
                                                   c.stream);
                                },
                                [&](size_t rank, uint64_t i) { return static_cast<float>(sum(rank * kCount + i)); }));
  const uint32_t root = count - 1;
  // In place on the receive buffer would hide a card that got nothing: the data lie in `send`, and that is what is
  // compared.
  tell("HcclBroadcast",
       run.Try<float>(
           kCount, kCount, real,
           [&](Card& c) {
             std::string reason = client.Do("HcclBroadcast", c.send, kCount, kFloat, root, c.comm, c.stream);
             if (reason.empty()) reason = client.Do("aclrtSynchronizeStream", c.stream);
             const void* from = c.send;
             const size_t bytes = kCount * 4;
             return reason.empty() ? client.Do("aclrtMemcpy", c.receive, bytes, from, bytes, 3) : reason;
           },
           [&](size_t, uint64_t i) { return real(root, i); }));
  tell("HcclAlltoAll", run.Try<float>(
                           elements, elements, real,
                           [&](Card& c) {
                             const void* from = c.send;
                             const void* to = c.receive;
                             return client.Do("HcclAlltoAll", from, kCount, kFloat, to, kCount, kFloat, c.comm,
                                              c.stream);
                           },
                           [&](size_t rank, uint64_t i) { return real(i / kCount, rank * kCount + i % kCount); }));
  std::string closing;
  for (Card& card : cards) {
    client.Do("aclrtSetDevice", card.device);
    if (closing.empty()) closing = client.Do("HcclCommDestroy", card.comm);
  }
  tell("HcclCommDestroy", closing);
  client.Do("aclFinalize");
}

}  // namespace npu::check
