// An operator library of a user: aclnnCustScale, with a kernel that can go wrong.
#include "client.h"
#include "ops/core/plan.h"
#include "shim/opapi/phase.h"

namespace strict_cases {
namespace {

using npu::ops::Call, npu::ops::Kind, npu::ops::OpDef, npu::ops::Param, npu::ops::Role;

constexpr Param kParams[] = {{"x", Kind::tensor, Role::in}, {"y", Kind::tensor, Role::out}, {"fault", Kind::int64, Role::in}};

npu::Status Scale(const Call& call) {
  const auto& x = call.args[npu::ops::TensorIn{{{0}}}];
  const auto& y = call.args[npu::ops::TensorOut{{{1}}}];
  const auto fault = static_cast<Fault>(call.args[npu::ops::IntIn{{2}}]);
  const auto* from = static_cast<const volatile float*>(x.data);
  auto* to = static_cast<volatile float*>(y.data);
  const int64_t n = x.Numel();
  const int64_t far = fault == Fault::kReadsFar ? 512 : 0;  // in the page behind the block
  for (int64_t i = fault == Fault::kWritesBefore ? -1 : 0; i < n + (fault == Fault::kWritesBeyond ? 1 : 0); ++i) {
    to[i] = 2 * from[i < 0 || i >= n ? 0 : i + far];
  }
  return {};
}

constinit const OpDef kScale = [] {
  OpDef op;
  op.name = "aclnnCustScale";
  op.params = kParams;
  op.run = &Scale;
  return op;
}();

}  // namespace

void CustomScale(void* x, void* y, int64_t n, Fault fault, aclrtStream stream) {
  aclTensor* in = Floats(x, n);
  aclTensor* out = Floats(y, n);
  const uint64_t words[] = {reinterpret_cast<uint64_t>(in), reinterpret_cast<uint64_t>(out), static_cast<uint64_t>(fault)};
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  OK(npu::opapi::Phase1(kScale, words, &bytes, &executor));
  OK(npu::opapi::Phase2(kScale, nullptr, 0, executor, stream));
  aclDestroyTensor(in);
  aclDestroyTensor(out);
}

}  // namespace strict_cases
