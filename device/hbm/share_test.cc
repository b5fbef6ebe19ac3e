#include "device/hbm/share.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "device/hbm/hbm.h"
#include "device/hbm/vmm.h"
#include "device/hbm/world.h"
#include "device/machine/machine.h"
#include "device/testing/isolated.h"

namespace npu::hbm {
namespace {

using npu::testing::Child;
constexpr size_t kMiB = size_t{1} << 20;

class ShareTest : public npu::testing::OwnMachine {};
class VmmTest : public npu::testing::OwnMachine {};

void SendText(Child::Side& side, const std::string& text) {
  char field[kKeyBytes + 7] = {};
  std::memcpy(field, text.data(), text.size());
  for (size_t i = 0; i < sizeof field / 8; ++i) {
    uint64_t word;
    std::memcpy(&word, field + 8 * i, 8);
    side.Send(word);
  }
}
std::string ReceiveText(Child& child) {
  char field[kKeyBytes + 7] = {};
  for (size_t i = 0; i < sizeof field / 8; ++i) {
    const uint64_t word = child.Receive();
    std::memcpy(field + 8 * i, &word, 8);
  }
  return field;
}

TEST_F(ShareTest, KeyLeadsToTheSameMemory) {
  Child owner([&](Child::Side& side) {
    auto p = Allocate(0, 4 * kMiB);
    if (!p.ok()) return 1;
    std::memset(Local(*p), 0x11, 4 * kMiB);
    auto key = ExportKey(*p, 4 * kMiB, true);
    if (!key.ok() || *ExportKey(*p, kMiB, true) != *key || key->size() >= kKeyBytes) return 2;
    SendText(side, *key);
    side.Receive();
    if (static_cast<unsigned char*>(Local(*p))[77] != 0x22) return 3;
    // Freed while the peer holds it: gone for the owner, counted and not handed out again until the peer lets go.
    if (!Free(*p).ok() || Check(*p, 1, "f", "x").ok()) return 4;
    if (UsageOf(0)->mine != 4 * kMiB) return 5;
    auto other = Allocate(0, 4 * kMiB);
    if (!other.ok() || *other == *p) return 6;
    std::memset(Local(*other), 0x33, 4 * kMiB);
    side.Send(1);
    side.Receive();  // the peer has closed
    auto again = Allocate(0, kMiB);
    return again.ok() && UsageOf(0)->mine == 5 * kMiB ? 0 : 7;
  });
  const std::string key = ReceiveText(owner);
  ISOLATED({
    auto q = ImportKey(key);
    ASSERT_TRUE(q.ok()) << q.status().Message();
    auto* bytes = static_cast<unsigned char*>(Local(*q));
    EXPECT_EQ(bytes[4 * kMiB - 1], 0x11);
    EXPECT_TRUE(Check(*q, 4 * kMiB, "f", "x").ok());
    EXPECT_FALSE(Check(*q, 4 * kMiB + 1, "f", "x").ok());
    EXPECT_EQ(Find(*q)->bytes, 4 * kMiB);
    EXPECT_EQ(UsageOf(0)->mine, 0u);
    EXPECT_NE(Free(*q).text().find("another process"), std::string::npos);
    ASSERT_TRUE(ImportKey(key).ok());
    ASSERT_TRUE(CloseKey(key).ok());
    bytes[77] = 0x22;
    owner.Send(1);
    owner.Receive();
    EXPECT_EQ(bytes[78], 0x11) << "the owner's next block is not this one";
    EXPECT_FALSE(ImportKey(key).ok()) << "freed: nobody new";
    ASSERT_TRUE(CloseKey(key).ok());
    EXPECT_FALSE(CloseKey(key).ok());
    EXPECT_FALSE(Check(*q, 1, "f", "x").ok());
    owner.Send(1);
  });
  EXPECT_EQ(owner.Wait(), 0);
}

TEST_F(ShareTest, KilledImporterLetsGo) {
  ISOLATED({
    auto p = Allocate(0, 2 * kMiB);
    const std::string key = *ExportKey(*p, 2 * kMiB, true);
    Child importer([&](Child::Side& side) {
      side.Send(ImportKey(key).ok() ? 1 : 0);
      pause();
      return 0;
    });
    ASSERT_EQ(importer.Receive(), 1u);
    ASSERT_TRUE(Free(*p).ok());
    EXPECT_EQ(UsageOf(0)->mine, 2 * kMiB);
    importer.Kill();
    (*device::Join())->Repair(/*force=*/true);
    ASSERT_TRUE(Free(*Allocate(0, 512)).ok());  // looks after what lingers
    EXPECT_EQ(UsageOf(0)->mine, 0u);
  });
}

// A process that owns a block of its key's value in every byte until it is told to end.
int OwnABlock(Child::Side& side, unsigned char value) {
  auto p = Allocate(0, 4 * kMiB);
  if (!p.ok()) return 1;
  std::memset(Local(*p), value, 4 * kMiB);
  auto key = ExportKey(*p, 4 * kMiB, true);
  if (!key.ok()) return 2;
  SendText(side, *key);
  side.Receive();
  if (!Free(*p).ok()) return 3;
  side.Send(UsageOf(0)->mine);
  side.Receive();
  (void)Allocate(0, 512).ok();  // looks after what lingers
  side.Send(UsageOf(0)->mine);
  side.Receive();
  return 0;
}

TEST_F(ShareTest, ImportedMemoryOutlivesItsOwner) {
  Child owner([](Child::Side& side) { return OwnABlock(side, 0x5C); });
  const std::string key = ReceiveText(owner);
  ISOLATED({
    auto q = ImportKey(key);
    ASSERT_TRUE(q.ok()) << q.status().Message();
    auto* bytes = static_cast<unsigned char*>(Local(*q));
    // Another process maps the same arena and holds nothing of it.
    const uint32_t slot = Find(*q)->slot;
    Child bystander([&](Child::Side& side) {
      if (!MapPeer(slot, 0).ok()) return 1;
      side.Send(1);
      side.Receive();
      (*TheWorld())->LetGoOfDeadPeers(0);
      side.Send(1);
      side.Receive();
      return 0;
    });
    bystander.Receive();
    owner.Kill();
    (*device::Join())->Repair(/*force=*/true);
    bystander.Send(1);
    bystander.Receive();
    (*TheWorld())->LetGoOfDeadPeers(0);
    for (size_t i = 0; i < 4 * kMiB; i += 4096) ASSERT_EQ(bytes[i], 0x5C) << "byte " << i;
    EXPECT_TRUE(Check(*q, 4 * kMiB, "f", "x").ok());
    // Once nobody here holds it, the mapping does not keep it either; late readers find zeros.
    ASSERT_TRUE(CloseKey(key).ok());
    (*TheWorld())->LetGoOfDeadPeers(0);
    EXPECT_EQ(bytes[0], 0);
    EXPECT_FALSE(ImportKey(key).ok());
    bystander.Send(1);
    EXPECT_EQ(bystander.Wait(), 0);
  });
  owner.Wait();
}

TEST_F(ShareTest, AnEntryThatServesANewOwnerCountsItsImportersAnew) {
  Child first([](Child::Side& side) { return OwnABlock(side, 1); });
  const std::string old_key = ReceiveText(first);
  ISOLATED({
    ASSERT_TRUE(ImportKey(old_key).ok());
    first.Kill();
    (*device::Join())->Repair(/*force=*/true);
    // The next owner gets the same entry of the state file.
    Child second([](Child::Side& side) { return OwnABlock(side, 2); });
    const std::string key = ReceiveText(second);
    auto q = ImportKey(key);
    ASSERT_TRUE(q.ok()) << q.status().Message();
    second.Send(1);
    EXPECT_EQ(second.Receive(), 4 * kMiB) << "freed by its owner, held by us";
    ASSERT_TRUE(CloseKey(old_key).ok());  // says nothing about the other
    second.Send(1);
    EXPECT_EQ(second.Receive(), 4 * kMiB + 512) << "still held by us";
    EXPECT_EQ(static_cast<unsigned char*>(Local(*q))[5], 2);
    EXPECT_TRUE(CloseKey(key).ok());
    second.Send(1);
    EXPECT_EQ(second.Wait(), 0);
  });
  first.Wait();
}

TEST_F(ShareTest, SharedAnewAfterARevocationEarlierImportersStillHold) {
  Child owner([&](Child::Side& side) {
    auto p = Allocate(0, 2 * kMiB);
    const std::string key = *ExportKey(*p, 2 * kMiB, false);
    const int32_t importer = static_cast<int32_t>(side.Receive());
    const int32_t pids[] = {importer};
    if (!AllowProcesses(key, pids).ok()) return 1;
    SendText(side, key);
    side.Receive();  // imported
    if (!CloseKey(key).ok()) return 2;
    const std::string again = *ExportKey(*p, 2 * kMiB, false);
    if (again == key) return 3;
    SendText(side, again);
    side.Receive();
    if (!Free(*p).ok()) return 4;
    auto other = Allocate(0, 2 * kMiB);
    if (!other.ok() || *other == *p) return 5;  // the first importer still holds the block
    std::memset(Local(*other), 0x77, 2 * kMiB);
    side.Send(UsageOf(0)->mine);
    side.Receive();  // the importer has let go
    (void)Allocate(0, 512).ok();
    return UsageOf(0)->mine == 2 * kMiB + 512 ? 0 : 6;
  });
  ISOLATED({
    owner.Send(static_cast<uint64_t>(getpid()));
    const std::string key = ReceiveText(owner);
    auto q = ImportKey(key);
    ASSERT_TRUE(q.ok()) << q.status().Message();
    owner.Send(1);
    const std::string again = ReceiveText(owner);
    EXPECT_EQ(ImportKey(again).status().code(), Code::kNoPermission) << "allowed under the old name only";
    EXPECT_FALSE(ImportKey(key).ok()) << "revoked";
    static_cast<unsigned char*>(Local(*q))[9] = 0x21;
    owner.Send(1);
    EXPECT_EQ(owner.Receive(), 4 * kMiB);
    EXPECT_EQ(static_cast<unsigned char*>(Local(*q))[9], 0x21);
    EXPECT_TRUE(CloseKey(key).ok());
    owner.Send(1);
  });
  EXPECT_EQ(owner.Wait(), 0);
}

TEST_F(ShareTest, OnlyNamedProcessesMayImport) {
  ISOLATED({
    auto p = Allocate(0, 2 * kMiB);
    const std::string key = *ExportKey(*p, 2 * kMiB, false);
    Child importer([&](Child::Side& side) {
      auto first = ImportKey(key);
      side.Send(first.ok() ? 1 : static_cast<uint64_t>(first.status().code()));
      side.Receive();
      side.Send(ImportKey(key).ok());
      return 0;
    });
    EXPECT_EQ(importer.Receive(), static_cast<uint64_t>(Code::kNoPermission));
    const int32_t pid = importer.pid();
    ASSERT_TRUE(AllowProcesses(key, {&pid, 1}).ok());
    importer.Send(1);
    EXPECT_EQ(importer.Receive(), 1u);
    EXPECT_EQ(importer.Wait(), 0);
    EXPECT_EQ(*ImportKey(key), *p) << "the owner gets its own address";
    ASSERT_TRUE(CloseKey(key).ok());  // the import
    ASSERT_TRUE(CloseKey(key).ok());  // revokes
    EXPECT_FALSE(ImportKey(key).ok());
    EXPECT_TRUE(Check(*p, 2 * kMiB, "f", "x").ok());
    const std::string anew = *ExportKey(*p, 2 * kMiB, true);
    EXPECT_NE(anew, key);
    EXPECT_TRUE(ImportKey(anew).ok());
    EXPECT_FALSE(ImportKey(key).ok()) << "a revoked name stays void";
  });
}

TEST_F(ShareTest, MadeUpKeysAreRefused) {
  ISOLATED({
    const uint32_t seed = std::random_device{}();
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    auto p = Allocate(0, 2 * kMiB);
    const std::string key = *ExportKey(*p, 2 * kMiB, true);
    EXPECT_EQ(ImportKey("").status().code(), Code::kOutOfRange);
    EXPECT_EQ(ImportKey(std::string(200, 'a')).status().code(), Code::kOutOfRange);
    EXPECT_EQ(ImportKey(key + "0").status().code(), Code::kOutOfRange);
    for (int i = 0; i < 2000; ++i) {
      std::string bad = key;
      const size_t at = random() % bad.size();
      bad[at] = "0123456789abcdef"[random() % 16];
      if (bad != key) {
        EXPECT_FALSE(ImportKey(bad).ok()) << bad;
      }
      ImportShareable((uint64_t{random()} << 32) | random()).ok();
    }
    // The state file is hostile: entries that lie about place and size.
    device::StateLayout& shared = (*device::Join())->shared();
    for (auto& entry : shared.exports) {
      if (entry.owner.load() == 0) continue;
      entry.bytes.store(~uint64_t{0});
      entry.offset.store(~uint64_t{0} - 5);
      entry.card.store(3000000000u);
    }
    EXPECT_FALSE(ImportKey(key).ok());
    EXPECT_TRUE(Free(*p).ok());
  });
}

TEST_F(VmmTest, MapsHandlesSideBySide) {
  ISOLATED({
    auto range = ReserveAddress(64 * kMiB);
    ASSERT_TRUE(range.ok());
    char* const at = static_cast<char*>(*range);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % kMapGranularity, 0u);
    EXPECT_NE(Check(at, 1, "f", "x").text().find("nothing is mapped"), std::string::npos);
    // The middle one is placed first, so the pieces are not neighbours in the arena in this order.
    auto b = MallocPhysical(1, 20 * kMiB);
    auto a = MallocPhysical(1, 2 * kMiB);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(UsageOf(1)->mine, 22 * kMiB);
    ASSERT_TRUE(MapPhysical(at, 2 * kMiB, *a).ok());
    ASSERT_TRUE(MapPhysical(at + 2 * kMiB, 20 * kMiB, *b).ok());
    EXPECT_TRUE(Check(at, 22 * kMiB, "f", "x").ok()) << "neighbours are one piece for the client";
    EXPECT_NE(Check(at, 22 * kMiB + 1, "f", "x").text().find("by 1 bytes"), std::string::npos);
    auto* bytes = static_cast<unsigned char*>(Local(at));
    for (size_t i = 0; i < 22 * kMiB; i += 1000) bytes[i] = static_cast<unsigned char>(i / 1000);
    for (size_t i = 0; i < 22 * kMiB; i += 1000) ASSERT_EQ(bytes[i], static_cast<unsigned char>(i / 1000));
    const auto pieces = PiecesOf(at + kMiB, 4 * kMiB);
    ASSERT_EQ(pieces.size(), 2u);
    EXPECT_EQ(pieces[0].offset, (*a)->offset() + kMiB);
    EXPECT_EQ(pieces[0].bytes, kMiB);
    EXPECT_EQ(pieces[1].offset, (*b)->offset());
    EXPECT_EQ(pieces[1].bytes, 3 * kMiB);
    // The same memory shows at a second address.
    auto second = ReserveAddress(20 * kMiB);
    ASSERT_TRUE(MapPhysical(*second, 20 * kMiB, *b).ok());
    EXPECT_EQ(static_cast<unsigned char*>(Local(*second))[1000], bytes[2 * kMiB + 1000]);
    EXPECT_EQ(PhysicalAt(static_cast<char*>(*second) + 5).get(), b->get());
    // The creator lets go: mappings keep the memory.
    *b = Ref<Physical>();
    EXPECT_EQ(UsageOf(1)->mine, 22 * kMiB);
    EXPECT_EQ(Unmap(*second)->bytes, 20 * kMiB);
    EXPECT_EQ(UsageOf(1)->mine, 22 * kMiB);
    EXPECT_EQ(Unmap(at + 2 * kMiB)->bytes, 20 * kMiB);
    EXPECT_EQ(UsageOf(1)->mine, 2 * kMiB);
    EXPECT_FALSE(Check(at + 2 * kMiB, 1, "f", "x").ok());
    EXPECT_TRUE(Check(at, 2 * kMiB, "f", "x").ok());
    EXPECT_FALSE(ReleaseAddress(at).ok()) << "something is still mapped";
    EXPECT_TRUE(Unmap(at).ok());
    EXPECT_TRUE(ReleaseAddress(at).ok());
    EXPECT_TRUE(ReleaseAddress(*second).ok());
    EXPECT_EQ(Local(at), nullptr);
  });
}

// Whether the page at `address` can be read; a write(2) from it answers EFAULT instead of a signal.
bool Readable(const void* address) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const bool readable = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return readable;
}

