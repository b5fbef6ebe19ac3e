// Which parts of an arena are free: a best-fit allocator over offsets that knows which free parts still have pages.
//
//   Range r = *ranges.TakeResident(bytes, align);   // pages are there already
//   Range r = *ranges.TakeFresh(bytes, align);      // none yet
//   ranges.Give(r, /*resident=*/true);              // joined with free neighbours of the same sort
//
// O(log n). Not thread-safe: the arena's lock guards it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace npu::hbm {

struct Range {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t end() const { return offset + bytes; }
  bool operator==(const Range&) const = default;
};

class RangeAllocator {
 public:
  explicit RangeAllocator(uint64_t bytes) { fresh_.Insert({0, bytes}); }

  // The smallest free part that holds `bytes` at a multiple of `align` (a power of two); the lowest of equal ones.
  std::optional<Range> TakeResident(uint64_t bytes, uint64_t align) { return resident_.Take(bytes, align); }
  std::optional<Range> TakeFresh(uint64_t bytes, uint64_t align) { return fresh_.Take(bytes, align); }
  void Give(Range range, bool resident) { (resident ? resident_ : fresh_).Insert(range); }

  // Takes all resident parts out, largest first; the caller gives them back as fresh once their pages are gone.
  std::vector<Range> TakeAllResident();
  uint64_t resident_bytes() const { return resident_.bytes; }
  uint64_t free_bytes() const { return resident_.bytes + fresh_.bytes; }
  // The longest run of free bytes below `limit`, whatever has pages. O(number of parts).
  uint64_t LargestBelow(uint64_t limit) const;
  uint64_t largest_fresh() const { return fresh_.by_size.empty() ? 0 : fresh_.by_size.rbegin()->first; }

 private:
  struct Parts {
    std::map<uint64_t, uint64_t> by_offset;           // offset → bytes
    std::set<std::pair<uint64_t, uint64_t>> by_size;  // bytes, offset
    uint64_t bytes = 0;

    void Insert(Range range);
    void Erase(std::map<uint64_t, uint64_t>::iterator at);
    void Add(Range range);
    std::optional<Range> Take(uint64_t size, uint64_t align);
  };
  Parts fresh_, resident_;
};

}  // namespace npu::hbm
