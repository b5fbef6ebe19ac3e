// Programs with two streams: ten in which nothing orders two uses of the same bytes, and ten in which something does.
#include <thread>

#include "client.h"

namespace strict_cases {
namespace {

constexpr size_t kBytes = 1 << 16;

// Two streams, two blocks whose bytes are written, an event.
struct Two {
  aclrtStream s = Stream(), t = Stream();
  char* a = static_cast<char*>(Malloc(kBytes));
  char* b = static_cast<char*>(Malloc(kBytes));
  aclrtEvent e = Event();
  Two() {
    OK(aclrtMemset(a, kBytes, 0, kBytes));
    OK(aclrtMemset(b, kBytes, 0, kBytes));
  }
  ~Two() {
    OK(aclrtSynchronizeDevice());
    OK(aclrtFree(a));
    OK(aclrtFree(b));
  }
  void Record(aclrtStream on) const { OK(aclrtRecordEvent(e, on)); }
  void Wait(aclrtStream on) const { OK(aclrtStreamWaitEvent(on, e)); }
};

void Fetch(const void* from, size_t bytes) {
  std::vector<char> back(bytes);
  OK(aclrtMemcpy(back.data(), bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
}

void FillColumns(char* at, aclrtStream s, size_t from, size_t columns) {
  static char source[kBytes];
  void* pinned = nullptr;
  OK(aclrtMallocHost(&pinned, kBytes));
  std::copy(source, source + kBytes, static_cast<char*>(pinned));
  OK(aclrtMemcpy2dAsync(at + from, 256, pinned, columns, columns, kBytes / 256, ACL_MEMCPY_HOST_TO_DEVICE, s));
}

}  // namespace

Cases RaceCases() {
  Cases c;
  c["race-two-writers"] = [] {
    Two two;
    Fill(two.a, kBytes, two.s);
    Fill(two.a, kBytes, two.t);
  };
  // The stream is idle when the copy comes, and its source is no pinned memory: it still belongs to the stream.
  c["race-copy-from-pageable-on-an-idle-stream"] = [] {
    Two two;
    const std::vector<char> source(kBytes, 1);
    OK(aclrtMemcpyAsync(two.a, kBytes, source.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE, two.s));
    Move(two.b, two.a, kBytes, two.t);
  };
  c["race-reader-behind-writer"] = [] {
    Two two;
    Fill(two.a, kBytes, two.s);
    Move(two.b, two.a, kBytes, two.t);
  };
  c["race-writer-behind-reader"] = [] {
    Two two;
    Move(two.b, two.a, kBytes, two.s);
    Fill(two.a, kBytes, two.t);
  };
  c["race-event-recorded-too-early"] = [] {
    Two two;
    two.Record(two.s);
    Fill(two.a, kBytes, two.s);
    two.Wait(two.t);
    Move(two.b, two.a, kBytes, two.t);
  };
  c["race-event-never-recorded"] = [] {
    Two two;
    Fill(two.a, kBytes, two.s);
    two.Wait(two.t);
    Move(two.b, two.a, kBytes, two.t);
  };
  c["race-event-waited-by-another-stream"] = [] {
    Two two;
    aclrtStream third = Stream();
    Fill(two.a, kBytes, two.s);
    two.Record(two.s);
    two.Wait(third);
    Move(two.b, two.a, kBytes, two.t);
  };
  c["race-host-fetches-too-early"] = [] {
    Two two;
    Fill(two.a, kBytes, two.s);
    Fetch(two.a, kBytes);
  };
  c["race-host-stores-over-an-input"] = [] {
    Two two;
    Move(two.b, two.a, kBytes, two.s);
    OK(aclrtMemset(two.a, kBytes, 2, kBytes));
  };
  c["race-synchronises-the-other-stream"] = [] {
    Two two;
    Fill(two.a, kBytes, two.s);
    OK(aclrtSynchronizeStream(two.t));
    Fetch(two.a, kBytes);
  };
  c["race-overlap-of-sixteen-bytes"] = [] {
    Two two;
    Fill(two.a, kBytes / 2 + 16, two.s);
    Fill(two.a + kBytes / 2, kBytes / 2, two.t);
  };
  c["race-columns-that-overlap"] = [] {
    Two two;
    FillColumns(two.a, two.s, 0, 130);
    FillColumns(two.a, two.t, 128, 128);
  };
  return c;
}

Cases OrderedCases() {
  Cases c;
  c["ordered-by-an-event"] = [] {
    Two two;
    Fill(two.a, kBytes, two.s);
    two.Record(two.s);
    two.Wait(two.t);
    Move(two.b, two.a, kBytes, two.t);
  };
  c["ordered-by-synchronising-the-stream"] = [] {
    Two two;
    Fill(two.a, kBytes, two.s);
    OK(aclrtSynchronizeStream(two.s));
    Move(two.b, two.a, kBytes, two.t);
    OK(aclrtSynchronizeStream(two.t));
    Fetch(two.b, kBytes);
  };
  c["ordered-by-synchronising-the-device"] = [] {
    Two two;
    Fill(two.a, kBytes, two.s);
    Fill(two.b, kBytes, two.t);
    OK(aclrtSynchronizeDevice());
    Move(two.b, two.a, kBytes, two.t);
  };
  c["ordered-by-synchronising-the-event"] = [] {
    Two two;
    Fill(two.a, kBytes, two.s);
    two.Record(two.s);
    OK(aclrtSynchronizeEvent(two.e));
    Fetch(two.a, kBytes);
  };
  c["ordered-by-asking-the-event"] = [] {
    Two two;
    Fill(two.a, kBytes, two.s);
    two.Record(two.s);
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    while (status != ACL_EVENT_RECORDED_STATUS_COMPLETE) {
      OK(aclrtQueryEventStatus(two.e, &status));
      std::this_thread::yield();
    }
    Fetch(two.a, kBytes);
  };
  c["ordered-through-a-third-stream"] = [] {
    Two two;
    aclrtStream third = Stream();
    aclrtEvent f = Event();
    Fill(two.a, kBytes, two.s);
    two.Record(two.s);
    two.Wait(third);
    OK(aclrtRecordEvent(f, third));
    OK(aclrtStreamWaitEvent(two.t, f));
    Move(two.b, two.a, kBytes, two.t);
  };
  c["ordered-by-a-notify"] = [] {
    Two two;
    aclrtNotify notify = nullptr;
    OK(aclrtCreateNotify(&notify, 0));
    Fill(two.a, kBytes, two.s);
    OK(aclrtRecordNotify(notify, two.s));
    OK(aclrtWaitAndResetNotify(notify, two.t, 0));
    Move(two.b, two.a, kBytes, two.t);
    OK(aclrtSynchronizeStream(two.t));
    // The wait may also be given first.
    OK(aclrtWaitAndResetNotify(notify, two.t, 0));
    Move(two.b, two.a, kBytes, two.t);
    Move(two.a, two.b, 16, two.s);
    OK(aclrtRecordNotify(notify, two.s));
    OK(aclrtSynchronizeStream(two.t));
  };
  c["ordered-disjoint-halves"] = [] {
    Two two;
    Fill(two.a, kBytes / 2, two.s);
    Fill(two.a + kBytes / 2, kBytes / 2, two.t);
  };
  c["ordered-disjoint-columns"] = [] {
    Two two;
    FillColumns(two.a, two.s, 0, 128);
    FillColumns(two.a, two.t, 128, 128);
  };
  c["ordered-two-readers"] = [] {
    Two two;
    char* d = static_cast<char*>(Malloc(kBytes));
    Move(two.b, two.a, kBytes, two.s);
    Move(d, two.a, kBytes, two.t);
    OK(aclrtSynchronizeDevice());
    OK(aclrtFree(d));
  };
  c["ordered-a-pipeline-of-two-streams"] = [] {
    Two two;
    aclrtEvent free_again = Event();
    OK(aclrtRecordEvent(free_again, two.t));
    for (int i = 0; i < 50; ++i) {
      OK(aclrtStreamWaitEvent(two.s, free_again));
      Fill(two.a, kBytes, two.s);
      two.Record(two.s);
      two.Wait(two.t);
      Move(two.b, two.a, kBytes, two.t);
      OK(aclrtRecordEvent(free_again, two.t));
    }
    OK(aclrtSynchronizeStream(two.t));
    Fetch(two.b, kBytes);
  };
  return c;
}

}  // namespace strict_cases
