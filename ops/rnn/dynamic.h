// Tokens of the recurrent operators by type name, which no row of abi/aclnn.tsv has (their inputs:
// abi/aclop_needed.tsv).
#pragma once

#include <string_view>

#include "ops/core/builder.h"

namespace npu::ops {

struct DynamicRnn {
  static constexpr std::string_view kName = "DynamicRNN";
  static constexpr Param kParams[] = {
      {"x", Kind::tensor, Role::in, false},        {"w", Kind::tensor, Role::in, false},
      {"b", Kind::tensor, Role::in, true},         {"seqLength", Kind::tensor, Role::in, true},
      {"initH", Kind::tensor, Role::in, true},     {"initC", Kind::tensor, Role::in, true},
      {"reverse", Kind::boolean, Role::in, false}, {"forgetBias", Kind::real64, Role::in, false},
      {"gateOrder", Kind::text, Role::in, false},  {"y", Kind::tensor, Role::out, false},
      {"outH", Kind::tensor, Role::out, false},    {"outC", Kind::tensor, Role::out, false},
      {"i", Kind::tensor, Role::out, false},       {"j", Kind::tensor, Role::out, false},
      {"f", Kind::tensor, Role::out, false},       {"o", Kind::tensor, Role::out, false},
      {"tanhC", Kind::tensor, Role::out, false}};
  static constexpr TensorIn x{0};
  static constexpr TensorIn w{1};
  static constexpr MaybeIn b{2};
  static constexpr MaybeIn seqLength{3};
  static constexpr MaybeIn initH{4};
  static constexpr MaybeIn initC{5};
  static constexpr BoolIn reverse{6};
  static constexpr RealIn forgetBias{7};
  static constexpr TextIn gateOrder{8};
  static constexpr TensorOut y{9};
  static constexpr TensorOut outH{10};
  static constexpr TensorOut outC{11};
  static constexpr TensorOut i{12};
  static constexpr TensorOut j{13};
  static constexpr TensorOut f{14};
  static constexpr TensorOut o{15};
  static constexpr TensorOut tanhC{16};
};

struct DynamicRnnGrad {
  static constexpr std::string_view kName = "DynamicRNNGrad";
  static constexpr Param kParams[] = {
      {"x", Kind::tensor, Role::in, false},        {"w", Kind::tensor, Role::in, false},
      {"initH", Kind::tensor, Role::in, true},     {"initC", Kind::tensor, Role::in, true},
      {"h", Kind::tensor, Role::in, false},        {"c", Kind::tensor, Role::in, false},
      {"dy", Kind::tensor, Role::in, true},        {"dh", Kind::tensor, Role::in, true},
      {"dc", Kind::tensor, Role::in, true},        {"i", Kind::tensor, Role::in, false},
      {"j", Kind::tensor, Role::in, false},        {"f", Kind::tensor, Role::in, false},
      {"o", Kind::tensor, Role::in, false},        {"tanhC", Kind::tensor, Role::in, false},
      {"seqLength", Kind::tensor, Role::in, true}, {"reverse", Kind::boolean, Role::in, false},
      {"gateOrder", Kind::text, Role::in, false},  {"dw", Kind::tensor, Role::out, false},
      {"db", Kind::tensor, Role::out, false},      {"dx", Kind::tensor, Role::out, false},
      {"dht", Kind::tensor, Role::out, false},     {"dct", Kind::tensor, Role::out, false}};
  static constexpr TensorIn x{0};
  static constexpr TensorIn w{1};
  static constexpr MaybeIn initH{2};
  static constexpr MaybeIn initC{3};
  static constexpr TensorIn h{4};
  static constexpr TensorIn c{5};
  static constexpr MaybeIn dy{6};
  static constexpr MaybeIn dh{7};
  static constexpr MaybeIn dc{8};
  static constexpr TensorIn i{9};
  static constexpr TensorIn j{10};
  static constexpr TensorIn f{11};
  static constexpr TensorIn o{12};
  static constexpr TensorIn tanhC{13};
  static constexpr MaybeIn seqLength{14};
  static constexpr BoolIn reverse{15};
  static constexpr TextIn gateOrder{16};
  static constexpr TensorOut dw{17};
  static constexpr TensorOut db{18};
  static constexpr TensorOut dx{19};
  static constexpr TensorOut dht{20};
  static constexpr TensorOut dct{21};
};

struct DynamicGru {
  static constexpr std::string_view kName = "DynamicGRUV2";
  static constexpr Param kParams[] = {
      {"x", Kind::tensor, Role::in, false},         {"wx", Kind::tensor, Role::in, false},
      {"wh", Kind::tensor, Role::in, false},        {"bx", Kind::tensor, Role::in, true},
      {"bh", Kind::tensor, Role::in, true},         {"seqLength", Kind::tensor, Role::in, true},
      {"initH", Kind::tensor, Role::in, true},      {"reverse", Kind::boolean, Role::in, false},
      {"gateOrder", Kind::text, Role::in, false},   {"y", Kind::tensor, Role::out, false},
      {"outH", Kind::tensor, Role::out, false},     {"update", Kind::tensor, Role::out, false},
      {"reset", Kind::tensor, Role::out, false},    {"fresh", Kind::tensor, Role::out, false},
      {"hiddenNew", Kind::tensor, Role::out, false}};
  static constexpr TensorIn x{0};
  static constexpr TensorIn wx{1};
  static constexpr TensorIn wh{2};
  static constexpr MaybeIn bx{3};
  static constexpr MaybeIn bh{4};
  static constexpr MaybeIn seqLength{5};
  static constexpr MaybeIn initH{6};
  static constexpr BoolIn reverse{7};
  static constexpr TextIn gateOrder{8};
  static constexpr TensorOut y{9};
  static constexpr TensorOut outH{10};
  static constexpr TensorOut update{11};
  static constexpr TensorOut reset{12};
  static constexpr TensorOut fresh{13};
  static constexpr TensorOut hiddenNew{14};
};

struct DynamicGruGrad {
  static constexpr std::string_view kName = "DynamicGRUV2Grad";
  static constexpr Param kParams[] = {
      {"x", Kind::tensor, Role::in, false},         {"wx", Kind::tensor, Role::in, false},
      {"wh", Kind::tensor, Role::in, false},        {"initH", Kind::tensor, Role::in, true},
      {"h", Kind::tensor, Role::in, false},         {"dy", Kind::tensor, Role::in, true},
      {"dh", Kind::tensor, Role::in, true},         {"update", Kind::tensor, Role::in, false},
      {"reset", Kind::tensor, Role::in, false},     {"fresh", Kind::tensor, Role::in, false},
      {"hiddenNew", Kind::tensor, Role::in, false}, {"seqLength", Kind::tensor, Role::in, true},
      {"reverse", Kind::boolean, Role::in, false},  {"gateOrder", Kind::text, Role::in, false},
      {"dwx", Kind::tensor, Role::out, false},      {"dwh", Kind::tensor, Role::out, false},
      {"dbx", Kind::tensor, Role::out, false},      {"dbh", Kind::tensor, Role::out, false},
      {"dx", Kind::tensor, Role::out, false},       {"dhPrev", Kind::tensor, Role::out, false}};
  static constexpr TensorIn x{0};
  static constexpr TensorIn wx{1};
  static constexpr TensorIn wh{2};
  static constexpr MaybeIn initH{3};
  static constexpr TensorIn h{4};
  static constexpr MaybeIn dy{5};
  static constexpr MaybeIn dh{6};
  static constexpr TensorIn update{7};
  static constexpr TensorIn reset{8};
  static constexpr TensorIn fresh{9};
  static constexpr TensorIn hiddenNew{10};
  static constexpr MaybeIn seqLength{11};
  static constexpr BoolIn reverse{12};
  static constexpr TextIn gateOrder{13};
  static constexpr TensorOut dwx{14};
  static constexpr TensorOut dwh{15};
  static constexpr TensorOut dbx{16};
  static constexpr TensorOut dbh{17};
  static constexpr TensorOut dx{18};
  static constexpr TensorOut dhPrev{19};
};

extern const OpDef op_named_DynamicRNN, op_named_DynamicRNNGrad, op_named_DynamicGRUV2, op_named_DynamicGRUV2Grad;

}  // namespace npu::ops
