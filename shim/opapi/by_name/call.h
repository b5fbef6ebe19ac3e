// Operators by type name, each declared once as a few lines over the operators of ops/:
//
//   {"Ceil", [](NamedCall& c) { return c.Run(ops::op_Ceil, c.In(0), c.Out(0)); }},
//
// Operands are dense tensors of the request; View() gives one another shape and strides. Constants on the host are read
// with Ints() while the call is made.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status/status.h"
#include "ops/core/named.h"
#include "ops/core/object.h"
#include "ops/core/op_def.h"

namespace npu::ops {
extern const OpDef op_InplaceCopy;
}

namespace npu::opapi {

class NamedCall {
 public:
  explicit NamedCall(const ops::named::Request& request) : request_(request) {}

  const ops::named::Request& request() const { return request_; }
  const ops::named::Operand& InOperand(size_t i) const { return request_.in[i]; }
  const ops::named::Operand& OutOperand(size_t i) const { return request_.out[i]; }
  bool HasIn(size_t i) const { return i < request_.in.size() && request_.in[i].dtype != DType::none; }

  // Words of a call: tensors, lists, numbers.
  uint64_t In(size_t i) { return Tensor(request_.in[i], request_.in[i].dims, {}, 0); }
  uint64_t Out(size_t i) { return Tensor(request_.out[i], request_.out[i].dims, {}, 0); }
  uint64_t MaybeIn(size_t i) { return HasIn(i) ? In(i) : 0; }
  // The operand's memory from element `offset` with another shape; empty strides: dense.
  uint64_t Tensor(const ops::named::Operand& operand, std::span<const int64_t> shape, std::span<const int64_t> strides,
                  int64_t offset);
  uint64_t Array(std::span<const int64_t> values);
  uint64_t Number(double value);
  uint64_t Number(int64_t value);

  // Integers of a constant input. Constants on the device answer NotYet: reading them would wait for the stream.
  Status Ints(size_t input, std::vector<int64_t>* values);
  // The first value of an input as a number.
  Status Real(size_t input, double* value);

  bool IsHost(size_t input) const;
  Status CheckCounts(size_t in, size_t out) const;

  int64_t Int(std::string_view name, int64_t missing) const;
  double Float(std::string_view name, double missing) const;
  bool Bool(std::string_view name, bool missing) const;
  std::string Text(std::string_view name, std::string_view missing) const;
  std::vector<int64_t> IntList(std::string_view name) const;

  // Both phases of an operator. Words stand in the operator's order.
  template <class... W>
  Status Run(const ops::OpDef& op, W... words) {
    const std::array<uint64_t, sizeof...(W)> list{static_cast<uint64_t>(words)...};
    return RunWords(op, list);
  }
  // out = the view of `in`.
  Status CopyView(const ops::named::Operand& in, std::span<const int64_t> shape, std::span<const int64_t> strides,
                  int64_t offset, size_t out);

  template <class... A>
  Status Refuse(fmt::format_string<A...> format, A&&... a) const {
    return Status(Code::kInvalidParam,
                  fmt::format("{}: {}", request_.type, fmt::format(format, std::forward<A>(a)...)));
  }

 private:
  Status RunWords(const ops::OpDef& op, std::span<const uint64_t> words);
  Status OnHost(size_t input) const;

  const ops::named::Request& request_;
  std::vector<std::shared_ptr<void>> objects_;
};

struct NamedOp {
  const char* type;
  Status (*run)(NamedCall&);
};

// Strides of a dense tensor.
std::vector<int64_t> DenseStrides(std::span<const int64_t> shape);

}  // namespace npu::opapi
