#include "device/hbm/range_allocator.h"

#include <algorithm>

namespace npu::hbm {

void RangeAllocator::Parts::Add(Range range) {
  if (range.bytes == 0) return;
  by_offset.emplace(range.offset, range.bytes);
  by_size.emplace(range.bytes, range.offset);
  bytes += range.bytes;
}

void RangeAllocator::Parts::Erase(std::map<uint64_t, uint64_t>::iterator at) {
  by_size.erase({at->second, at->first});
  bytes -= at->second;
  by_offset.erase(at);
}

void RangeAllocator::Parts::Insert(Range range) {
  auto next = by_offset.lower_bound(range.offset);
  if (next != by_offset.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == range.offset) {
      range = {before->first, before->second + range.bytes};
      Erase(before);
    }
  }
  if (next != by_offset.end() && next->first == range.end()) {
    range.bytes += next->second;
    Erase(next);
  }
  Add(range);
}

std::optional<Range> RangeAllocator::Parts::Take(uint64_t size, uint64_t align) {
  // Alignment may cost up to `align` at the front, so a part a little too small is passed over and the next is tried.
  for (auto at = by_size.lower_bound({size, 0}); at != by_size.end(); ++at) {
    const Range part{at->second, at->first};
    const uint64_t start = (part.offset + align - 1) & ~(align - 1);
    if (start + size > part.end()) continue;
    Erase(by_offset.find(part.offset));
    Add({part.offset, start - part.offset});
    Add({start + size, part.end() - start - size});
    return Range{start, size};
  }
  return std::nullopt;
}

std::vector<Range> RangeAllocator::TakeAllResident() {
  std::vector<Range> all;
  for (auto at = resident_.by_size.rbegin(); at != resident_.by_size.rend(); ++at)
    all.push_back({at->second, at->first});
  resident_ = {};
  return all;
}

uint64_t RangeAllocator::LargestBelow(uint64_t limit) const {
  auto a = fresh_.by_offset.begin(), b = resident_.by_offset.begin();
  uint64_t begin = 0, end = 0, largest = 0;
  while (a != fresh_.by_offset.end() || b != resident_.by_offset.end()) {
    const bool first = b == resident_.by_offset.end() || (a != fresh_.by_offset.end() && a->first < b->first);
    const auto& [offset, bytes] = first ? *a++ : *b++;
    if (offset >= limit) break;
    if (offset != end) begin = offset;
    end = offset + bytes;
    largest = std::max(largest, std::min(end, limit) - begin);
  }
  return largest;
}

}  // namespace npu::hbm
