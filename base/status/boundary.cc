#include "base/status/boundary.h"

#include <atomic>
#include <chrono>

#include "base/log/log.h"
#include "base/status/error_text.h"

namespace npu::boundary {

namespace {

// More lines than that in a second tell nothing new: they are counted.
constexpr int64_t kLinesEachSecond = 200;

// Whether a line may be written now; *dropped says how many were not before.
bool Admit(uint64_t* dropped) {
  using namespace std::chrono;
  static std::atomic<int64_t> second{0}, lines{0};
  static std::atomic<uint64_t> lost{0};
  const int64_t now = duration_cast<seconds>(steady_clock::now().time_since_epoch()).count();
  if (second.exchange(now, std::memory_order_relaxed) != now) lines.store(0, std::memory_order_relaxed);
  if (lines.fetch_add(1, std::memory_order_relaxed) >= kLinesEachSecond) {
    lost.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  *dropped = lost.exchange(0, std::memory_order_relaxed);
  return true;
}

const char* ModuleOf(CodeOf code_of) {
  return code_of == NnCode ? "OP" : code_of == HcclCode ? "HCCL" : code_of == DcmiCode ? "DRV" : "ASCENDCL";
}

void LogFailure(const Status& status, int32_t code, CodeOf code_of) {
  const auto level = static_cast<log::Level>(LogLevelOf(status));
  uint64_t dropped = 0;
  if (!log::Enabled(level) || !Admit(&dropped)) return;
  std::string line = fmt::format("{}: {} ErrCode={}, desc=[{}]", ErrorNumber(status, code),
                                 TextWithoutNumber(status.Message()), code, CodeName(status.code()));
  if (dropped > 0)
    line += fmt::format(" ({} lines before were left out: more than {} in a second)", dropped, kLinesEachSecond);
  log::Write(level, ModuleOf(code_of), line, NPU_HERE);
}

}  // namespace

int32_t Refuse(const Status& status, CodeOf code_of) noexcept {
  const int32_t code = code_of(status.code());
  try {
    RecordError(status, code);
    LogFailure(status, code, code_of);
  } catch (...) {
    // Memory is exhausted: the number alone has to do.
  }
  return code;
}

namespace {
constinit std::atomic<uint32_t> ask_first{1};
constinit std::atomic<uint32_t> never{0};
}  // namespace

constinit FaultGate fault_gate{&ask_first};

bool FailsOnDemand(const char* name, int32_t* code) noexcept {
  const auto look = fault_gate.look.load(std::memory_order_acquire);
  if (look == nullptr) {
    const std::atomic<uint32_t>* first = &ask_first;
    fault_gate.armed.compare_exchange_strong(first, &never, std::memory_order_acq_rel);
    return false;
  }
  try {
    if (!look(name, code)) return false;
    const Status status = Error(Code::kInternal, "{}: a failure with {} was injected.", name, *code)
                              .Remedy("anynpu faults lists what was injected, anynpu clear ends it.");
    RecordError(status, *code);
    const std::string_view function = name;
    LogFailure(status, *code,
               function.starts_with("aclnn")  ? NnCode
               : function.starts_with("Hccl") ? HcclCode
               : function.starts_with("dcmi") ? DcmiCode
                                              : AclCode);
    return true;
  } catch (...) {
    return false;
  }
}

int32_t Owed(const char* name, CodeOf code_of) noexcept {
  return Run(name, code_of, [&] { return NotYet(name); });
}

int32_t Unsupported(const char* name, const char* why, CodeOf code_of) noexcept {
  return Run(name, code_of, [&] { return npu::Unsupported(name, why); });
}

Status Thrown(const char* name) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Error(Code::kBadAlloc, "{}: the host has no memory left for this call.", name)
        .Remedy("Close other programs or give the process more memory.");
  } catch (const std::exception& e) {
    return Error(Code::kInternal, "{}: a fault inside AnyNPU: {}.", name, e.what()).Remedy("Please report it.");
  } catch (...) {
    return Error(Code::kInternal, "{}: a fault inside AnyNPU.", name).Remedy("Please report it.");
  }
}

}  // namespace npu::boundary
