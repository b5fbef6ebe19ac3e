// Collectives with values that every rank can work out cheaply: element i of what rank r gives in round n is
// pattern[(i + 31 r + 7 n) mod 8191], a small whole number, so that sums and products are exact in every type.
//
//   Kit kit(seed);
//   auto check = kit.Issue({op, type, reduction, count, round, root}, comm, members, me, stream);
//   synchronise; check();
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>

#include "shim/hccl/rank_process_test.h"
#include "shim/hccl/values_test.h"

namespace hccl_test {

using Bytes = std::vector<unsigned char>;

enum class What {
  kAllReduce,
  kReduce,
  kReduceScatter,
  kReduceScatterV,
  kAllGather,
  kAllGatherV,
  kBroadcast,
  kScatter,
  kAlltoAll,
  kAlltoAllV,
  kAlltoAllVC,
  kRing,   // HcclSend and HcclRecv in a group
  kBatch,  // HcclBatchSendRecv
  kBarrier,
  kEnd
};
inline const char* NameOf(What what) {
  const char* names[] = {"all-reduce",    "reduce",           "reduce-scatter", "reduce-scatter-v", "all-gather",
                         "all-gather-v",  "broadcast",        "scatter",        "all-to-all",       "all-to-all-v",
                         "all-to-all-vc", "send and receive", "batch",          "barrier"};
  return names[static_cast<int>(what)];
}

const HcclDataType kAllTypes[] = {HCCL_DATA_TYPE_FP32,   HCCL_DATA_TYPE_FP16,   HCCL_DATA_TYPE_BFP16,
                                  HCCL_DATA_TYPE_INT8,   HCCL_DATA_TYPE_INT16,  HCCL_DATA_TYPE_INT32,
                                  HCCL_DATA_TYPE_INT64,  HCCL_DATA_TYPE_UINT8,  HCCL_DATA_TYPE_UINT16,
                                  HCCL_DATA_TYPE_UINT32, HCCL_DATA_TYPE_UINT64, HCCL_DATA_TYPE_FP64};

inline bool Reduces(What what) {
  return what == What::kAllReduce || what == What::kReduce || what == What::kReduceScatter ||
         what == What::kReduceScatterV;
}

struct Order {
  What what;
  HcclDataType type = HCCL_DATA_TYPE_FP32;
  HcclReduceOp op = HCCL_REDUCE_SUM;
  size_t count = 0;
  int round = 0;
  uint32_t root = 0;
  bool in_place = false;
};

class Kit {
 public:
  using Check = std::function<void()>;
  static constexpr size_t kPeriod = 8191;

  explicit Kit(unsigned seed) {
    std::mt19937 rng(seed);
    const int64_t values[] = {-2, -1, 1, 2};
    for (int64_t& v : pattern_) v = values[rng() % 4];
  }

