// Which bytes of a block have been written: one state for each 4 KiB, bits only for pages that are written in part.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace npu::strict {

class Written {
 public:
  explicit Written(uint64_t bytes) : bytes_(bytes), pages_((bytes + kPage - 1) / kPage, State::kNone), open_(pages_.size()) {}

  bool All() const { return open_ == 0; }
  void Set(uint64_t from, uint64_t to, bool written);
  // The first byte of [from, to) that was never written.
  std::optional<uint64_t> FirstMissing(uint64_t from, uint64_t to) const;
  bool None(uint64_t from, uint64_t to) const;
  // [at, at + bytes) becomes what [from, from + bytes) of `source` is.
  void CopyFrom(const Written& source, uint64_t from, uint64_t at, uint64_t bytes);

 private:
  static constexpr uint64_t kPage = 4096;
  enum class State : uint8_t { kNone, kSome, kAll };
  using Bits = std::array<uint64_t, kPage / 64>;

  uint64_t PageBytes(uint64_t page) const;
  void Mark(uint64_t page, State state);
  bool Bit(uint64_t at) const;

  uint64_t bytes_;
  std::vector<State> pages_;
  uint64_t open_;  // pages that are not kAll
  std::unordered_map<uint64_t, Bits> bits_;
};

}  // namespace npu::strict
