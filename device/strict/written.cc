#include "device/strict/written.h"

#include <algorithm>
#include <bit>

namespace npu::strict {
namespace {

// Bits [from, to) of the words, from < to.
template <class F>
void EachWord(uint64_t from, uint64_t to, F&& f) {
  while (from < to) {
    const uint64_t word = from / 64, first = from % 64, last = std::min<uint64_t>(64, first + (to - from));
    const uint64_t mask = (last == 64 ? ~uint64_t{0} : (uint64_t{1} << last) - 1) & (~uint64_t{0} << first);
    if (!f(word, mask)) return;
    from += last - first;
  }
}

}  // namespace

uint64_t Written::PageBytes(uint64_t page) const { return std::min(kPage, bytes_ - page * kPage); }

void Written::Mark(uint64_t page, State state) {
  State& now = pages_[page];
  if (now == State::kSome && state != State::kSome) bits_.erase(page);
  open_ += (now == State::kAll) - (state == State::kAll);
  now = state;
}

bool Written::Bit(uint64_t at) const {
  const uint64_t page = at / kPage;
  if (pages_[page] != State::kSome) return pages_[page] == State::kAll;
  const uint64_t bit = at % kPage;
  return (bits_.at(page)[bit / 64] >> (bit % 64) & 1) != 0;
}

void Written::Set(uint64_t from, uint64_t to, bool written) {
  to = std::min(to, bytes_);
  const State whole = written ? State::kAll : State::kNone;
  while (from < to) {
    const uint64_t page = from / kPage, begin = from % kPage, end = std::min(to - page * kPage, kPage);
    from = page * kPage + end;
    if (pages_[page] == whole) continue;
    if (begin == 0 && end >= PageBytes(page)) {
      Mark(page, whole);
      continue;
    }
    if (pages_[page] != State::kSome) {
      Bits fresh;
      fresh.fill(written ? 0 : ~uint64_t{0});
      Mark(page, State::kSome);
      bits_[page] = fresh;
    }
    Bits& bits = bits_[page];
    EachWord(begin, end, [&](uint64_t word, uint64_t mask) {
      bits[word] = written ? bits[word] | mask : bits[word] & ~mask;
      return true;
    });
    bool all = true, none = true;
    EachWord(0, PageBytes(page), [&](uint64_t word, uint64_t mask) {
      all = all && (bits[word] & mask) == mask;
      none = none && (bits[word] & mask) == 0;
      return all || none;
    });
    if (all) Mark(page, State::kAll);
    if (none) Mark(page, State::kNone);
  }
}

std::optional<uint64_t> Written::FirstMissing(uint64_t from, uint64_t to) const {
  if (open_ == 0) return std::nullopt;
  to = std::min(to, bytes_);
  while (from < to) {
    const uint64_t page = from / kPage, end = std::min(to, (page + 1) * kPage);
    if (pages_[page] == State::kNone) return from;
    if (pages_[page] == State::kSome) {
      const Bits& bits = bits_.at(page);
      std::optional<uint64_t> missing;
      EachWord(from % kPage, end - page * kPage, [&](uint64_t word, uint64_t mask) {
        const uint64_t absent = ~bits[word] & mask;
        if (absent != 0) missing = page * kPage + word * 64 + static_cast<uint64_t>(std::countr_zero(absent));
        return absent == 0;
      });
      if (missing) return missing;
    }
    from = end;
  }
  return std::nullopt;
}

bool Written::None(uint64_t from, uint64_t to) const {
  to = std::min(to, bytes_);
  while (from < to) {
    const uint64_t page = from / kPage, end = std::min(to, (page + 1) * kPage);
    if (pages_[page] == State::kAll) return false;
    if (pages_[page] == State::kSome) {
      bool none = true;
      const Bits& bits = bits_.at(page);
      EachWord(from % kPage, end - page * kPage, [&](uint64_t word, uint64_t mask) { return none = none && (bits[word] & mask) == 0; });
      if (!none) return false;
    }
    from = end;
  }
  return true;
}

void Written::CopyFrom(const Written& source, uint64_t from, uint64_t at, uint64_t bytes) {
  uint64_t done = 0;
  while (done < bytes) {  // runs of equal state
    const auto missing = source.FirstMissing(from + done, from + bytes);
    const uint64_t until = missing ? *missing - from : bytes;
    if (until > done) Set(at + done, at + until, true);
    done = until;
    if (done >= bytes) return;
    uint64_t next = done;
    while (next < bytes && !source.Bit(from + next)) {
      const uint64_t page_end = ((from + next) / kPage + 1) * kPage - from;
      next = source.pages_[(from + next) / kPage] == State::kNone ? std::min(page_end, bytes) : next + 1;
    }
    Set(at + done, at + next, false);
    done = next;
  }
}

}  // namespace npu::strict
