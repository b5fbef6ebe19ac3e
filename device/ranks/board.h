// What the ranks of this computer show of themselves: communicators, calls, and whom they wait for.
//
//   Show* show = board.Take({...});         // one for each communicator of this process; null when all are taken
//   show->Issue(call); show->End(bytes);    // a few stores each
//   for (const Seen& one : ReadAll()) …     // another process: all boards of processes that this user may look at
//
// A process has one board, a memfd without a name that others find through its descriptors: it goes with the process,
// however that ends. Readers take its content for hostile: texts may not end, numbers may be anything.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status/status.h"

namespace npu::device::ranks {

inline constexpr uint64_t kBoardMagic = 0x31534B4E4152504Eull;  // "NPRANKS1"
inline constexpr uint32_t kMostComms = 64, kMostMembers = 1024;
inline constexpr const char* kBoardLabel = "anynpu-ranks";

enum Doing : uint32_t { kIdle = 0, kBusy = 1, kWaits = 2, kBroken = 3 };

// A rank of a communicator as all of them know it.
struct Member {
  uint64_t host_id = 0;
  int32_t pid = 0, card = 0;
  char address[48] = {};
};

struct Call {
  char op[24] = {}, type[12] = {}, reduce[8] = {};
  uint32_t root = 0, has_root = 0;
  uint64_t count = 0, number = 0;
};

// One communicator on the board. Written by its process only.
struct alignas(64) Show {
  std::atomic<uint32_t> used;  // 0 free, 1 shown
  uint32_t rank, size, card;
  char name[128], machine[64];
  alignas(64) std::atomic<uint32_t> version;  // odd while `call` is written
  Call call;
  std::atomic<uint64_t> issued, ended, bytes;
  std::atomic<uint32_t> doing;
  std::atomic<uint64_t> since_ms;  // of a wait, on the monotonic clock
  std::atomic<uint64_t> waits_for[kMostMembers / 64];
  char why[256];  // what broke it, set before `doing`
  Member members[kMostMembers];

  void Issue(const Call& what);
  void End(uint64_t more_bytes);
  void Wait(std::span<const uint32_t> ranks, uint64_t since);
  void Break(const std::string& text);
};

struct Board {
  uint64_t magic;
  int32_t pid;
  uint32_t comms;
  alignas(64) Show shows[kMostComms];
};

struct About {
  std::string name, machine;
  uint32_t rank = 0, size = 1, card = 0;
  std::span<const Member> members;
};
// A place on the board of this process, which is made at first use. Null when there is no more place or no memory:
// nothing but the view depends on it.
Show* Take(const About& about);
void Give(Show* show);

// A copy of one communicator of one process.
struct Seen {
  std::string name, machine, why;
  uint32_t rank = 0, size = 0, card = 0;
  int32_t pid = 0;
  char process_state = 0;  // of /proc: R, S, T, …; 0: gone
  Doing doing = kIdle;
  Call call;
  uint64_t issued = 0, ended = 0, bytes = 0;
  uint64_t waits_ms = 0;
  std::vector<uint32_t> waits_for;
  std::vector<Member> members;
};
std::vector<Seen> ReadAll();
// The letter of /proc/<pid>/stat; 0 when there is no such process.
char StateOf(int32_t pid);

}  // namespace npu::device::ranks
