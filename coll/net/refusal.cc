#include "coll/net/refusal.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>

#include "coll/net/socket.h"

namespace npu::coll {
namespace {
constexpr uint32_t kMostText = 1 << 14;
}  // namespace

Status SendFailure(int fd, const Status& status, Deadline deadline) {
  std::string text(status.text());
  text += '\0';
  text += status.remedy();
  text.resize(std::min<size_t>(text.size(), kMostText));
  const Frame frame{static_cast<uint32_t>(status.code()), static_cast<uint32_t>(text.size())};
  NPU_TRY(SendAll(fd, std::as_bytes(std::span(&frame, 1)), deadline));
  return SendAll(fd, std::as_bytes(std::span(text)), deadline);
}

Status ReceiveFailure(int fd, const Frame& frame, Deadline deadline) {
  std::string text(std::min(frame.bytes, kMostText), '\0');
  NPU_TRY(ReceiveAll(fd, std::as_writable_bytes(std::span(text)), deadline));
  const size_t end = text.find('\0');
  const auto code =
      frame.code <= static_cast<uint32_t>(Code::kCommMismatch) ? static_cast<Code>(frame.code) : Code::kInternal;
  std::string cause = text.substr(0, end);
  if (cause.empty()) cause = "EI0006: a rank gave up while the communicator was being made and did not say why.";
  Status status(code, std::move(cause));
  if (end != std::string::npos && end + 1 < text.size()) status = std::move(status).Remedy("{}", text.substr(end + 1));
  return status;
}

void Tell(const std::string& line) {
  const std::string whole = "anynpu: " + line + "\n";
  if (::write(STDERR_FILENO, whole.data(), whole.size()) < 0) return;  // stderr may be closed
}

}  // namespace npu::coll
