// Random sequences of collectives on random groups of ranks and two streams: right values and no hang.
#include "tests/coll/kit.h"

namespace hccl_test {
namespace {

using ::testing::Each;

struct Group {
  HcclComm comm = nullptr;
  std::vector<int> members;
  size_t me = 0;
  bool inside = false;
};

void MakeGroup(HcclComm* world, const Process& p, std::vector<int> members, uint64_t id, Group* group) {
  group->members = std::move(members);
  std::vector<uint32_t> ids(group->members.begin(), group->members.end());
  const auto at = std::find(group->members.begin(), group->members.end(), p.rank);
  group->inside = at != group->members.end();
  group->me = static_cast<size_t>(at - group->members.begin());
  HcclCommConfig config = UnsetConfig();
  HCCL_OK(HcclCreateSubCommConfig(world, group->inside ? static_cast<uint32_t>(ids.size()) : 0,
                                  group->inside ? ids.data() : nullptr, group->inside ? id : 0xFFFFFFFF,
                                  group->inside ? static_cast<uint32_t>(group->me) : 0, &config, &group->comm));
}

TEST(Body, DISABLED_Sequences) {
  Process p;
  p.Start(p.rank);
  aclrtStream streams[2] = {p.stream, nullptr};
  HCCL_OK(aclrtCreateStream(&streams[1]));
  HcclComm world = nullptr;
  p.Join(&world);
  ASSERT_FALSE(::testing::Test::HasFatalFailure());
  Kit kit(p.seed);
  std::mt19937 rng(p.seed);  // all ranks draw the same
  std::vector<Group> groups(1);
  groups[0].comm = world;
  groups[0].inside = true;
  groups[0].me = static_cast<size_t>(p.rank);
  for (int r = 0; r < p.ranks; ++r) groups[0].members.push_back(r);
  const int sequences = Number("HCCL_TEST_SEQUENCES");
  int round = 0;
  for (int s = 0; s < sequences; ++s) {
    if (rng() % 8 == 0) {  // another group; at most eight at a time
      std::vector<int> members = groups[0].members;
      std::shuffle(members.begin(), members.end(), rng);
      members.resize(1 + rng() % members.size());
      const size_t place = groups.size() < 8 ? groups.size() : 1 + rng() % (groups.size() - 1);
      if (place == groups.size()) {
        groups.emplace_back();
      } else if (groups[place].inside) {
        HCCL_OK(HcclCommDestroy(groups[place].comm));
      }
      groups[place] = Group();
      MakeGroup(&world, p, members, static_cast<uint64_t>(s + 1), &groups[place]);
      ASSERT_FALSE(::testing::Test::HasFatalFailure());
    }
    std::vector<Kit::Check> checks;
    for (int calls = 1 + static_cast<int>(rng() % 5); calls > 0; --calls) {
      Group& group = groups[rng() % groups.size()];
      Order o{static_cast<What>(rng() % static_cast<unsigned>(What::kEnd)), kAllTypes[rng() % std::size(kAllTypes)]};
      o.op = static_cast<HcclReduceOp>(rng() % 4);
      const size_t scale[] = {1, 40, 3000, 3000, 30000};
      o.count = rng() % (scale[rng() % 5] + 1);
      o.round = ++round;
      o.root = static_cast<uint32_t>(rng() % group.members.size());
      o.in_place = rng() % 2 == 0;
      aclrtStream stream = streams[rng() % 2];
      if (group.inside) checks.push_back(kit.Issue(o, group.comm, group.members, group.me, stream));
    }
    if (rng() % 3 != 0) {
      for (aclrtStream stream : streams) HCCL_OK(aclrtSynchronizeStream(stream));
      for (const auto& check : checks) check();
    } else {
      for (aclrtStream stream : streams) HCCL_OK(aclrtSynchronizeStream(stream));  // buffers go with the checks
    }
    if (::testing::Test::HasFailure()) return;
  }
  for (Group& group : groups) {
    if (group.inside) HCCL_OK(HcclCommDestroy(group.comm));
  }
}

TEST(Sequences, RandomCallsOnRandomGroups) {
  const std::string many = Full() ? "10000" : "250";
  for (const char* transport : {"auto", "tcp"}) {
    const bool tcp = std::string(transport) == "tcp";
    EXPECT_THAT(
        Ranks("Sequences", 4,
              {{"HCCL_TEST_SEQUENCES", tcp ? (Full() ? "1000" : "60") : many}, {"ANYNPU_HCCL_TRANSPORT", transport}})
            .Codes(seconds(3000)),
        Each(0))
        << transport;
  }
}

}  // namespace
}  // namespace hccl_test
