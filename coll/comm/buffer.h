// A client's buffer as collectives use it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/status/status.h"
#include "coll/transport/line.h"

namespace npu::coll {

// Device memory that stands in for a buffer which is not one piece of an arena (a range mapped from several physical
// handles): the data are copied in before the call and out after it.
class Bounce {
 public:
  static Result<std::unique_ptr<Bounce>> Make(int card, std::byte* client, uint64_t bytes);
  ~Bounce();
  std::byte* data() const { return data_; }
  Place place() const { return place_; }
  void CopyIn() const;
  void CopyOut() const;

 private:
  Bounce() = default;
  void* allocation_ = nullptr;
  std::byte* data_ = nullptr;
  std::byte* client_ = nullptr;
  Place place_;
};

// Those of one call.
struct Bounces {
  std::vector<std::unique_ptr<Bounce>> in, out;
  bool empty() const { return in.empty() && out.empty(); }
};

struct Resolved {
  std::byte* data = nullptr;
  Place place;
  std::unique_ptr<Bounce> bounce;
};
// `function` and `param` are for the text when it is no device memory.
Result<Resolved> Resolve(const void* client, uint64_t bytes, int card, const char* function, const char* param);

}  // namespace npu::coll
