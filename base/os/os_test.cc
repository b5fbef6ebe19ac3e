#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/os/fd.h"
#include "base/os/fork.h"
#include "base/os/futex.h"
#include "base/os/process.h"
#include "base/os/socket.h"
#include "base/os/thread.h"

namespace npu::os {
namespace {

using namespace std::chrono_literals;

TEST(Fd, ClosesOnceAndMoves) {
  int number;
  {
    Fd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    number = fd.get();
    Fd moved = std::move(fd);
    EXPECT_FALSE(fd);
    EXPECT_EQ(fcntl(number, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  }
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
}

TEST(Memfd, HasItsSizeForEver) {
  auto fd = MakeMemfd("test", 1 << 20);
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(lseek(fd->get(), 0, SEEK_END), 1 << 20);
  EXPECT_NE(ftruncate(fd->get(), 4096), 0);
  EXPECT_NE(ftruncate(fd->get(), 2 << 20), 0);
}

TEST(Process, KnowsTheLivingAndTheDead) {
  const ProcessId self = Self();
  EXPECT_EQ(self.pid, getpid());
  EXPECT_NE(self.start_ticks, 0u);
  EXPECT_EQ(LivenessOf(self), Liveness::kAlive);
  ProcessId other = self;
  other.start_ticks += 1;
  EXPECT_EQ(LivenessOf(other), Liveness::kDead) << "the pid was used again";
  other = self;
  other.pid_namespace += 1;
  EXPECT_EQ(LivenessOf(other), Liveness::kUnknown);
  EXPECT_EQ(LivenessOf({self.pid_namespace, 0, 0}), Liveness::kDead);
  EXPECT_EQ(LivenessOf({self.pid_namespace, -1, 0}), Liveness::kDead);

  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const ProcessId id = Self();
    [[maybe_unused]] ssize_t n = write(pipe_ends[1], &id, sizeof id);
    pause();
    _exit(0);
  }
  ProcessId id;
  ASSERT_EQ(read(pipe_ends[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
  EXPECT_EQ(LivenessOf(id), Liveness::kAlive);
  kill(child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(LivenessOf(id), Liveness::kDead) << "a zombie is dead";
  waitpid(child, nullptr, 0);
  EXPECT_EQ(LivenessOf(id), Liveness::kDead);
}

TEST(ForkGuard, NoticesAForkInTheChildOnly) {
  ForkGuard guard;
  EXPECT_FALSE(guard.Forked());
  const pid_t child = fork();
  if (child == 0) {
    const bool noticed = guard.Forked();
    guard.Reset();
    _exit(noticed && !guard.Forked() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(guard.Forked());
}

TEST(Fork, ClosesInChildrenWhatItWasTold) {
  Fd kept(open("/dev/null", O_RDONLY | O_CLOEXEC)), closed(open("/dev/null", O_RDONLY | O_CLOEXEC));
  CloseInChildren(kept.get());
  CloseInChildren(closed.get());
  ForgetInChildren(kept.get());
  const pid_t child = fork();
  if (child == 0) _exit(fcntl(kept.get(), F_GETFD) != -1 && fcntl(closed.get(), F_GETFD) == -1 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_NE(fcntl(closed.get(), F_GETFD), -1);
  ForgetInChildren(closed.get());
}

TEST(Futex, WakesAnotherProcessAndKeepsItsDeadline) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* words = static_cast<std::atomic<uint32_t>*>(page);
  const pid_t child = fork();
  if (child == 0) {
    const bool woken = FutexWait(words[0], 0, Deadline::In(20s));
    words[1].store(1);
    FutexWake(words[1]);
    _exit(woken && words[0].load() == 1 ? 0 : 1);
  }
  words[0].store(1, std::memory_order_release);
  FutexWake(words[0]);
  EXPECT_TRUE(FutexWait(words[1], 0, Deadline::In(20s)));
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(FutexWait(words[0], 1, Deadline::In(30ms)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 29ms);
  EXPECT_TRUE(FutexWait(words[0], 5, Deadline::Never())) << "the word differs already";
  munmap(page, 4096);
}

TEST(Thread, TakesNoSignalsAndLeavesItsMakersMaskAlone) {
  sigset_t before, after, inside;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  char name[16] = {};
  auto thread = Start("npu-test", [&] {
    pthread_sigmask(SIG_SETMASK, nullptr, &inside);
    pthread_getname_np(pthread_self(), name, sizeof name);
  });
  ASSERT_TRUE(thread.ok());
  thread->join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGCHLD}) {
    EXPECT_EQ(sigismember(&inside, signal), 1) << signal;
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
  }
  EXPECT_STREQ(name, "npu-test");
}

TEST(Socket, CarriesADescriptor) {
  const std::string name = fmt::format("anynpu-socket-test-{}", getpid());
  auto listener = ListenAbstract(name);
  ASSERT_TRUE(listener.ok()) << listener.status().Message();
  std::thread server([&] {
    Fd socket = Accept(*listener, Deadline::In(20s));
    EXPECT_TRUE(PeerIsSameUser(socket));
    uint32_t number = 0;
    EXPECT_TRUE(ReceiveWithFd(socket, &number, sizeof number, nullptr, Deadline::In(20s)).ok());
    EXPECT_EQ(number, 17u);
    auto memory = MakeMemfd("sent", 4096);
    EXPECT_EQ(pwrite(memory->get(), "hello", 5, 0), 5);
    EXPECT_TRUE(SendWithFd(socket, &number, sizeof number, memory->get(), Deadline::In(20s)).ok());
  });
  auto socket = ConnectAbstract(name, Deadline::In(20s));
  ASSERT_TRUE(socket.ok());
  uint32_t number = 17;
  ASSERT_TRUE(SendWithFd(*socket, &number, sizeof number, -1, Deadline::In(20s)).ok());
  Fd received;
  ASSERT_TRUE(ReceiveWithFd(*socket, &number, sizeof number, &received, Deadline::In(20s)).ok());
  server.join();
  char text[6] = {};
  ASSERT_TRUE(received);
  EXPECT_EQ(pread(received.get(), text, 5, 0), 5);
  EXPECT_STREQ(text, "hello");
  EXPECT_EQ(fcntl(received.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  uint64_t larger;
  EXPECT_FALSE(ReceiveWithFd(*socket, &larger, sizeof larger, nullptr, Deadline::In(20s)).ok())
      << "the server has gone";
  EXPECT_FALSE(ConnectAbstract("anynpu-nobody-listens-here", Deadline::In(1s)).ok());
}

}  // namespace
}  // namespace npu::os