  // Members are the ranks' numbers for values; `me` is the place of this process among them.
  Check Issue(const Order& o, HcclComm comm, const std::vector<int>& members, size_t me, aclrtStream stream) {
    const size_t n = members.size(), size = SizeOf(o.type), bytes = o.count * size;
    const auto count = static_cast<uint64_t>(o.count);
    const auto text = [o, n] {
      return std::string(NameOf(o.what)) + " type " + std::to_string(o.type) + " op " + std::to_string(o.op) +
             " count " + std::to_string(o.count) + " round " + std::to_string(o.round) + " of " + std::to_string(n) +
             " ranks";
    };
    const auto same = [text](const Bytes& got, const Bytes& want) {
      EXPECT_TRUE(got == want) << text() << FirstDifference(got, want);
    };
    switch (o.what) {
      case What::kAllReduce: {
        auto in = Buffer(Data(o, members[me], 0, o.count));
        auto out = o.in_place ? in : Buffer(bytes);
        Must(HcclAllReduce(in->at(), out->at(), count, o.type, o.op, comm, stream), text());
        return [=, this] { same(out->Read(0, bytes), Reduced(o, members, 0, o.count)), Keep(in); };
      }
      case What::kReduce: {
        auto in = Buffer(Data(o, members[me], 0, o.count));
        auto out = Buffer(bytes);
        Must(HcclReduce(in->at(), out->at(), count, o.type, o.op, o.root, comm, stream), text());
        return [=, this] {
          if (me == o.root) same(out->Read(0, bytes), Reduced(o, members, 0, o.count));
          Keep(in);
        };
      }
      case What::kReduceScatter: {
        auto in = Buffer(Data(o, members[me], 0, o.count * n));
        auto out = o.in_place ? in : Buffer(bytes);
        const size_t at = o.in_place ? me * bytes : 0;
        Must(HcclReduceScatter(in->at(), out->at(at), count, o.type, o.op, comm, stream), text());
        return [=, this] { same(out->Read(at, bytes), Reduced(o, members, me * o.count, o.count)), Keep(in); };
      }
      case What::kReduceScatterV: {
        auto v = Uneven(o, n);
        auto in = Buffer(Data(o, members[me], 0, static_cast<size_t>(v->total)));
        const auto mine = static_cast<size_t>(v->counts[me]);
        auto out = Buffer(mine * size);
        Must(HcclReduceScatterV(in->at(), v->counts.data(), v->begins.data(), out->at(), mine, o.type, o.op, comm,
                                stream),
             text());
        return [=, this] {
          same(out->Read(0, mine * size), Reduced(o, members, static_cast<size_t>(v->begins[me]), mine));
          Keep(in);
        };
      }
      case What::kAllGather: {
        auto all = Buffer(bytes * n);
        auto in = o.in_place ? all : Buffer(Data(o, members[me], 0, o.count));
        if (o.in_place) all->Write(Data(o, members[me], 0, o.count), me * bytes);
        Must(HcclAllGather(in->at(o.in_place ? me * bytes : 0), all->at(), count, o.type, comm, stream), text());
        return [=, this] {
          for (size_t r = 0; r < n; ++r) same(all->Read(r * bytes, bytes), Data(o, members[r], 0, o.count));
          Keep(in);
        };
      }
      case What::kAllGatherV: {
        auto v = Uneven(o, n);
        const auto mine = static_cast<size_t>(v->counts[me]);
        auto in = Buffer(Data(o, members[me], 0, mine));
        auto all = Buffer(static_cast<size_t>(v->total) * size);
        Must(HcclAllGatherV(in->at(), mine, all->at(), v->counts.data(), v->begins.data(), o.type, comm, stream),
             text());
        return [=, this] {
          for (size_t r = 0; r < n; ++r) {
            const auto theirs = static_cast<size_t>(v->counts[r]);
            same(all->Read(static_cast<size_t>(v->begins[r]) * size, theirs * size), Data(o, members[r], 0, theirs));
          }
          Keep(in);
        };
      }
      case What::kBroadcast: {
        auto data = Buffer(Data(o, members[me], 0, o.count));
        Must(HcclBroadcast(data->at(), count, o.type, o.root, comm, stream), text());
        return [=, this] { same(data->Read(0, bytes), Data(o, members[o.root], 0, o.count)); };
      }
      case What::kScatter: {
        auto in = Buffer(me == o.root ? Data(o, members[me], 0, o.count * n) : Bytes());
        auto out = Buffer(bytes);
        Must(HcclScatter(me == o.root ? in->at() : nullptr, out->at(), count, o.type, o.root, comm, stream), text());
        return [=, this] { same(out->Read(0, bytes), Data(o, members[o.root], me * o.count, o.count)), Keep(in); };
      }
      case What::kAlltoAll: {
        auto in = Buffer(Data(o, members[me], 0, o.count * n)), out = Buffer(bytes * n);
        Must(HcclAlltoAll(in->at(), count, o.type, out->at(), count, o.type, comm, stream), text());
        return [=, this] {
          for (size_t r = 0; r < n; ++r) same(out->Read(r * bytes, bytes), Data(o, members[r], me * o.count, o.count));
          Keep(in);
        };
      }
      case What::kAlltoAllV:
      case What::kAlltoAllVC: {
        struct Plan {
          std::vector<int64_t> give, give_at, take, take_at, matrix;
          std::vector<size_t> begin;  // in each peer's buffer
        };
        auto p = std::make_shared<Plan>();
        const auto elements = [&](size_t from, size_t to) {
          return (from + 2 * to + static_cast<size_t>(o.round)) % 3 * o.count / 2;
        };
        size_t given = 0, taken = 0;
        for (size_t r = 0; r < n; ++r) {
          p->give.push_back(static_cast<int64_t>(elements(me, r)));
          p->take.push_back(static_cast<int64_t>(elements(r, me)));
          p->give_at.push_back(static_cast<int64_t>(given));
          p->take_at.push_back(static_cast<int64_t>(taken));
          given += elements(me, r), taken += elements(r, me);
          size_t before = 0;
          for (size_t q = 0; q < me; ++q) before += elements(r, q);
          p->begin.push_back(before);
          for (size_t q = 0; q < n; ++q) p->matrix.push_back(static_cast<int64_t>(elements(r, q)));
        }
        auto in = Buffer(Data(o, members[me], 0, given)), out = Buffer(taken * size);
        if (o.what == What::kAlltoAllV) {
          Must(HcclAlltoAllV(in->at(), p->give.data(), p->give_at.data(), o.type, out->at(), p->take.data(),
                             p->take_at.data(), o.type, comm, stream),
               text());
        } else {
          Must(HcclAlltoAllVC(in->at(), p->matrix.data(), o.type, out->at(), o.type, comm, stream), text());
        }
        return [=, this] {
          for (size_t r = 0; r < n; ++r) {
            const auto theirs = static_cast<size_t>(p->take[r]);
            same(out->Read(static_cast<size_t>(p->take_at[r]) * size, theirs * size),
                 Data(o, members[r], p->begin[r], theirs));
          }
          Keep(in);
        };
      }
      case What::kRing:
      case What::kBatch: {
        const auto next = static_cast<uint32_t>((me + 1) % n), before = static_cast<uint32_t>((me + n - 1) % n);
        auto in = Buffer(Data(o, members[me], 0, o.count)), out = Buffer(bytes);
        if (o.what == What::kRing) {
          Must(HcclGroupStart(), text());
          Must(HcclSend(in->at(), count, o.type, next, comm, stream), text());
          Must(HcclRecv(out->at(), count, o.type, before, comm, stream), text());
          Must(HcclGroupEnd(), text());
        } else {
          HcclSendRecvItem items[] = {{HCCL_SEND, in->at(), count, o.type, next},
                                      {HCCL_RECV, out->at(), count, o.type, before}};
          Must(HcclBatchSendRecv(items, 2, comm, stream), text());
        }
        return [=, this] { same(out->Read(0, bytes), Data(o, members[before], 0, o.count)), Keep(in); };
      }
      case What::kBarrier:
        Must(HcclBarrier(comm, stream), text());
        return [] {};
      case What::kEnd:
        break;
    }
    return [] {};
  }

