#include "tools/ranks/ranks.h"

#include <gmock/gmock.h>
#include <unistd.h>

namespace npu::ranks {
namespace {

using device::ranks::Member;
using ::testing::HasSubstr;

class Shown : public testing::Test {
 protected:
  Shown() {
    members_[0] = {11, ::getpid(), 3, "10.0.0.1"};
    members_[1] = {11, 1 << 30, 4, "10.0.0.1"};  // no such process
    members_[2] = {12, 77, 0, "10.0.0.2"};
    show_ = device::ranks::Take({name_, "m1", 0, 3, 3, members_});
  }
  ~Shown() override { device::ranks::Give(show_); }
  std::string Look() const { return Table(device::ranks::ReadAll(), "m1"); }

  const std::string name_ = "world" + std::to_string(::getpid());
  Member members_[3];
  device::ranks::Show* show_ = nullptr;
};

TEST_F(Shown, EveryRankIsThereWithWhatIsKnownOfIt) {
  ASSERT_NE(show_, nullptr);
  EXPECT_THAT(Look(), ::testing::AllOf(HasSubstr("communicator " + name_ + ", 3 ranks"), HasSubstr("none yet"),
                                       HasSubstr("idle"), HasSubstr("dead"), HasSubstr("on another host")));
  device::ranks::Call call{"HcclAllReduce", "fp32", "sum", 0, 0, 1000, 7};
  show_->Issue(call);
  const uint32_t waits[] = {1, 2};
  show_->Wait(waits, 0);
  EXPECT_THAT(Look(), ::testing::AllOf(HasSubstr("HcclAllReduce 1000 x fp32 sum (call 7)"), HasSubstr("waits "),
                                       HasSubstr("rank 1, 2")));
  show_->End(4000);
  EXPECT_THAT(Look(), ::testing::AllOf(HasSubstr("idle"), HasSubstr("3.9 KiB")));
  show_->Break("rank 1 is dead");
  EXPECT_THAT(Look(), ::testing::AllOf(HasSubstr("broken"), HasSubstr("rank 1 is dead")));
  EXPECT_THAT(Json(device::ranks::ReadAll(), "m1"),
              HasSubstr("\"last_call\": \"HcclAllReduce 1000 x fp32 sum (call 7)\""));
}

TEST_F(Shown, AnotherMachineDoesNotSeeIt) {
  EXPECT_THAT(Table(device::ranks::ReadAll(), "m2" + name_), HasSubstr("no communicator"));
}

}  // namespace
}  // namespace npu::ranks
