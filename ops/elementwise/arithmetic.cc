// Sums, products, quotients and their in-place and scalar variants.
#include "gen/abi/ops.h"
#include "ops/elementwise/family.h"

namespace npu::ops {

using abi::Add, abi::Adds, abi::InplaceAdd, abi::InplaceAdds, abi::AddV3;
NPU_OP(Add) = Binary<Add>(simd::kAdd, Add::self, Add::other, Add::out).Scaled(Add::alpha).Like("torch.add(self, other, alpha=alpha)");
NPU_OP(Adds) = Binary<Adds>(simd::kAdd, Adds::self, Adds::other, Adds::out).Scaled(Adds::alpha).Like("torch.add(self, other, alpha=alpha)");
NPU_OP(AddV3) = Binary<AddV3>(simd::kAdd, AddV3::self, AddV3::other, AddV3::out).Scaled(AddV3::alpha).Like("torch.add(torch.tensor(self), other, alpha=alpha)");
NPU_OP(InplaceAdd) = Binary<InplaceAdd>(simd::kAdd, InplaceAdd::selfRef, InplaceAdd::other, InplaceAdd::selfRef).Scaled(InplaceAdd::alpha).Like("selfRef.add_(other, alpha=alpha)");
NPU_OP(InplaceAdds) = Binary<InplaceAdds>(simd::kAdd, InplaceAdds::selfRef, InplaceAdds::other, InplaceAdds::selfRef).Scaled(InplaceAdds::alpha).Like("selfRef.add_(other, alpha=alpha)");

}  // namespace npu::ops