 private:
  struct Parts {
    std::vector<int64_t> counts, begins;
    int64_t total = 0;
  };
  // Of a V form: how much each rank has.
  static std::shared_ptr<Parts> Uneven(const Order& o, size_t n) {
    auto v = std::make_shared<Parts>();
    for (size_t r = 0; r < n; ++r) {
      v->begins.push_back(v->total);
      v->counts.push_back(static_cast<int64_t>((r + static_cast<size_t>(o.round)) % 3 * o.count / 2));
      v->total += v->counts.back();
    }
    return v;
  }
  // Named in a check, a buffer lives until the call has ended.
  static void Keep(const std::shared_ptr<DeviceBytes>&) {}
  static std::shared_ptr<DeviceBytes> Buffer(size_t bytes) { return std::make_shared<DeviceBytes>(bytes); }
  static std::shared_ptr<DeviceBytes> Buffer(const Bytes& data) {
    auto buffer = Buffer(data.size());
    buffer->Write(data);
    return buffer;
  }
  static void Must(HcclResult result, const std::string& text) {
    EXPECT_EQ(result, HCCL_SUCCESS) << text << ": " << RecentError();
  }
  static std::string FirstDifference(const Bytes& got, const Bytes& want) {
    size_t i = 0;
    while (i < std::min(got.size(), want.size()) && got[i] == want[i]) ++i;
    return ": byte " + std::to_string(i) + " of " + std::to_string(want.size()) + " is the first that differs";
  }
  static size_t Shift(const Order& o, int rank) {
    return 31 * static_cast<size_t>(rank) + 7 * static_cast<size_t>(o.round);
  }

  // `one` period of bytes, from element `first` on, repeated.
  static Bytes Tile(const Bytes& one, size_t first, size_t count, size_t size) {
    Bytes data(count * size);
    size_t done = 0;
    while (done < data.size()) {
      const size_t from = (first * size + done) % one.size();
      const size_t n = std::min(one.size() - from, data.size() - done);
      std::memcpy(data.data() + done, one.data() + from, n);
      done += n;
    }
    return data;
  }
  Bytes Data(const Order& o, int rank, size_t first, size_t count) {
    Bytes& one = encoded_[o.type];
    if (one.empty()) {
      one.resize(kPeriod * SizeOf(o.type));
      for (size_t i = 0; i < kPeriod; ++i) Encode(o.type, Fit(o.type, pattern_[i]), one.data() + i * SizeOf(o.type));
    }
    return Tile(one, (first + Shift(o, rank)) % kPeriod, count, SizeOf(o.type));
  }
  Bytes Reduced(const Order& o, const std::vector<int>& members, size_t first, size_t count) {
    Bytes one(kPeriod * SizeOf(o.type));
    for (size_t i = 0; i < kPeriod; ++i) {
      int64_t value = Fit(o.type, pattern_[(i + Shift(o, members[0])) % kPeriod]);
      for (size_t r = 1; r < members.size(); ++r) {
        const int64_t next = Fit(o.type, pattern_[(i + Shift(o, members[r])) % kPeriod]);
        value = o.op == HCCL_REDUCE_SUM    ? value + next
                : o.op == HCCL_REDUCE_PROD ? value * next
                : o.op == HCCL_REDUCE_MAX  ? std::max(value, next)
                                           : std::min(value, next);
      }
      Encode(o.type, value, one.data() + i * SizeOf(o.type));
    }
    return Tile(one, first % kPeriod, count, SizeOf(o.type));
  }

  int64_t pattern_[kPeriod];
  std::map<int, Bytes> encoded_;
};

inline bool Full() { return Number("ANYNPU_TEST_FULL") != 0; }

}  // namespace hccl_test
