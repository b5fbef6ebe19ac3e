#include "ops/core/trace.h"

#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "base/log/log.h"
#include "base/os/fd.h"
#include "base/os/process.h"
#include "ops/core/describe.h"
#include "tensor/dtype.h"

namespace npu::ops {
namespace {

const char* Folder() {
  const char* folder = std::getenv("ANYNPU_TRACE");
  return folder != nullptr && *folder != 0 ? folder : nullptr;
}

// The article's switch; its values are compared without regard to case.
bool ProfilingAsked() {
  const char* text = std::getenv("PROFILING_MODE");
  return text != nullptr && strcasecmp(text, "true") == 0;
}
std::atomic<bool> profiling{ProfilingAsked()};

// One file for each process; a forked child opens its own. Lines are written whole and at once: a process may end
// anyhow.
class Sink {
 public:
  void Write(std::string line) {
    line += '\n';
    const std::lock_guard lock(mutex_);
    if (!opened_ || fork_.Forked()) Open();
    if (file_.get() < 0) return;
    [[maybe_unused]] const ssize_t written = ::write(file_.get(), line.data(), line.size());
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    opened_ = false;
  }

 private:
  void Open() {
    fork_.Reset();
    opened_ = true;
    file_.Reset();
    const char* folder = Folder();
    if (folder == nullptr) return;
    const std::string path = fmt::format("{}/trace-{}.jsonl", folder, getpid());
    file_.Reset(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  }

  std::mutex mutex_;
  os::ForkGuard fork_;
  bool opened_ = false;
  os::Fd file_;
};

Sink& TheSink() {
  static Sink* const sink = new Sink;  // lives for ever: tasks may run while the process exits
  return *sink;
}

double Microseconds(Trace::Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

std::string List(std::span<const int64_t> values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

// JSON has no infinities and no NaN: they are words.
std::string Number(double v) { return std::isfinite(v) ? fmt::format("{}", v) : fmt::format("\"{}\"", v); }

std::string TensorFields(const Tensor& t) {
  if (t.dtype == DType::none) return "\"null\": true";
  std::string out = fmt::format("\"dtype\": \"{}\", \"shape\": {}", Name(t.dtype), List(t.Shape()));
  if (!t.Contiguous()) out += ", \"strides\": " + List(t.Strides());
  return out;
}

std::string ScalarFields(const Scalar& s) {
  const std::string value = s.Complex()    ? fmt::format("[{}, {}]", Number(s.re), Number(s.im))
                            : s.Floating() ? Number(s.re)
                                           : fmt::format("{}", s.i);
  return fmt::format("\"dtype\": \"{}\", \"value\": {}", Name(s.dtype), value);
}

template <class T, class F>
std::string Items(std::span<const T> items, F&& fields) {
  std::string out;
  for (const T& item : items) out += fmt::format("{}{{{}}}", out.empty() ? "" : ", ", fields(item));
  return "\"items\": [" + out + "]";
}

std::string Fields(const Args& args, Kind kind, Token k) {
  switch (kind) {
    case Kind::boolean:
      return fmt::format("\"value\": {}", args.slot(k).i != 0);
    case Kind::int8:
    case Kind::int32:
    case Kind::int64:
    case Kind::uint64:
      return fmt::format("\"value\": {}", args.slot(k).i);
    case Kind::dtype:
      return fmt::format("\"value\": \"{}\"", Name(static_cast<DType>(args.slot(k).i)));
    case Kind::real32:
    case Kind::real64:
      return fmt::format("\"value\": {}", Number(args.slot(k).d));
    default:
      break;
  }
  if (args.Null(k)) return "\"null\": true";
  switch (kind) {
    case Kind::tensor:
      return TensorFields(args.Many<Tensor>(k)[0]);
    case Kind::scalar:
      return ScalarFields(args.Many<Scalar>(k)[0]);
    case Kind::tensor_list:
      return Items<Tensor>(args.Many<Tensor>(k), TensorFields);
    case Kind::scalar_list:
      return Items<Scalar>(args.Many<Scalar>(k), ScalarFields);
    case Kind::ints:
      return "\"value\": " + List(args.Many<int64_t>(k));
    case Kind::bools:
      return fmt::format("\"value\": [{}]", fmt::join(args.Many<bool>(k), ", "));
    case Kind::floats: {
      std::string out;
      for (const float v : args.Many<float>(k)) out += (out.empty() ? "" : ", ") + Number(v);
      return "\"value\": [" + out + "]";
    }
    default: {
      const auto text = args.Many<char>(k);
      return "\"value\": " + Quoted({text.data(), text.size()});
    }
  }
}

std::string_view KernelName(const OpDef& op) {
  return op.facts != nullptr ? op.facts(op.kernel).name : std::string_view();
}

}  // namespace

std::atomic<bool> Trace::on_{Folder() != nullptr || ProfilingAsked()};

void Trace::Reload() {
  TheSink().Close();
  profiling.store(ProfilingAsked(), std::memory_order_relaxed);
  on_.store(Folder() != nullptr || ProfilingAsked(), std::memory_order_relaxed);
}

std::string Trace::Line(const OpDef& op, const Args& args, double ts_us, double us, int tid, const Status& status) {
  std::string list;
  for (size_t p = 0; p < op.params.size(); ++p) {
    const Param& param = op.params[p];
    list += fmt::format("{}{{\"name\": \"{}\", \"kind\": \"{}\", \"role\": \"{}\", {}}}", p == 0 ? "" : ", ",
                        param.name, KindName(param.kind), RoleName(param.role),
                        Fields(args, param.kind, Token{static_cast<uint8_t>(p)}));
  }
  const std::string_view kernel = KernelName(op);
  return fmt::format(
      "{{\"op\": \"{}\", \"ts_us\": {:.3f}, \"us\": {:.3f}, \"tid\": {}, \"kernel\": \"{}{}{}\"{}, \"args\": [{}]}}",
      op.name, ts_us, us, tid, op.family, op.family.empty() || kernel.empty() ? "" : " ", kernel,
      status.ok() ? "" : ", \"failed\": " + Quoted(status.text()), list);
}

namespace {

// The operator's tensors in a few words: types and shapes, at most so many.
std::string Tensors(const OpDef& op, const Args& args) {
  constexpr int kMost = 8;
  std::string text;
  int count = 0;
  for (size_t p = 0; p < op.params.size(); ++p) {
    if (op.params[p].kind != Kind::tensor && op.params[p].kind != Kind::tensor_list) continue;
    for (const Tensor& t : args.Many<Tensor>(Token{static_cast<uint8_t>(p)})) {
      if (t.dtype == DType::none) continue;
      if (++count > kMost) return text + " ...";
      text += fmt::format(" {}{}", Name(t.dtype), List(t.Shape()));
    }
  }
  return text;
}

}  // namespace

void Trace::Ran(const OpDef& op, const Args& args, Clock::time_point start, Clock::time_point end,
                const Status& status) {
  if (profiling.load(std::memory_order_relaxed)) {
    log::WriteEvent("PROFILING",
                    fmt::format("{} {:.1f} us{}{}", op.name, Microseconds(end - start), Tensors(op, args),
                                status.ok() ? "" : " failed"),
                    NPU_HERE);
    if (Folder() == nullptr) return;
  }
  TheSink().Write(Line(op, args, Microseconds(start.time_since_epoch()), Microseconds(end - start), gettid(), status));
}

void Trace::Refused(const OpDef& op, const Status& why) {
  if (Folder() == nullptr) return;
  TheSink().Write(fmt::format("{{\"op\": \"{}\", \"ts_us\": {:.3f}, \"tid\": {}, \"refused\": {}}}", op.name,
                              Microseconds(Clock::now().time_since_epoch()), gettid(), Quoted(why.text())));
}

}  // namespace npu::ops
