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

// A row read by hand on the page, and the order of its parameters.
TEST(Chips, CombinationsAreThoseOfThePages) {
  const ChipCombination* rms = nullptr;
  for (const ChipCombination& c : ChipCombinations()) {
    EXPECT_NE(FindChipOp(c.op), nullptr) << c.op;
    EXPECT_FALSE(FindChipOp(c.op)->more) << c.op << " is read, so nothing of it is unread";
    for (uint8_t r = 0; r < c.rows; ++r) {
      for (uint8_t p = 0; p < c.width; ++p) {
        const TypeSet listed = Types(c.op, c.chips & 2 ? Chip::k910_93 : Chip::k310p, c.params[p]);
        if (c.chips & 3 && listed.bits != 0) {
          EXPECT_TRUE(listed.Has(c.types[r][p])) << c.op << ": a combination names a type that the list has not";
        }
      }
    }
    if (c.op == "aclnnRmsNorm" && (c.chips & 1) != 0) rms = &c;
  }
  ASSERT_NE(rms, nullptr);
  EXPECT_EQ(rms->width, 4);
  EXPECT_EQ(rms->types[0][0], DType::f16);
  EXPECT_EQ(rms->types[0][1], DType::f32);
  EXPECT_EQ(rms->types[1][2], DType::bf16);
}

TEST(Chips, WishesAreKnown) {
  const ChipOp* op = FindChipOp("aclnnSwiGlu");
  ASSERT_NE(op, nullptr);
  EXPECT_TRUE(std::any_of(op->params.begin(), op->params.end(),
                          [](const ChipParam& p) { return (p.wishes & kContiguous) != 0; }));
}

}  // namespace
}  // namespace npu::ops
