// Communicators come and go.
#include <algorithm>
#include <cstring>

#include "gen/calls/hccl.h"
#include "runtime/context/devices.h"
#include "shim/hccl/comms.h"
#include "shim/hccl/rank_table.h"

namespace npu::calls {

using coll::AssembleRequest;
using hccl::CommConfig;

namespace {

Status CheckRanks(const char* function, uint32_t ranks, uint32_t rank) {
  if (rank < ranks) return {};
  return Error(Code::kInvalidParam, "EI0003: {}: rank is {} and nRanks {}.", function, rank, ranks)
      .Remedy("Pass at least one rank, and a rank below their number.");
}

Status ByRootInfo(uint32_t ranks, const HcclRootInfo* root_info, uint32_t rank, const CommConfig& config,
                  const char* function, HcclComm* comm) {
  NPU_TRY(hccl::NotNull(root_info, function, "rootInfo"));
  NPU_TRY(hccl::NotNull(comm, function, "comm"));
  NPU_TRY(CheckRanks(function, ranks, rank));
  AssembleRequest request;
  NPU_ASSIGN(request.point, coll::MeetingPoint::Read(root_info->internal));
  request.rank = rank;
  request.ranks = ranks;
  request.name = request.point.id;
  NPU_ASSIGN(request.card, hccl::CurrentCard(function));
  NPU_ASSIGN(request.settings, hccl::SettingsOf(request.card));
  hccl::Group& group = hccl::Group::OfThread();
  if (group.active()) {
    *comm = nullptr;
    group.LaterMake([=] { return hccl::Make(request, config, function, comm); });
    return {};
  }
  return hccl::Make(std::move(request), config, function, comm);
}

Status ByTable(const char* path, uint32_t rank, const CommConfig& config, const char* function, HcclComm* comm) {
  NPU_TRY(hccl::NotNull(path, function, "clusterInfo"));
  NPU_TRY(hccl::NotNull(comm, function, "comm"));
  NPU_ASSIGN(const hccl::RankTable table, hccl::ReadRankTable(path, function));
  NPU_TRY(CheckRanks(function, table.ranks, rank));
  AssembleRequest request;
  request.rank = rank;
  request.ranks = table.ranks;
  request.name = "hccl_world_group";
  NPU_ASSIGN(request.card, hccl::CurrentCard(function));
  NPU_ASSIGN(request.settings, hccl::SettingsOf(request.card));
  request.point.id = table.id;
  request.point.address = table.root_address.empty() ? request.settings.address : table.root_address;
  // Every rank works the port out by itself: that of the root's device.
  NPU_ASSIGN(const coll::Settings of_root, hccl::SettingsOf(table.root_device));
  request.point.port = of_root.host_ports.front();
  request.patience = request.settings.connect_timeout;
  request.announced = false;
  if (rank == 0 && table.ranks > 1) {
    NPU_TRY(coll::OpenMeetingAt(request.point, request.settings));
  }
  return hccl::Make(std::move(request), config, function, comm);
}

}  // namespace

Status HcclGetRootInfo(HcclRootInfo* rootInfo) {
  HCCL_NOT_NULL(rootInfo);
  NPU_ASSIGN(const int card, hccl::CurrentCard(__func__));
  NPU_ASSIGN(const coll::Settings settings, hccl::SettingsOf(card));
  NPU_ASSIGN(const coll::MeetingPoint point, coll::OpenMeeting(settings));
  point.Write(rootInfo->internal);
  return {};
}

// One meeting point serves any number of ranks: of several roots the first is used.
Status HcclGetRootInfoScalable(HcclRootInfo* rootInfo) { return npu::calls::HcclGetRootInfo(rootInfo); }

Status HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank, HcclComm* comm) {
  return ByRootInfo(nRanks, rootInfo, rank, {}, __func__, comm);
}

Status HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                  const HcclCommConfig* config, HcclComm* comm) {
  NPU_ASSIGN(const CommConfig read, hccl::ReadConfig(config, __func__));
  return ByRootInfo(nRanks, rootInfo, rank, read, __func__, comm);
}

Status HcclCommInitRootInfoScalable(uint32_t nRanks, uint32_t nRoot, const HcclRootInfo* rootInfoList, uint32_t rank,
                                    uint32_t, const HcclCommConfig* config, HcclComm* comm) {
  if (nRoot == 0) {
    return Error(Code::kInvalidParam, "EI0003: {}: nRoot is 0.", __func__)
        .Remedy("Pass the blobs of at least one root.");
  }
  NPU_ASSIGN(const CommConfig read, hccl::ReadConfig(config, __func__));
  return ByRootInfo(nRanks, rootInfoList, rank, read, __func__, comm);
}

Status HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank, HcclComm* comm) {
  return ByTable(clusterInfo, rank, {}, __func__, comm);
}

