#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "coll/comm/types.h"
#include "coll/testing/team.h"

namespace npu::coll::testing {
namespace {

using ::testing::Each;

struct Case {
  uint32_t ranks;
  bool tcp;
  uint32_t islands;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.ranks << " ranks, " << (c.tcp ? "tcp" : c.islands > 1 ? "mixed" : "shm");
}

// The data of every rank, which every rank can make again.
std::vector<std::byte> DataOf(uint32_t seed, uint32_t rank, uint32_t round, uint64_t bytes, DType type) {
  std::mt19937 rng(seed + 7919 * rank + 104729 * round);
  std::vector<std::byte> data(bytes);
  for (uint64_t i = 0; i < bytes; i += 4) {
    uint32_t word = rng();
    if (type == DType::f32) {
      const float value = static_cast<float>(static_cast<int32_t>(word)) / 1e8f;
      std::memcpy(&word, &value, 4);
    } else if (type == DType::f16 || type == DType::bf16) {
      word = (word & 0xBFFFBFFF) | 0x20002000;  // finite numbers of moderate size
    }
    std::memcpy(data.data() + i, &word, std::min<uint64_t>(4, bytes - i));
  }
  return data;
}

std::vector<std::byte> Sum(const Rank& rank, uint32_t round, simd::Reduction what, uint64_t first, uint64_t bytes,
                           uint64_t all, uint32_t size) {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<const void*> sources;
  for (uint32_t p = 0; p < rank.team.size; ++p) inputs.push_back(DataOf(rank.seed, p, round, all, what.type));
  for (auto& input : inputs) sources.push_back(input.data() + first);
  std::vector<std::byte> result(bytes);
  void* sinks[] = {result.data()};
  // Large calls on several hosts add up within each host first, halves excepted (layers.cc).
  const Layers& layers = rank.team.layers;
  std::vector<std::vector<std::byte>> sums;
  if (layers.used() && all > kInlineBytes && what.type != DType::f16 && what.type != DType::bf16) {
    std::vector<const void*> of_hosts;
    for (uint32_t h = 0; h < layers.hosts; ++h) {
      std::vector<const void*> near;
      for (uint32_t l = 0; l < layers.per_host; ++l) near.push_back(sources[layers.At(h, l)]);
      sums.emplace_back(bytes);
      void* sum[] = {sums.back().data()};
      simd::ReduceInto(what, near, sum, bytes / size, simd::Stores::kPlain);
    }
    for (const auto& sum : sums) of_hosts.push_back(sum.data());
    sources = of_hosts;
  }
  simd::ReduceInto(what, sources, sinks, bytes / size, simd::Stores::kPlain);
  return result;
}

class Operations : public ::testing::TestWithParam<Case> {
 protected:
  void Run(const std::function<void(Rank&)>& body) {
    const Case& c = GetParam();
    EXPECT_THAT(RunTeam({c.ranks, c.tcp, c.islands}, body), Each(0));
  }
};

// Fills the in-buffer at `in` and runs the call with both places set.
Status Call(Rank& rank, GroupCall call, std::byte* in, uint64_t in_bytes, std::byte* out, uint64_t out_bytes) {
  call.in = in_bytes > 0 ? in : nullptr;
  call.out = out_bytes > 0 ? out : nullptr;
  call.in_bytes = in_bytes;
  call.out_bytes = out_bytes;
  call.in_place = rank.PlaceOf(in, in_bytes);
  call.out_place = rank.PlaceOf(out, out_bytes);
  return rank.Do(std::move(call));
}

const uint64_t kCounts[] = {1, 7, 1000, 4097, 100003};

TEST_P(Operations, ReduceEverywhereToOneAndByBlocks) {
  Run([](Rank& rank) {
    const uint32_t n = rank.team.size, me = rank.team.rank;
    uint32_t round = 0;
    for (const uint32_t hccl : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 10u, 11u}) {
      for (const uint32_t op : {0u, 1u, 2u, 3u}) {
        const uint64_t count = kCounts[(round / 3 + hccl) % std::size(kCounts)] + round % 3;
        const uint32_t size = InfoOf(hccl).bytes;
        const simd::Reduction what{InfoOf(hccl).dtype, *ReduceOpOf(op)};
        for (const Keep keep : {Keep::kAll, Keep::kRoot, Keep::kBlock}) {
          ++round;
          const uint64_t result = count * size, input = keep == Keep::kBlock ? result * n : result;
          std::byte* in = rank.memory + (round % 5) * size;
          const bool in_place = round % 2 == 0;
          std::byte* out = !in_place ? rank.memory + (24u << 20) : keep == Keep::kBlock ? in + me * result : in;
          const auto mine = DataOf(rank.seed, me, round, input, what.type);
          std::memcpy(in, mine.data(), input);
          GroupCall call;
          call.print.op = keep == Keep::kAll ? Op::kAllReduce : keep == Keep::kRoot ? Op::kReduce : Op::kReduceScatter;
          call.print.type = static_cast<uint8_t>(hccl);
          call.print.reduce = static_cast<uint8_t>(op);
          call.print.count = count;
          call.print.root = keep == Keep::kRoot ? round % n : 0;
          call.reduce = Reducing{what, keep, count, size, false};
          const bool gets = keep != Keep::kRoot || call.print.root == me;
          const Status status = Call(rank, std::move(call), in, input, out, gets ? result : 0);
          RANK_CHECK(status.ok(), "%s", status.Message().c_str());
          if (!gets) continue;
          const auto want = Sum(rank, round, what, keep == Keep::kBlock ? me * result : 0, result, input, size);
          RANK_CHECK(std::memcmp(out, want.data(), result) == 0, "rank %u type %u op %u keep %d count %lu round %u", me,
                     hccl, op, static_cast<int>(keep), count, round);
        }
      }
    }
  });
}

TEST_P(Operations, GatherBroadcastScatterExchange) {
  Run([](Rank& rank) {
    const uint32_t n = rank.team.size, me = rank.team.rank;
    for (uint32_t round = 1; round <= 40; ++round) {
      const uint64_t bytes = kCounts[round % std::size(kCounts)] + round;
      const uint32_t root = round % n;
      std::byte* in = rank.memory + round % 7;
      std::byte* out = rank.memory + (24u << 20) + round % 3;
      GroupCall call;
      call.print.count = bytes;
      uint64_t in_bytes = bytes, out_bytes = bytes;
      switch (round % 4) {
        case 0:
          call.print.op = Op::kAllGather;
          out_bytes = bytes * n;
          if (round % 8 == 0) in = out + me * bytes;
          for (uint32_t p = 0; p < n; ++p) call.pulls.push_back({p, 0, p * bytes, bytes});
          break;
        case 1:
          call.print.op = Op::kBroadcast;
          call.print.root = root;
          in_bytes = me == root ? bytes : 0;
          out_bytes = me == root ? 0 : bytes;
          if (me != root) call.pulls = {{root, 0, 0, bytes}};
          break;
        case 2:
          call.print.op = Op::kScatter;
          call.print.root = root;
          in_bytes = me == root ? bytes * n : 0;
          call.pulls = {{root, me * bytes, 0, bytes}};
          break;
        default:
          call.print.op = Op::kAlltoAll;
          in_bytes = out_bytes = bytes * n;
          for (uint32_t p = 0; p < n; ++p) call.pulls.push_back({p, me * bytes, p * bytes, bytes});
          break;
      }
      const Op op = call.print.op;
      const auto mine = DataOf(rank.seed, me, round, in_bytes, DType::i8);
      if (in_bytes > 0) std::memcpy(in, mine.data(), in_bytes);
      const Status status = Call(rank, std::move(call), in, in_bytes, out, out_bytes);
      RANK_CHECK(status.ok(), "%s", status.Message().c_str());
      for (uint32_t p = 0; out_bytes > 0 && p < n; ++p) {
        const uint32_t from = op == Op::kAllGather || op == Op::kAlltoAll ? p : root;
        const uint64_t all = op == Op::kScatter || op == Op::kAlltoAll ? bytes * n : bytes;
        const auto data = DataOf(rank.seed, from, round, all, DType::i8);
        const uint64_t offset = all == bytes ? 0 : me * bytes;
        const std::byte* at = out_bytes == bytes * n ? out + p * bytes : out;
        RANK_CHECK(std::memcmp(at, data.data() + offset, bytes) == 0, "%s rank %u from %u bytes %lu round %u",
                   NameOf(op), me, from, bytes, round);
      }
    }
  });
}

// Sizes that differ by rank; rank r gives rank p Size(r, p) bytes.
TEST_P(Operations, ExchangeDifferentSizes) {
  Run([](Rank& rank) {
    const uint32_t n = rank.team.size, me = rank.team.rank;
    for (uint32_t round = 1; round <= 12; ++round) {
      const auto size = [&](uint32_t from, uint32_t to) {
        return (from * 7919 + to * 104729 + round * 31) % (round % 2 != 0 ? 50 : 20000);
      };
      GroupCall call;
      call.print.op = Op::kAlltoAllV;
      uint64_t in_bytes = 0, out_bytes = 0;
      for (uint32_t p = 0; p < n; ++p) {
        call.table.push_back(in_bytes);
        call.table.push_back(size(me, p));
        in_bytes += size(me, p) + 3;
        call.pulls.push_back({p, Pull::kPeerKnows, out_bytes, size(p, me)});
        out_bytes += size(p, me) + 5;
      }
      std::byte *in = rank.memory, *out = rank.memory + (24u << 20);
      const auto mine = DataOf(rank.seed, me, round, in_bytes, DType::i8);
      std::memcpy(in, mine.data(), in_bytes);
      const auto pulls = call.pulls;
      const Status status = Call(rank, std::move(call), in, in_bytes, out, out_bytes);
      RANK_CHECK(status.ok(), "%s", status.Message().c_str());
      for (uint32_t p = 0; p < n; ++p) {
        uint64_t at = 0;
        for (uint32_t k = 0; k < me; ++k) at += size(p, k) + 3;
        const auto theirs = DataOf(rank.seed, p, round, at + size(p, me) + 8, DType::i8);
        RANK_CHECK(std::memcmp(out + pulls[p].to, theirs.data() + at, size(p, me)) == 0, "rank %u from %u round %u", me,
                   p, round);
      }
    }
  });
}

TEST_P(Operations, SendsAndReceivesInABatchAndAlone) {
  Run([](Rank& rank) {
    const uint32_t n = rank.team.size, me = rank.team.rank;
    for (uint32_t round = 1; round <= 10; ++round) {
      const uint64_t bytes = kCounts[round % std::size(kCounts)];
      std::vector<PairItem> items;
      // Two messages to every other rank, and one to itself.
      for (uint32_t p = 0; p < n; ++p) {
        for (uint32_t k = 0; k < (p == me ? 1u : 2u); ++k) {
          for (const bool send : {false, true}) {
            PairItem item;
            item.send = send;
            item.peer = p;
            item.print.op = Op::kSendRecv;
            item.print.count = item.bytes = bytes + k;
            item.data = rank.memory + (send ? 0u : 24u << 20) + (p * 2 + k) * 110000;
            item.place = rank.PlaceOf(item.data, item.bytes);
            if (send) {
              const auto data = DataOf(rank.seed, me * 100 + p * 2 + k, round, item.bytes, DType::i8);
              std::memcpy(item.data, data.data(), item.bytes);
            }
            items.push_back(item);
          }
        }
      }
      const auto copy = items;
      const Status status = rank.Do(std::move(items));
      RANK_CHECK(status.ok(), "%s", status.Message().c_str());
      for (const PairItem& item : copy) {
        if (item.send) continue;
        const uint64_t k = item.bytes - bytes;
        const auto data =
            DataOf(rank.seed, item.peer * 100 + me * 2 + static_cast<uint32_t>(k), round, item.bytes, DType::i8);
        RANK_CHECK(std::memcmp(item.data, data.data(), item.bytes) == 0, "rank %u from %u round %u", me, item.peer,
                   round);
      }
    }
  });
}

TEST_P(Operations, ADifferentCallIsAnErrorOnEveryRankThatNamesBoth) {
  const uint32_t n = GetParam().ranks;
  if (n < 2) GTEST_SKIP() << "one rank agrees with itself";
  Run([n](Rank& rank) {
    const bool odd = rank.team.rank == n - 1;
    GroupCall call;
    call.print.op = Op::kAllReduce;
    call.print.type = 4;
    call.print.count = odd ? 101 : 100;
    call.reduce = Reducing{{DType::f32, simd::ReduceOp::kSum}, Keep::kAll, call.print.count, 4, false};
    const Status status =
        Call(rank, std::move(call), rank.memory, odd ? 404 : 400, rank.memory + 4096, odd ? 404 : 400);
    RANK_CHECK(status.code() == Code::kCommMismatch, "%s", status.Message().c_str());
    const std::string text(status.text());
    const std::string mine = fmt::format("rank {} calls", rank.team.rank),
                      last = fmt::format("rank {} calls", odd ? 0 : n - 1);
    RANK_CHECK(text.find("EI0005") == 0 && text.find(mine) != std::string::npos &&
                   text.find(last) != std::string::npos && text.find("100 x fp32") != std::string::npos &&
                   text.find("101 x fp32") != std::string::npos,
               "%s", text.c_str());
    rank.Meet();  // all have seen it
    std::fflush(nullptr);
    ::_exit(0);
  });
}

TEST_P(Operations, AReceiveOfAnotherCountIsRefusedOnBothSides) {
  if (GetParam().ranks < 2) GTEST_SKIP() << "one rank has no peer";
  Run([](Rank& rank) {
    if (rank.team.rank < 2) {
      PairItem item;
      item.send = rank.team.rank == 0;
      item.peer = 1 - rank.team.rank;
      item.print = {.op = Op::kSendRecv, .type = 2, .count = item.send ? 5u : 6u};
      item.bytes = item.print.count * 4;
      item.data = rank.memory;
      item.place = rank.PlaceOf(item.data, item.bytes);
      const Status status = rank.Do(std::vector<PairItem>{item});
      RANK_CHECK(status.code() == Code::kCommMismatch, "%s", status.Message().c_str());
    }
    rank.Meet();
    std::fflush(nullptr);
    ::_exit(0);
  });
}

INSTANTIATE_TEST_SUITE_P(Teams, Operations,
                         ::testing::Values(Case{1, false, 1}, Case{2, false, 1}, Case{3, false, 1}, Case{8, false, 1},
                                           Case{2, true, 1}, Case{4, true, 1}, Case{5, false, 2}, Case{4, false, 2},
                                           Case{9, false, 3}, Case{8, false, 2}),
                         [](const auto& team) {
                           const Case& c = team.param;
                           return fmt::format("{}_{}", c.tcp ? "tcp" : c.islands > 1 ? "mixed" : "shm", c.ranks);
                         });

}  // namespace
}  // namespace npu::coll::testing
