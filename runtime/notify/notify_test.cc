#include "runtime/notify/notify.h"

#include <gtest/gtest.h>

#include "runtime/workers/timer.h"

namespace npu::rt {
namespace {

Deadline Soon() { return Deadline::Never(); }

TEST(Notify, AWaitThatRanIntoItsLimitIsForgotten) {
  Pool pool(0, 1);
  auto stream = TaskStream::Make(pool, {}), recorder = TaskStream::Make(pool, {});
  auto notify = Ref<Notify>::Adopt(new Notify(0));
  const size_t alarms = Alarm::Pending();
  ASSERT_TRUE(notify->WaitAndReset(*stream, 10).ok());
  EXPECT_EQ(stream->Synchronize(Soon()).code(), Code::kEventSyncTimeout);
  EXPECT_EQ(notify->waiting(), 0u);
  ASSERT_TRUE(notify->WaitAndReset(*stream, 3'600'000).ok());
  ASSERT_TRUE(notify->Record(*recorder).ok());
  EXPECT_TRUE(stream->Synchronize(Soon()).ok());
  EXPECT_EQ(Alarm::Pending(), alarms);
  ASSERT_TRUE(notify->WaitAndReset(*stream, 0).ok());
  stream->Abort(Error(Code::kStreamAbort, "over"));
  EXPECT_EQ(stream->Synchronize(Soon()).code(), Code::kStreamAbort);
  EXPECT_EQ(notify->waiting(), 0u);
}

TEST(Value, AWaitThatIsOverIsForgottenHoweverItsWordChanged) {
  Pool pool(0, 1);
  auto stream = TaskStream::Make(pool, {}), writer = TaskStream::Make(pool, {});
  uint64_t word = 0;
  const size_t alarms = Alarm::Pending();
  for (int round = 1; round <= 20; ++round) {
    ASSERT_TRUE(WaitForValue(&word, static_cast<uint64_t>(round), Compare::kEqual, *stream).ok());
    if (round % 2 == 0) {
      ASSERT_TRUE(WriteValue(&word, static_cast<uint64_t>(round), *writer).ok());
    } else {  // as a copy or another process would
      __atomic_store_n(&word, static_cast<uint64_t>(round), __ATOMIC_RELEASE);
    }
    ASSERT_TRUE(stream->Synchronize(Soon()).ok());
  }
  ASSERT_TRUE(WaitForValue(&word, 1000, Compare::kEqual, *stream).ok());
  stream->Abort(Error(Code::kStreamAbort, "over"));
  EXPECT_EQ(stream->Synchronize(Soon()).code(), Code::kStreamAbort);
  EXPECT_EQ(ValueWaiters(), 0u);
  EXPECT_EQ(Alarm::Pending(), alarms);
}

}  // namespace
}  // namespace npu::rt