TEST_F(VmmTest, UnmappedPagesStayForWorkThatWasQueued) {
  ISOLATED({
    auto range = ReserveAddress(8 * kMiB);
    auto memory = MallocPhysical(0, 4 * kMiB);
    auto small = MallocPhysical(0, 2 * kMiB);
    ASSERT_TRUE(range.ok() && memory.ok() && small.ok());
    char* const at = static_cast<char*>(*range);
    ASSERT_TRUE(MapPhysical(at, 4 * kMiB, *memory).ok());
    auto* bytes = static_cast<unsigned char*>(Local(at));
    bytes[0] = 1;
    bytes[3 * kMiB] = 3;
    auto gone = Unmap(at);
    ASSERT_TRUE(gone.ok());
    *memory = Ref<Physical>();
    EXPECT_FALSE(Check(at, 1, "f", "x").ok()) << "void for clients at once";
    EXPECT_EQ(bytes[0], 1);
    EXPECT_EQ(bytes[3 * kMiB], 3);
    EXPECT_EQ(UsageOf(0)->mine, 6 * kMiB) << "counted as long as it is used";
    // Something else is mapped over the first half meanwhile; the rest goes with its holder.
    ASSERT_TRUE(MapPhysical(at, 2 * kMiB, *small).ok());
    bytes[0] = 9;
    gone->pages.reset();
    EXPECT_EQ(UsageOf(0)->mine, 2 * kMiB);
    EXPECT_EQ(bytes[0], 9);
    EXPECT_TRUE(Readable(bytes + 2 * kMiB - 1));
    EXPECT_FALSE(Readable(bytes + 2 * kMiB));
    // A range that is released while work uses it keeps its addresses until that is done.
    auto last = Unmap(at);
    ASSERT_TRUE(ReleaseAddress(at).ok());
    EXPECT_EQ(Local(at), nullptr);
    EXPECT_EQ(bytes[0], 9);
    last->pages.reset();
    EXPECT_FALSE(Readable(bytes));
  });
}

