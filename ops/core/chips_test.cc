#include "ops/core/chips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace npu::ops {
namespace {

TypeSet Types(std::string_view op, Chip chip, size_t param) {
  TypeSet set;
  const ChipOp* found = FindChipOp(op);
  for (const ChipParam& p : found != nullptr ? found->params : std::span<const ChipParam>()) {
    if (p.index == param) set.bits = p.types[static_cast<size_t>(chip)];
  }
  return set;
}

TEST(Chips, AreKnownByTheirNames) {
  EXPECT_EQ(ChipOf("Ascend910B4-1"), Chip::k910b);
  EXPECT_EQ(ChipOf("Ascend910_9391"), Chip::k910_93);
  EXPECT_EQ(ChipOf("Ascend310P3"), Chip::k310p);
  EXPECT_EQ(ChipOf("Ascend950PR"), Chip::k950);
  EXPECT_FALSE(ChipOf("Ascend310B1"));
  EXPECT_FALSE(ChipOf(""));
}

TEST(Chips, FunctionsAreFoundByName) {
  EXPECT_TRUE(std::is_sorted(ChipOps().begin(), ChipOps().end(),
                             [](const ChipOp& a, const ChipOp& b) { return a.name < b.name; }));
  for (const ChipOp& op : ChipOps()) EXPECT_EQ(FindChipOp(op.name), &op);
  EXPECT_EQ(FindChipOp("aclnnNoSuchThing"), nullptr);
  EXPECT_GT(ChipOps().size(), 880u);
}

// Rows read by hand on the pages.
TEST(Chips, TypesAreThoseOfThePages) {
  EXPECT_EQ(Types("aclnnMatmul", Chip::k910b, 0), (TypeSet{DType::f32, DType::f16, DType::bf16}));
  EXPECT_FALSE(Types("aclnnMatmul", Chip::k910b, 0).Has(DType::f64));
  EXPECT_TRUE(Types("aclnnAdd", Chip::k910b, 0).Has(DType::f64));
  EXPECT_FALSE(Types("aclnnAdd", Chip::k310p, 0).Has(DType::bf16));
  EXPECT_FALSE(Types("aclnnExpm1", Chip::k910b, 0).Has(DType::f64)) << "a user's log says so";
}

// "host code 910b: +bf16" and "-c32" decide over the page, and A3 has a list of its own.
TEST(Chips, TheHostCodeDecides) {
  EXPECT_TRUE(Types("aclnnErf", Chip::k910b, 0).Has(DType::bf16));
  EXPECT_TRUE(Types("aclnnErf", Chip::k910_93, 0).Has(DType::bf16));
  EXPECT_FALSE(Types("aclnnAbs", Chip::k910b, 0).Has(DType::c32));
  EXPECT_TRUE(Types("aclnnAbs", Chip::k910b, 0).Has(DType::c64));
}

}  // namespace
}  // namespace npu::ops
