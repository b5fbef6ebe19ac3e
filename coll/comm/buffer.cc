#include "coll/comm/buffer.h"

#include <cstring>

#include "device/hbm/hbm.h"

namespace npu::coll {

Result<std::unique_ptr<Bounce>> Bounce::Make(int card, std::byte* client, uint64_t bytes) {
  std::unique_ptr<Bounce> bounce(new Bounce);
  NPU_ASSIGN(bounce->allocation_, hbm::Allocate(card, bytes));
  const std::vector<hbm::Piece> pieces = hbm::PiecesOf(bounce->allocation_, bytes);
  if (pieces.size() != 1)
    return Error(Code::kInternal, "A new allocation of {} bytes lies in {} pieces.", bytes, pieces.size());
  bounce->data_ = static_cast<std::byte*>(hbm::Local(bounce->allocation_));
  bounce->client_ = client;
  bounce->place_ = {pieces[0].slot, pieces[0].card, pieces[0].offset, bytes};
  return bounce;
}

Bounce::~Bounce() {
  if (allocation_ != nullptr) static_cast<void>(hbm::Free(allocation_));
}

void Bounce::CopyIn() const { std::memcpy(data_, client_, place_.bytes); }
void Bounce::CopyOut() const { std::memcpy(client_, data_, place_.bytes); }

Result<Resolved> Resolve(const void* client, uint64_t bytes, int card, const char* function, const char* param) {
  Resolved resolved;
  if (bytes == 0) return resolved;
  if (client == nullptr) {
    return Error(Code::kNullPointer, "EI0003: {}: {} is null.", function, param)
        .Remedy("Pass a buffer of {} bytes.", bytes);
  }
  NPU_TRY(hbm::Check(client, bytes, function, param));
  resolved.data = static_cast<std::byte*>(hbm::Local(client));
  const std::vector<hbm::Piece> pieces = hbm::PiecesOf(client, bytes);
  if (pieces.size() == 1) {
    resolved.place = {pieces[0].slot, pieces[0].card, pieces[0].offset, bytes};
    return resolved;
  }
  NPU_ASSIGN(resolved.bounce, Bounce::Make(card, resolved.data, bytes));
  resolved.data = resolved.bounce->data();
  resolved.place = resolved.bounce->place();
  return resolved;
}

}  // namespace npu::coll
