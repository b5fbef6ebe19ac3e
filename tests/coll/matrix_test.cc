// Every collective with every type, count and number of ranks.
#include "tests/coll/kit.h"

namespace hccl_test {
namespace {

using ::testing::Each;
constexpr size_t kLarge = 1 << 20;

// HCCL_TEST_COUNTS: counts; HCCL_TEST_TYPES: how many types, drawn by the seed.
TEST(Body, DISABLED_Matrix) {
  Process p;
  p.Start(p.rank);
  HcclComm comm = nullptr;
  p.Join(&comm);
  ASSERT_FALSE(::testing::Test::HasFatalFailure());
  Kit kit(p.seed);
  std::mt19937 rng(p.seed);  // the same on all ranks
  std::vector<int> members;
  for (int r = 0; r < p.ranks; ++r) members.push_back(r);
  std::vector<HcclDataType> types(std::begin(kAllTypes), std::end(kAllTypes));
  std::shuffle(types.begin(), types.end(), rng);
  types.resize(std::min<size_t>(types.size(), static_cast<size_t>(Number("HCCL_TEST_TYPES", 99))));
  std::vector<size_t> counts;
  std::istringstream text(std::getenv("HCCL_TEST_COUNTS"));
  for (size_t count = 0; text >> count;) counts.push_back(count);
  const HcclReduceOp ops[] = {HCCL_REDUCE_SUM, HCCL_REDUCE_PROD, HCCL_REDUCE_MAX, HCCL_REDUCE_MIN};
  int round = 0;
  for (const size_t count : counts) {
    for (const HcclDataType type : types) {
      std::vector<Kit::Check> checks;
      for (int w = 0; w < static_cast<int>(What::kEnd); ++w) {
        const auto what = static_cast<What>(w);
        if (p.ranks == 1 && (what == What::kRing || what == What::kBatch) && count == 0) continue;
        for (const HcclReduceOp op : ops) {
          if (op != HCCL_REDUCE_SUM && !Reduces(what)) continue;
          // Products of 16 ranks leave the whole numbers that halves hold exactly.
          if (op == HCCL_REDUCE_PROD && p.ranks > 8 && SizeOf(type) < 4) continue;
          ++round;
          checks.push_back(
              kit.Issue({what, type, op, count, round, static_cast<uint32_t>(round % p.ranks), round % 2 == 0}, comm,
                        members, static_cast<size_t>(p.rank), p.stream));
          if (count < kLarge) continue;
          HCCL_OK(aclrtSynchronizeStream(p.stream));  // one call's buffers at a time
          checks.back()();
          checks.clear();
        }
      }
      HCCL_OK(aclrtSynchronizeStream(p.stream));
      for (const auto& check : checks) check();
      if (::testing::Test::HasFailure()) return;
    }
  }
  HCCL_OK(HcclCommDestroy(comm));
}

void RunMatrix(int ranks, const std::string& counts, int types, const std::string& transport = "auto") {
  const auto start = Clock::now();
  EXPECT_THAT(Ranks("Matrix", ranks,
                    {{"HCCL_TEST_COUNTS", counts},
                     {"HCCL_TEST_TYPES", std::to_string(types)},
                     {"ANYNPU_CARDS", "16"},
                     {"ANYNPU_HBM", "4G"},
                     {"ANYNPU_HCCL_TRANSPORT", transport}})
                  .Codes(seconds(3400)),
              Each(0))
      << ranks << " ranks, counts " << counts << ", " << transport;
  std::printf("%d ranks, %s: %.1f s\n", ranks, transport.c_str(),
              std::chrono::duration<double>(Clock::now() - start).count());
}

constexpr const char* kCounts = "0 1 7 128 23808 100003";

TEST(Matrix, EveryCallTypeAndCountOnOneToThreeRanks) {
  for (const int ranks : {1, 2, 3}) RunMatrix(ranks, Full() ? kCounts : "0 1 7 128 23808", 99);
}

TEST(Matrix, MoreRanks) {
  for (const int ranks : {4, 8, 16}) RunMatrix(ranks, Full() ? kCounts : "7 4099", Full() ? 99 : 3);
}

TEST(Matrix, LargeCounts) { RunMatrix(Full() ? 4 : 2, Full() ? "100003 16777216" : "100003", Full() ? 12 : 2); }

TEST(Matrix, OverSockets) {
  for (const int ranks : {2, 4}) RunMatrix(ranks, Full() ? kCounts : "0 7 4099", Full() ? 99 : 3, "tcp");
}

}  // namespace
}  // namespace hccl_test