Status HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank, HcclCommConfig* config, HcclComm* comm) {
  NPU_ASSIGN(const CommConfig read, hccl::ReadConfig(config, __func__));
  return ByTable(clusterInfo, rank, read, __func__, comm);
}

Status HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
  HCCL_NOT_NULL(devices);
  HCCL_NOT_NULL(comms);
  std::vector<int32_t> sorted(devices, devices + ndev);
  std::sort(sorted.begin(), sorted.end());
  if (ndev == 0 || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return Error(Code::kInvalidParam, "EI0003: {}: {}.", __func__,
                 ndev == 0 ? "ndev is 0" : "a device stands in the list twice")
        .Remedy("List each device once.");
  }
  std::fill(comms, comms + ndev, nullptr);
  std::vector<AssembleRequest> requests(ndev);
  for (uint32_t i = 0; i < ndev; ++i) {
    NPU_ASSIGN(requests[i].card, rt::PhysicalOf(devices[i], __func__));
    NPU_ASSIGN(requests[i].settings, hccl::SettingsOf(requests[i].card));
    requests[i].rank = i;
    requests[i].ranks = ndev;
  }
  NPU_ASSIGN(const coll::MeetingPoint point, coll::OpenMeeting(requests[0].settings));
  std::vector<std::function<Status()>> works;
  for (uint32_t i = 0; i < ndev; ++i) {
    requests[i].point = point;
    requests[i].name = point.id;
    works.push_back([&, i] { return hccl::Make(requests[i], {}, "HcclCommInitAll", &comms[i]); });
  }
  const Status status = hccl::Together(works);
  if (status.ok()) return {};
  for (uint32_t i = 0; i < ndev; ++i) {
    static_cast<void>(hccl::Destroy(comms[i], __func__));
    comms[i] = nullptr;
  }
  return status;
}

Status HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds, uint64_t subCommId,
                               uint32_t subCommRankId, HcclCommConfig* config, HcclComm* subComm) {
  HCCL_NOT_NULL(config);
  HCCL_NOT_NULL(comm);
  HCCL_NOT_NULL(subComm);
  NPU_ASSIGN(const Ref<hccl::Client> client, hccl::Find(*comm, __func__));
  const Ref<coll::Communicator> held = client->comm();
  coll::Communicator& parent = *held;
  constexpr uint64_t kOutside = 0xFFFFFFFF;
  if (rankIds == nullptr && subCommId == kOutside) {
    *subComm = nullptr;
    return {};
  }
  const auto bad = [](const std::string& what) {
    return Error(Code::kInvalidParam, "EI0003: HcclCreateSubCommConfig: {}.", what)
        .Remedy(
            "List the parent's ranks that take part, in the same order on each of them; ranks outside pass null and "
            "0xFFFFFFFF.");
  };
  if (rankIds == nullptr || subCommId == kOutside)
    return bad("only one of rankIds and subCommId says that this rank is outside");
  if (rankNum == 0 || rankNum > parent.size())
    return bad(fmt::format("rankNum is {}, the parent has {} ranks", rankNum, parent.size()));
  if (subCommRankId >= rankNum) return bad(fmt::format("subCommRankId is {}, rankNum {}", subCommRankId, rankNum));
  for (uint32_t i = 0; i < rankNum; ++i) {
    if (rankIds[i] >= parent.size())
      return bad(fmt::format("rankIds[{}] is {}, the parent has {} ranks", i, rankIds[i], parent.size()));
    if (std::count(rankIds, rankIds + rankNum, rankIds[i]) > 1)
      return bad(fmt::format("rank {} is listed twice", rankIds[i]));
  }
  if (rankIds[subCommRankId] != parent.rank()) {
    return bad(fmt::format("rankIds[{}] is {}, this is rank {} of the parent", subCommRankId, rankIds[subCommRankId],
                           parent.rank()));
  }
  NPU_ASSIGN(const CommConfig read, hccl::ReadConfig(config, __func__));
  AssembleRequest request;
  request.rank = subCommRankId;
  request.ranks = rankNum;
  request.card = parent.card();
  request.name = fmt::format("{}_sub_{}", parent.name(), subCommId);
  request.settings = parent.settings();
  const coll::Member& leader = parent.member(rankIds[0]);
  request.point = {leader.address, static_cast<uint16_t>(leader.port),
                   coll::DerivedId(parent.token(), fmt::format("{}/sub/{}/{}", parent.name(), subCommId, rankIds[0]))};
  if (subCommRankId == 0 && rankNum > 1) NPU_TRY(coll::ServeAt(parent, request.point.id));
  return hccl::Make(std::move(request), read, __func__, subComm);
}

Status HcclCommDestroy(HcclComm comm) {
  hccl::Group& group = hccl::Group::OfThread();
  if (!group.active()) return hccl::Destroy(comm, __func__);
  group.LaterDestroy(comm);
  return {};
}

}  // namespace npu::calls
