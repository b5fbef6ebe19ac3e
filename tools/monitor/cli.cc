#include "tools/monitor/cli.h"

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "device/machine/names.h"
#include "tools/monitor/expose/source.h"
#include "tools/monitor/serve/server.h"
#include "tools/monitor/top/top.h"
#include "tools/monitor/web/json.h"

namespace npu::monitor {
namespace {

constexpr int kFailed = 1;
constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

struct ServeOptions {
  std::string listen, web_config;
  double request_timeout_s = 10;
  std::chrono::milliseconds Limit() const { return std::chrono::milliseconds(std::llround(request_timeout_s * 1e3)); }
};

int Fail(const Status& status) {
  fmt::print(stderr, "anynpu: {}\n", status.Message());
  return kFailed;
}

void AddCollector(CLI::App& app, CollectorOptions& options) {
  options.name = "auto";
  app.add_option("--collector", options.name, "where figures come from: auto, software, dcmi, npu-smi, sysfs (auto)")
      ->type_name("NAME");
  app.add_option_function<std::string>(
         "--machine",
         [](const std::string& name) {
           setenv("ANYNPU_MACHINE", name.c_str(), 1);
           // It may be made later, so this is no end; idle cards of a name that was mistyped must not pass unseen.
           if (const Status there = device::MustExist(name); !there.ok())
             fmt::print(stderr, "anynpu: {}\nanynpu: until then its cards are shown as nobody uses them.\n",
                        there.Message());
         },
         "which software machine (default)")
      ->type_name("NAME");
  app.add_option("--sysfs", options.sysfs, "root of the sysfs collector (/sys/class/npu)")->type_name("DIR");
  app.add_option("--procfs", options.proc, "where processes are looked up (/proc)")->type_name("DIR");
  app.add_option("--hccn-tool", options.hccn_tool,
                 "hccn_tool of the dcmi collector, or off (the driver's, else one on PATH)")
      ->type_name("PATH");
  app.add_option("--npu-smi", options.npu_smi, "command, or file of its output, of the npu-smi collector (npu-smi)")
      ->type_name("PATH");
}

void AddServe(CLI::App& app, ServeOptions& options, const char* listen) {
  options.listen = listen;
  app.add_option("--listen", options.listen,
                 fmt::format("address; a port alone is loopback, :PORT all interfaces ({})", listen))
      ->type_name("HOST:PORT");
  app.add_option("--request-timeout", options.request_timeout_s,
                 "seconds after which a connection without a whole request is closed (10)")
      ->type_name("S")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--web.config.file,--web-config", options.web_config,
                 "TLS and basic authentication, as Prometheus has it")
      ->type_name("FILE");
}

// Waits for SIGINT or SIGTERM, which every thread has blocked.
void AwaitEnd(const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
}

sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

std::string Welcome() {
  return "<!doctype html><title>anynpu exporter</title><h1>anynpu exporter</h1><p><a "
         "href=\"/metrics\">Metrics</a></p>\n";
}

int Exporter(Source& source, const ServeOptions& options, const std::string& trainer, bool once) {
  if (once) {
    std::fputs(source.Cards()->c_str(), stdout);
    std::fputs(source.Ranks()->c_str(), stdout);
    return 0;
  }
  WebConfig web;
  if (!options.web_config.empty()) {
    Result<WebConfig> read = ReadWebConfig(options.web_config);
    if (!read.ok()) return Fail(read.status());
    web = std::move(*read);
  }
  const sigset_t signals = BlockSignals();
  Server cards("exporter", web, options.Limit()), ranks("exporter (ranks)", web, options.Limit());
  cards.Get("/", "text/html; charset=utf-8", Welcome);
  cards.Get("/metrics", kMetricsType, [&] { return *source.Cards(); });
  ranks.Get("/metrics", kMetricsType, [&] { return *source.Ranks(); });
  Result<Address> address = ParseAddress(options.listen);
  Status started = address.ok() ? cards.Start(*address) : address.status();
  if (!started.ok()) return Fail(started);
  const char* scheme = web.tls() ? "https" : "http";
  fmt::print(stderr, "anynpu: cards on {}://{}:{}/metrics\n", scheme, address->host, cards.port());
  if (trainer != "off") {
    // Without it the cards are still served.
    Result<Address> second = ParseAddress(trainer);
    started = second.ok() ? ranks.Start(*second) : second.status();
    if (started.ok()) {
      fmt::print(stderr, "anynpu: ranks on {}://{}:{}/metrics\n", scheme, second->host, ranks.port());
    } else {
      fmt::print(stderr, "anynpu: {} Ranks are not served (--trainer HOST:PORT, or off).\n", started.Message());
    }
  }
  source.Now();
  AwaitEnd(signals);
  return 0;
}

int Web(Source& source, const ServeOptions& options) {
  WebConfig web;
  if (!options.web_config.empty()) {
    Result<WebConfig> read = ReadWebConfig(options.web_config);
    if (!read.ok()) return Fail(read.status());
    web = std::move(*read);
  }
  const sigset_t signals = BlockSignals();
  Server server("web", web, options.Limit());
  server.Get("/", "text/html; charset=utf-8", [] { return std::string(Page()); });
  server.Get("/now", "application/json", [&] { return JsonOf(*source.Now()); });
  server.Events("/events", [&] { return JsonOf(*source.Now()); });
  Result<Address> address = ParseAddress(options.listen);
  const Status started = address.ok() ? server.Start(*address) : address.status();
  if (!started.ok()) return Fail(started);
  fmt::print(stderr, "anynpu: {}://{}:{}/\n", web.tls() ? "https" : "http", address->host, server.port());
  AwaitEnd(signals);
  return 0;
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("Monitors for software and real NPUs.", "anynpu");
  app.require_subcommand(1);
  CollectorOptions collector;
  ServeOptions serve;
  CLI::App* exporter = app.add_subcommand("exporter", "Prometheus exporter: the npu-exporter's metrics and more");
  AddCollector(*exporter, collector);
  AddServe(*exporter, serve, "127.0.0.1:8082");
  std::string trainer = "127.0.0.1:8000";
  bool print = false;
  exporter->add_option("--trainer", trainer, "address of the ranks' step times, or off (127.0.0.1:8000)")
      ->type_name("HOST:PORT");
  exporter->add_flag("--print", print, "write the metrics to stdout and end");
  CLI::App* top = app.add_subcommand("top", "Cards, processes, collectives and operators in the terminal");
  CollectorOptions top_collector;
  AddCollector(*top, top_collector);
  TopOptions top_options;
  top->add_option("-d,--interval", top_options.interval_s, "seconds between pictures (1)")
      ->type_name("S")
      ->check(CLI::Range(0.1, 3600.0));
  top->add_flag("--once", top_options.once, "one picture without control codes");
  CLI::App* web = app.add_subcommand("web", "The same as a page in the browser, live");
  CollectorOptions web_collector;
  ServeOptions web_serve;
  AddCollector(*web, web_collector);
  AddServe(*web, web_serve, "127.0.0.1:8090");
  CLI11_PARSE(app, argc, argv);

  const CollectorOptions& chosen = *top ? top_collector : *web ? web_collector : collector;
  Result<std::unique_ptr<Collector>> made = MakeCollector(chosen);
  if (!made.ok()) return Fail(made.status());
  Source source(std::move(*made));
  if (*top) return Top(source, top_options);
  if (*web) return Web(source, web_serve);
  return Exporter(source, serve, trainer, print);
}

}  // namespace npu::monitor
