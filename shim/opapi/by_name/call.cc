#include "shim/opapi/by_name/call.h"

#include <bit>
#include <cstring>

#include "aclnn/acl_meta.h"
#include "base/parity/parity.h"
#include "device/hbm/hbm.h"
#include "ops/core/plan.h"
#include "shim/opapi/phase.h"
#include "tensor/scalar.h"

namespace npu::opapi {
namespace {

template <class T>
uint64_t WordOf(const T* p) {
  return reinterpret_cast<uint64_t>(p);
}

template <class T>
const T* Attribute(const ops::named::Request& r, std::string_view name) {
  if (r.attributes == nullptr) return nullptr;
  const auto found = r.attributes->values.find(std::string(name));
  return found == r.attributes->values.end() ? nullptr : std::get_if<T>(&found->second);
}

}  // namespace

std::vector<int64_t> DenseStrides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = step;
    step *= shape[d];
  }
  return strides;
}

uint64_t NamedCall::Tensor(const ops::named::Operand& operand, std::span<const int64_t> shape,
                           std::span<const int64_t> strides, int64_t offset) {
  const std::vector<int64_t> dense = DenseStrides(shape);
  const int64_t item = std::max(1, ItemSize(operand.dtype)), elements = static_cast<int64_t>(operand.bytes) / item;
  aclTensor* t = aclCreateTensor(shape.data(), shape.size(), static_cast<aclDataType>(operand.dtype),
                                 strides.empty() ? dense.data() : strides.data(), offset,
                                 static_cast<aclFormat>(operand.format), &elements, 1, operand.data);
  objects_.emplace_back(t, [](void* p) { aclDestroyTensor(static_cast<aclTensor*>(p)); });
  return WordOf(t);
}

uint64_t NamedCall::Array(std::span<const int64_t> values) {
  aclIntArray* a = aclCreateIntArray(values.data(), values.size());
  objects_.emplace_back(a, [](void* p) { aclDestroyIntArray(static_cast<aclIntArray*>(p)); });
  return WordOf(a);
}

uint64_t NamedCall::Number(double value) {
  aclScalar* s = aclCreateScalar(&value, ACL_DOUBLE);
  objects_.emplace_back(s, [](void* p) { aclDestroyScalar(static_cast<aclScalar*>(p)); });
  return WordOf(s);
}
uint64_t NamedCall::Number(int64_t value) {
  aclScalar* s = aclCreateScalar(&value, ACL_INT64);
  objects_.emplace_back(s, [](void* p) { aclDestroyScalar(static_cast<aclScalar*>(p)); });
  return WordOf(s);
}

Status NamedCall::OnHost(size_t input) const {
  if (!HasIn(input)) return Refuse("input {} is missing.", input).Remedy("Pass all inputs of the operator.");
  const ops::named::Operand& o = request_.in[input];
  if (o.data != nullptr && !hbm::Find(o.data)) return {};
  if (o.bytes == 0) return {};
  return NotYet(fmt::format("Operator {}", request_.type),
                fmt::format("input {} is a constant, but lies on the device.", input));
}

Status NamedCall::Ints(size_t input, std::vector<int64_t>* values) {
  NPU_TRY(OnHost(input));
  const ops::named::Operand& o = request_.in[input];
  const int item = ItemSize(o.dtype);
  if (item == 0 || IsFloat(o.dtype) || IsComplex(o.dtype))
    return Refuse("input {} is {}.", input, Name(o.dtype)).Remedy("Pass integers.");
  for (size_t i = 0; i < o.bytes / static_cast<size_t>(item); ++i) {
    Scalar number;
    if (!Scalar::Read(static_cast<const char*>(o.data) + i * static_cast<size_t>(item), o.dtype, &number))
      return Refuse("input {} is {}.", input, Name(o.dtype)).Remedy("Pass integers.");
    values->push_back(number.i);
  }
  return {};
}

Status NamedCall::Real(size_t input, double* value) {
  NPU_TRY(OnHost(input));
  const ops::named::Operand& o = request_.in[input];
  if (o.bytes < static_cast<size_t>(std::max(1, ItemSize(o.dtype))) || ItemSize(o.dtype) == 0 || IsComplex(o.dtype)) {
    return Refuse("input {} has {} bytes of {}.", input, o.bytes, Name(o.dtype)).Remedy("Pass one number.");
  }
  Scalar number;
  if (!Scalar::Read(o.data, o.dtype, &number))
    return Refuse("input {} is {}.", input, Name(o.dtype)).Remedy("Pass a number.");
  *value = number.re;
  return {};
}

bool NamedCall::IsHost(size_t input) const { return HasIn(input) && !hbm::Find(request_.in[input].data); }

int64_t NamedCall::Int(std::string_view name, int64_t missing) const {
  const auto* v = Attribute<int64_t>(request_, name);
  return v != nullptr ? *v : missing;
}
double NamedCall::Float(std::string_view name, double missing) const {
  const auto* v = Attribute<float>(request_, name);
  return v != nullptr ? static_cast<double>(*v) : missing;
}
bool NamedCall::Bool(std::string_view name, bool missing) const {
  const auto* v = Attribute<bool>(request_, name);
  return v != nullptr ? *v : missing;
}
std::string NamedCall::Text(std::string_view name, std::string_view missing) const {
  const auto* v = Attribute<std::string>(request_, name);
  return v != nullptr ? *v : std::string(missing);
}
std::vector<int64_t> NamedCall::IntList(std::string_view name) const {
  const auto* v = Attribute<std::vector<int64_t>>(request_, name);
  return v != nullptr ? *v : std::vector<int64_t>();
}

Status NamedCall::CheckCounts(size_t in, size_t out) const {
  if (request_.in.size() >= in && request_.out.size() >= out) return {};
  return Refuse("{} inputs and {} outputs were passed.", request_.in.size(), request_.out.size())
      .Remedy("It takes {} and {}.", in, out);
}

Status NamedCall::RunWords(const ops::OpDef& op, std::span<const uint64_t> words) {
  if (parity::On()) [[unlikely]] parity::Unknown("by-name", request_.type);
  auto planned = ops::Plan(op, words.data());
  if (!planned.ok())
    return Status(planned.status().code(), fmt::format("{}: {}", request_.type, planned.status().text()))
        .Remedy("{}", planned.status().remedy());
  return Launch(op, nullptr, 0, *planned, request_.stream);
}

Status NamedCall::CopyView(const ops::named::Operand& in, std::span<const int64_t> shape,
                           std::span<const int64_t> strides, int64_t offset, size_t out) {
  // The result may be described by another shape of as many elements.
  return Run(ops::op_InplaceCopy, Tensor(request_.out[out], shape, {}, 0), Tensor(in, shape, strides, offset));
}

}  // namespace npu::opapi
