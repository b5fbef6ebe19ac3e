#include "ops/core/describe.h"

#include <fmt/format.h>

#include "tensor/promote.h"

namespace npu::ops {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string_view KindName(Kind k) {
  switch (k) {
    case Kind::tensor:
      return "tensor";
    case Kind::tensor_list:
      return "tensorlist";
    case Kind::scalar:
      return "scalar";
    case Kind::scalar_list:
      return "scalarlist";
    case Kind::ints:
      return "intarray";
    case Kind::bools:
      return "boolarray";
    case Kind::floats:
      return "floatarray";
    case Kind::boolean:
      return "bool";
    case Kind::int8:
      return "int8";
    case Kind::int32:
      return "int32";
    case Kind::int64:
      return "int64";
    case Kind::uint64:
      return "uint64";
    case Kind::real32:
      return "float";
    case Kind::real64:
      return "double";
    case Kind::text:
      return "string";
    case Kind::dtype:
      return "dtype";
  }
  return "";
}

std::string_view RoleName(Role r) { return r == Role::in ? "in" : r == Role::out ? "out" : "inout"; }

namespace {

std::string TypeNames(uint64_t bits) {
  TypeSet set;
  set.bits = bits;
  std::string out;
  for (int t = 0; t < 64; ++t) {
    if (!set.Has(static_cast<DType>(t))) continue;
    out += fmt::format("{}\"{}\"", out.empty() ? "" : ", ", Name(static_cast<DType>(t)));
  }
  return "[" + out + "]";
}

template <class Range, class F>
std::string Join(const Range& range, F&& one) {
  std::string out;
  for (const auto& item : range) {
    if (!out.empty()) out += ", ";
    out += one(item);
  }
  return out;
}

}  // namespace

std::string Describe(const OpDef& op) {
  size_t at = 0;
  const std::string params = Join(op.params, [&](const Param& p) {
    const bool maybe = op.MayBeNull(at++);
    return fmt::format("{{\"name\": \"{}\", \"kind\": \"{}\", \"role\": \"{}\", \"maybe\": {}}}", p.name,
                       KindName(p.kind), RoleName(p.role), maybe);
  });
  const auto name_of = [&](uint8_t p) { return Quoted(op.params[p].name); };
  const std::string rules = Join(std::span(op.rules).first(op.rule_count), [&](const Rule& r) {
    size_t n = 0;
    while (n < r.params.size() && r.params[n] != 0xff) ++n;
    return fmt::format("{{\"rule\": \"{}\", \"params\": [{}], \"imm\": {}, \"types\": {}}}", r.kind->name,
                       Join(std::span(r.params).first(n), name_of), r.imm,
                       TypeNames(r.kind->name == "dtype_in" ? static_cast<uint64_t>(r.imm) : 0));
  });
  const std::string slots = Join(op.slots, [&](uint8_t p) { return p == 0xff ? std::string("null") : name_of(p); });
  const std::string samples = Join(std::span(op.samples).first(op.sample_count), [&](const SampleText& s) {
    return fmt::format("{}: {}", name_of(s.param), Quoted(s.values));
  });
  std::string live;
  for (size_t p = 0; p < op.params.size(); ++p)
    if ((op.live >> p & 1) != 0)
      live += fmt::format("{}{}", live.empty() ? "" : ", ", name_of(static_cast<uint8_t>(p)));
  const KernelFacts facts = op.facts != nullptr ? op.facts(op.kernel) : KernelFacts{};
  const std::string_view tolerance = !op.tolerance.empty()      ? op.tolerance
                                     : !facts.tolerance.empty() ? facts.tolerance
                                                                : std::string_view("rounded");
  return fmt::format(
      "{{\"name\": \"{}\", \"params\": [{}], \"rules\": [{}], \"family\": \"{}\", \"kernel\": \"{}\", \"types\": {}, "
      "\"imm\": {}, \"slots\": [{}], \"like\": {}, \"tolerance\": \"{}\", \"samples\": {{{}}}, \"data_dependent\": "
      "[{}]}}",
      op.name, params, rules, op.family, facts.name, TypeNames(facts.types.bits), op.imm, slots, Quoted(op.judge),
      tolerance, samples, live);
}

}  // namespace npu::ops
