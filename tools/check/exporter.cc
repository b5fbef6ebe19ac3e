// A running exporter of Prometheus figures, on this host.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/os/fd.h"
#include "tools/check/check.h"

namespace npu::check {
namespace {

constexpr int kPatienceMs = 5000;
constexpr size_t kLargest = 16 << 20;

// The body of GET /metrics; *why says what went wrong, *running whether anybody listens.
std::string Get(int port, bool* running, std::string* why) {
  *running = false;
  const os::Fd connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!connection || connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  *running = true;
  const std::string request = fmt::format(
      "GET /metrics HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\nAccept: text/plain\r\n\r\n", port);
  if (send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    *why = std::strerror(errno);
    return {};
  }
  std::string text;
  char chunk[65536];
  for (;;) {
    pollfd waiting{connection.get(), POLLIN, 0};
    if (poll(&waiting, 1, kPatienceMs) <= 0) {
      *why = fmt::format("no answer within {} s", kPatienceMs / 1000);
      return {};
    }
    const ssize_t n = recv(connection.get(), chunk, sizeof chunk, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(chunk, static_cast<size_t>(n));
    if (text.size() > kLargest) break;
  }
  if (text.rfind("HTTP/1.", 0) != 0 || text.find(" 200") != 8) *why = "it answers " + text.substr(0, text.find('\r'));
  const size_t body = text.find("\r\n\r\n");
  return body == std::string::npos ? std::string() : text.substr(body + 4);
}

}  // namespace

void CheckExporter(Sink& sink, int port) {
  bool running = false;
  std::string why;
  const std::string body = Get(port, &running, &why);
  if (!running)
    return sink.LeftOut("exporter", fmt::format("not running on port {} (--exporter-port names another)", port));
  if (!why.empty()) return sink.Failed("GET /metrics", why);
  sink.Passed("GET /metrics");
  size_t samples = 0, cards = 0;
  for (size_t at = 0; at < body.size();) {
    const size_t end = std::min(body.find('\n', at), body.size());
    const std::string line = body.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line[0] == '#') continue;
    ++samples;
    if (line.rfind("npu_chip_info_", 0) == 0 || line.rfind("machine_npu_nums", 0) == 0) ++cards;
  }
  sink.Note(fmt::format("port {}, {} samples", port, samples));
  if (samples == 0)
    sink.Failed("samples", "the page holds none");
  else
    sink.Passed("samples");
  if (cards == 0)
    sink.Failed("samples of NPUs",
                "no line begins with npu_chip_info_ or machine_npu_nums: another exporter may listen there");
  else
    sink.Passed("samples of NPUs");
}

}  // namespace npu::check
