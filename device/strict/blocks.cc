#include "device/strict/blocks.h"

#include <fmt/format.h>

#include "base/os/script_line.h"

namespace npu::strict {
namespace {
constexpr uint64_t kNear = 4096;  // guard pages around a block
}

Origin Origin::Here(std::string_view call) { return {call, Stack::Here(), os::ScriptFrames(3)}; }

std::string Origin::Tell(std::string_view verb) const {
  std::string text = fmt::format("    {} by {}:\n", verb, call);
  for (const std::string& frame : python) text += fmt::format("        {}\n", frame);
  if (python.empty()) text += stack.Tell("        ");
  return text;
}

std::string Block::Tell() const {
  return fmt::format("    allocation: {} bytes at {:#x} on card {}\n{}", bytes, client, card, origin.Tell("allocated"));
}

Block& Blocks::Add(Block block) {
  const uintptr_t at = block.begin();
  return blocks_.insert_or_assign(at, std::move(block)).first->second;
}

Block* Blocks::Find(uintptr_t local, bool near) {
  auto next = blocks_.upper_bound(local);
  if (next != blocks_.begin()) {
    Block& block = std::prev(next)->second;
    if (local < block.end() || (near && local < block.end() + block.zones.after + kNear)) return &block;
  }
  if (near && next != blocks_.end() && local + next->second.zones.before + kNear >= next->first) return &next->second;
  return nullptr;
}

void Blocks::Remove(uintptr_t local, Origin freed) {
  const auto at = blocks_.find(local);
  if (at == blocks_.end()) return;
  gone_.push_back({std::move(at->second), std::move(freed)});
  gone_.back().block.written = Written(0);
  blocks_.erase(at);
  if (gone_.size() > kGoneKept) gone_.pop_front();
}

const Gone* Blocks::FindGone(uintptr_t local) const {
  for (auto at = gone_.rbegin(); at != gone_.rend(); ++at) {
    if (local >= at->block.begin() && local < at->block.end()) return &*at;
  }
  return nullptr;
}

const Gone* Blocks::FindGoneClient(uintptr_t client) const {
  for (auto at = gone_.rbegin(); at != gone_.rend(); ++at) {
    if (client >= at->block.client && client < at->block.client + at->block.bytes) return &*at;
  }
  return nullptr;
}

Block* Blocks::FindClient(uintptr_t client) {
  for (auto& [local, block] : blocks_) {
    if (client >= block.client && client < block.client + block.bytes) return &block;
  }
  return nullptr;
}

}  // namespace npu::strict
