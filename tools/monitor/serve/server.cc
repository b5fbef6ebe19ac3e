#include "tools/monitor/serve/server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <charconv>
#include <chrono>
#include <utility>

#include "base/os/thread.h"

namespace npu::monitor {
namespace {

constexpr int kThreads = 8, kMostListeners = 16;
constexpr time_t kPatienceSeconds = 5;
constexpr size_t kMostPayload = 16 << 10;
constexpr size_t kKeepAlive = 1000;
constexpr auto kEventPeriod = std::chrono::seconds(1);
constexpr auto kEventLook = std::chrono::milliseconds(50);  // how soon an end or a gone listener is noticed

// Only the address may be taken again at once after an end; two servers on one port are an error.
void SocketOptions(int socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

// The library's texts for OpenSSL's last error would name files only; so do we.
bool SetUpTls(SSL_CTX& context, const WebConfig& config) {
  SSL_CTX_set_min_proto_version(&context, config.min_tls == 13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  if (SSL_CTX_use_certificate_chain_file(&context, config.cert_file.c_str()) != 1) return false;
  if (SSL_CTX_use_PrivateKey_file(&context, config.key_file.c_str(), SSL_FILETYPE_PEM) != 1) return false;
  if (SSL_CTX_check_private_key(&context) != 1) return false;
  if (config.client_auth == WebConfig::ClientAuth::kNone) return true;
  if (SSL_CTX_load_verify_locations(&context, config.client_ca_file.c_str(), nullptr) != 1) return false;
  const int required = config.client_auth == WebConfig::ClientAuth::kRequire ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | required, nullptr);
  return true;
}

std::string ClientOf(const httplib::Request& request) {
  return Deadline::Key(request.remote_addr, request.remote_port);
}

}  // namespace

Result<Address> ParseAddress(const std::string& text) {
  Address address{.host = "127.0.0.1"};
  std::string port = text;
  if (const size_t colon = text.rfind(':'); colon != std::string::npos) {
    address.host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']')
      address.host = address.host.substr(1, address.host.size() - 2);
    if (address.host.empty()) address.host = "::";
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size() || address.port < 0 || address.port > 65535) {
    return Error(Code::kInvalidParam, "{} is no address to listen on.", text)
        .Remedy("Write HOST:PORT, e.g. 127.0.0.1:8082, or a port.");
  }
  return address;
}

Server::Server(std::string name, const WebConfig& config, std::chrono::milliseconds limit)
    : name_(std::move(name)), config_(config), auth_(config.users), deadline_(limit) {
  prepared_ = Prepare();
}

Server::~Server() { Stop(); }

Status Server::Prepare() {
  if (config_.tls()) {
    http_ = std::make_unique<httplib::SSLServer>([this](SSL_CTX& context) { return SetUpTls(context, config_); });
    if (!http_->is_valid()) {
      return Error(Code::kInvalidParam, "{}: the certificate {} and the key {} cannot be used.", name_,
                   config_.cert_file, config_.key_file)
          .Remedy("Both are PEM files, readable for this user, and belong together.");
    }
  } else {
    http_ = std::make_unique<httplib::Server>();
  }
  http_->new_task_queue = [] { return new httplib::ThreadPool(kThreads + kMostListeners); };
  http_->set_socket_options(SocketOptions);
  http_->set_payload_max_length(kMostPayload);
  http_->set_read_timeout(kPatienceSeconds, 0);
  http_->set_write_timeout(kPatienceSeconds, 0);
  http_->set_keep_alive_max_count(kKeepAlive);
  http_->set_tcp_nodelay(true);
  http_->set_default_headers({{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}});
  http_->set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
    response.status = 500;
    response.set_content("internal error\n", "text/plain");
  });
  http_->set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    using Answer = httplib::Server::HandlerResponse;
    deadline_.Progress(ClientOf(request));
    if (!auth_.Allows(request.get_header_value("Authorization"))) {
      response.status = 401;
      response.set_header("WWW-Authenticate", "Basic");
      response.set_content("Unauthorized\n", "text/plain");
      return Answer::Handled;
    }
    if (request.method != "GET" && request.method != "HEAD") {
      response.status = 405;
      response.set_header("Allow", "GET, HEAD");
      response.set_content("only GET and HEAD\n", "text/plain");
      return Answer::Handled;
    }
    return Answer::Unhandled;
  });
  return {};
}

void Server::Get(const std::string& path, const std::string& type, std::function<std::string()> content) {
  if (!prepared_.ok()) return;
  http_->Get(path, [type, content = std::move(content)](const httplib::Request&, httplib::Response& response) {
    if (type.starts_with("text/html")) {
      response.set_header("Content-Security-Policy",
                          "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src "
                          "'unsafe-inline'; img-src data:; "
                          "frame-ancestors 'none'");
    }
    response.set_content(content(), type);
  });
}

void Server::Events(const std::string& path, std::function<std::string()> next) {
  if (!prepared_.ok()) return;
  http_->Get(path, [this, next = std::move(next)](const httplib::Request& request, httplib::Response& response) {
    if (listeners_.fetch_add(1) >= kMostListeners) {
      listeners_.fetch_sub(1);
      response.status = 503;
      response.set_content("too many listeners\n", "text/plain");
      return;
    }
    auto started = std::make_shared<bool>(false);
    const std::string client = ClientOf(request);
    deadline_.Hold(client);
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, next, started](size_t, httplib::DataSink& sink) {
          const auto until = std::chrono::steady_clock::now() + kEventPeriod;
          while (std::exchange(*started, true) && std::chrono::steady_clock::now() < until) {
            if (stopping_.load() || !sink.is_writable()) return false;
            std::this_thread::sleep_for(kEventLook);
          }
          if (stopping_.load()) return false;
          const std::string event = "data: " + next() + "\n\n";
          return sink.write(event.data(), event.size());
        },
        [this, client](bool) {
          deadline_.Release(client);
          listeners_.fetch_sub(1);
        });
  });
}

Status Server::Start(const Address& address) {
  NPU_TRY(prepared_);
  if (address.port == 0) {
    port_ = http_->bind_to_any_port(address.host);
  } else {
    port_ = http_->bind_to_port(address.host, address.port) ? address.port : -1;
  }
  if (port_ <= 0) {
    return Error(Code::kInvalidParam,
                 "{}: cannot listen on {}:{}: the port is taken or the address is not of this computer.", name_,
                 address.host, address.port)
        .Remedy("See who has it (ss -ltnp), or choose another with --listen HOST:PORT.");
  }
  NPU_TRY(deadline_.Watch(port_));
  NPU_ASSIGN(thread_, os::Start("npu-http", [this] { http_->listen_after_bind(); }));
  // A stop before it listens would be lost, and the end would wait for ever.
  while (!http_->is_running() && http_->is_valid()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return {};
}

void Server::Stop() {
  stopping_.store(true);
  if (http_) http_->stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace npu::monitor
