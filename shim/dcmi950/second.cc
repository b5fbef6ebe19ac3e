// What the second generation does in its own way; the rest is the first with one number (abi/dcmi950.tsv).
#include "gen/calls/dcmi950.h"
#include "shim/dcmi950/place.h"

namespace npu::dcmi {

Result<Place> PlaceOf(const char* function, int device) {
  NPU_TRY(NeedInit(function));
  NPU_ASSIGN(const World world, LookAtMachine());
  if (device >= 0 && static_cast<size_t>(device) < world->cards.size()) {
    return Place{device / world->profile->dies_per_card, device % world->profile->dies_per_card};
  }
  return Error(Code::kInvalidParam, "{}: there is no device {}; machine {} has {}.", function, device, world->name,
               world->cards.size())
      .Remedy("Take the ids that dcmiv2_get_device_list gives.");
}

}  // namespace npu::dcmi

namespace npu::calls {

using namespace npu::dcmi;  // NOLINT: the adapters of this library

Status dcmiv2_init() {
  NPU_TRY(CheckAccess("dcmiv2_init"));
  NPU_ASSIGN(const World world, LookAtMachine());
  if (!world->profile->dcmi_v2) return npu::Unsupported("dcmiv2_init", "the driver of this chip serves dcmi_init");
  MarkInitialised();
  return {};
}

Status dcmiv2_get_device_list(int* device_list, int* device_cnt, int list_len) {
  NPU_TRY(NeedPointers("dcmiv2_get_device_list", {device_list, device_cnt}));
  NPU_TRY(NeedInit("dcmiv2_get_device_list"));
  NPU_ASSIGN(const World world, LookAtMachine());
  const int count = static_cast<int>(world->cards.size());
  if (list_len < count) {
    return Error(Code::kInvalidParam, "dcmiv2_get_device_list: list_len is {}, but there are {} devices.", list_len,
                 count)
        .Remedy("Pass a list of 64 entries.");
  }
  *device_cnt = count;
  for (int i = 0; i < count; ++i) device_list[i] = i;
  return {};
}

Status dcmiv2_get_all_device_count(int* all_device_count) {
  NPU_TRY(NeedPointers("dcmiv2_get_all_device_count", {all_device_count}));
  NPU_TRY(NeedInit("dcmiv2_get_all_device_count"));
  NPU_ASSIGN(const World world, LookAtMachine());
  *all_device_count = static_cast<int>(world->cards.size());
  return {};
}

Status dcmiv2_get_chip_phy_id_by_dev_id(int dev_id, unsigned int* phyid) {
  NPU_TRY(NeedPointers("dcmiv2_get_chip_phy_id_by_dev_id", {phyid}));
  NPU_TRY(PlaceOf("dcmiv2_get_chip_phy_id_by_dev_id", dev_id).status());
  *phyid = static_cast<unsigned>(dev_id);
  return {};
}

Status dcmiv2_get_dev_id_by_chip_phy_id(int phyid, unsigned int* dev_id) {
  NPU_TRY(NeedPointers("dcmiv2_get_dev_id_by_chip_phy_id", {dev_id}));
  NPU_TRY(PlaceOf("dcmiv2_get_dev_id_by_chip_phy_id", phyid).status());
  *dev_id = static_cast<unsigned>(phyid);
  return {};
}

Status dcmiv2_get_dcmi_version(char* dcmi_ver, unsigned int len) {
  NPU_ASSIGN(const World world, LookAtMachine());
  return CopyText("dcmiv2_get_dcmi_version", world->driver, dcmi_ver, len);
}

Status dcmiv2_get_device_elabel_info(int dev_id, dcmi_elabel_info* elabel_info) {
  NPU_ASSIGN(const Place at, PlaceOf("dcmiv2_get_device_elabel_info", dev_id));
  return calls::dcmi_get_card_elabel_v2(at.card, elabel_info);
}

}  // namespace npu::calls
