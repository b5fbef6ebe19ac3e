// The transformer boost library's C++ interface as far as torch_npu links it. Its operators are owed and answer by
// name.
#include <cstdint>

#include "base/status/boundary.h"

namespace atb {

class Context;
class Operation;
struct Tensor;
namespace infer {
struct ElewiseParam;
struct GroupTopkParam;
struct LinearParam;
struct PagedAttentionParam;
struct ReshapeAndCacheParam;
struct RmsNormParam;
struct RopeParam;
struct SelfAttentionParam;
}  // namespace infer

class Utils {
 public:
  static uint64_t GetTensorSize(const Tensor& tensor);
};
uint64_t Utils::GetTensorSize(const Tensor&) {
  npu::boundary::Owed("atb::Utils::GetTensorSize", npu::AclCode);
  return 0;
}

int CreateContext(Context** context) {
  if (context != nullptr) *context = nullptr;
  return npu::boundary::Owed("atb::CreateContext", npu::AclCode);
}
int DestroyContext(Context*) { return 0; }
int DestroyOperation(Operation*) { return 0; }

template <class Param>
int CreateOperation(const Param& param, Operation** operation);

#define NPU_ATB_OPERATION(Param)                                                  \
  template <>                                                                     \
  int CreateOperation<infer::Param>(const infer::Param&, Operation** operation) { \
    if (operation != nullptr) *operation = nullptr;                               \
    return npu::boundary::Owed("atb::CreateOperation<" #Param ">", npu::AclCode); \
  }
NPU_ATB_OPERATION(ElewiseParam)
NPU_ATB_OPERATION(GroupTopkParam)
NPU_ATB_OPERATION(LinearParam)
NPU_ATB_OPERATION(PagedAttentionParam)
NPU_ATB_OPERATION(ReshapeAndCacheParam)
NPU_ATB_OPERATION(RmsNormParam)
NPU_ATB_OPERATION(RopeParam)
NPU_ATB_OPERATION(SelfAttentionParam)
#undef NPU_ATB_OPERATION

}  // namespace atb