TEST_F(VmmTest, WrongUseIsNamed) {
  ISOLATED({
    auto range = ReserveAddress(8 * kMiB);
    auto memory = MallocPhysical(0, 4 * kMiB);
    ASSERT_TRUE(range.ok() && memory.ok());
    char* const at = static_cast<char*>(*range);
    int host = 0;
    EXPECT_EQ(MapPhysical(at + 4096, 4 * kMiB, *memory).code(), Code::kUnaligned);
    EXPECT_EQ(MapPhysical(at, 3 * kMiB, *memory).code(), Code::kUnaligned);
    EXPECT_NE(MapPhysical(at, 8 * kMiB, *memory).text().find("the handle has"), std::string::npos);
    EXPECT_NE(MapPhysical(at + 6 * kMiB, 4 * kMiB, *memory).text().find("leave the reserved range"), std::string::npos);
    EXPECT_NE(MapPhysical(&host, 2 * kMiB, *memory).text().find("no reserved address range"), std::string::npos);
    ASSERT_TRUE(MapPhysical(at, 4 * kMiB, *memory).ok());
    EXPECT_NE(MapPhysical(at + 2 * kMiB, 4 * kMiB, *memory).text().find("mapped already"), std::string::npos);
    EXPECT_FALSE(Unmap(at + 2 * kMiB).ok());
    EXPECT_FALSE(ReleaseAddress(at + 2 * kMiB).ok());
    EXPECT_NE(Free(at).text().find("reserved address range"), std::string::npos);
    EXPECT_EQ(ReserveAddress(0).status().code(), Code::kInvalidParam);
    EXPECT_EQ(ReserveAddress(size_t{1} << 47).status().code(), Code::kOutOfRange);
    EXPECT_EQ(MallocPhysical(0, size_t{40} << 30).status().code(), Code::kOutOfDeviceMemory);
    EXPECT_EQ(MallocPhysical(0, 0).status().code(), Code::kInvalidParam);
    EXPECT_EQ(MallocPhysical(9, kMiB).status().code(), Code::kInvalidDevice);
  });
}

TEST_F(VmmTest, HandlesGoToOtherProcesses) {
  ISOLATED({
    auto memory = MallocPhysical(0, 4 * kMiB);
    auto mine = ReserveAddress(4 * kMiB);
    ASSERT_TRUE(MapPhysical(*mine, 4 * kMiB, *memory).ok());
    static_cast<unsigned char*>(Local(*mine))[123] = 9;
    auto token = ExportShareable(**memory, true);
    ASSERT_TRUE(token.ok() && *token != 0);
    EXPECT_EQ(ImportShareable(*token)->get(), memory->get());
    Child peer([&](Child::Side& side) {
      {
        auto imported = ImportShareable(*token);
        if (!imported.ok()) return 1;
        auto range = ReserveAddress(4 * kMiB);
        if (!MapPhysical(*range, 4 * kMiB, *imported).ok()) return 2;
        if (static_cast<unsigned char*>(Local(*range))[123] != 9) return 3;
        side.Send(1);
        side.Receive();
        if (static_cast<unsigned char*>(Local(*range))[123] != 9) return 4;  // the owner let go; we hold it
        if (!Unmap(*range).ok()) return 5;
      }
      side.Send(1);
      side.Receive();
      return 0;
    });
    ASSERT_EQ(peer.Receive(), 1u);
    ASSERT_TRUE(Unmap(*mine).ok());
    *memory = Ref<Physical>();
    EXPECT_EQ(UsageOf(0)->mine, 4 * kMiB);
    peer.Send(1);
    peer.Receive();
    ASSERT_TRUE(Free(*Allocate(0, 512)).ok());
    EXPECT_EQ(UsageOf(0)->mine, 0u);
    peer.Send(1);
    EXPECT_EQ(peer.Wait(), 0);
    EXPECT_FALSE(ImportShareable(*token).ok());
  });
}

}  // namespace
}  // namespace npu::hbm
