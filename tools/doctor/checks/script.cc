// The user's own scripts, given by name: patterns that are known to fail.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tools/doctor/checks/check.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace {

constexpr int kMostPrefetched = 16;  // batches a processor

// Lines without comments; shell and Python both write them with #.
std::vector<std::string_view> Lines(const Script& script) {
  std::vector<std::string_view> lines;
  for (std::string_view line : Split(script.text, '\n')) {
    if (!Trim(line).starts_with('#')) lines.push_back(line);
  }
  return lines;
}

// The number behind `name=`, with blanks allowed: num_workers = 8.
std::optional<int> Assigned(std::string_view line, std::string_view name) {
  size_t at = line.find(name);
  if (at == line.npos) return std::nullopt;
  at += name.size();
  while (at < line.size() && line[at] == ' ') ++at;
  if (at >= line.size() || line[at] != '=') return std::nullopt;
  ++at;
  while (at < line.size() && line[at] == ' ') ++at;
  int value = 0;
  const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), value);
  return error == std::errc() && end != line.data() + at ? std::optional(value) : std::nullopt;
}

bool IsPython(const Script& script) { return script.path.ends_with(".py") || Contains(script.text, "import torch"); }

}  // namespace

NPU_CHECK(Unreadable, "script-unreadable", kError, kScript, "scripts that were named can be read") {
  for (const Script& script : portrait.scripts) {
    if (script.text.empty())
      report.Add(fmt::format("{} is empty or cannot be read", script.path), "give the path of a readable script");
  }
}

// npu_torchrun.sh of the article: mpirun -n N starts N launchers, each of which starts N ranks.
NPU_CHECK(TwoLaunchers, "launcher-in-launcher", kError, kScript, "mpirun does not start torchrun") {
  for (const Script& script : portrait.scripts) {
    std::string joined;
    for (std::string_view line : Lines(script)) {
      const bool goes_on = line.ends_with('\\');
      joined += line.substr(0, line.size() - (goes_on ? 1 : 0));
      if (goes_on) continue;
      const bool mpi = Contains(joined, "mpirun ") || Contains(joined, "mpiexec ");
      if (mpi && (Contains(joined, "torch.distributed.run") || Contains(joined, "torchrun") ||
                  Contains(joined, "torch.distributed.launch"))) {
        report.Add(
            fmt::format(
                "{}: mpirun starts torch.distributed.run: N launchers with N ranks each, on the same ports and cards",
                script.path),
            "start it once: torchrun --nproc_per_node=N train.py (HCCL needs no MPI)");
      }
      joined.clear();
    }
  }
}

NPU_CHECK(ScriptOrder, "script-home-order", kError, kScript,
          "a script sets ASCEND_HOME before LD_LIBRARY_PATH uses it") {
  for (const Script& script : portrait.scripts) {
    bool set = portrait.Has("ASCEND_HOME");
    for (std::string_view line : Lines(script)) {
      if (Contains(line, "ASCEND_HOME=") && !Contains(line, "LD_LIBRARY_PATH=")) set = true;
      if (!set && Contains(line, "LD_LIBRARY_PATH=") &&
          (Contains(line, "$ASCEND_HOME/") || Contains(line, "${ASCEND_HOME}/"))) {
        report.Add(fmt::format("{}: LD_LIBRARY_PATH uses $ASCEND_HOME before it is set, so it begins with "
                               "/runtime/lib64 and AscendOp's library is not found",
                               script.path),
                   "set ASCEND_HOME in a line before, or source set_env.sh");
        break;
      }
    }
  }
}

NPU_CHECK(Nccl, "script-nccl", kError, kScript, "a script asks for the backend hccl") {
  for (const Script& script : portrait.scripts) {
    if (Contains(script.text, "transfer_to_npu")) continue;  // it replaces nccl and cuda
    for (std::string_view line : Lines(script)) {
      if (!Contains(line, "\"nccl\"") && !Contains(line, "'nccl'")) continue;
      report.Add(fmt::format("{} asks for the backend nccl, which exists for CUDA only", script.path),
                 "init_process_group(backend=\"hccl\"), or from torch_npu.contrib import transfer_to_npu at the top");
      break;
    }
  }
}

NPU_CHECK(Workers, "dataloader-workers", kWarning, kScript, "DataLoader workers fit the processors") {
  int ranks = 1;
  const std::string here = portrait.Env("LOCAL_WORLD_SIZE");
  std::from_chars(here.data(), here.data() + here.size(), ranks);
  ranks = std::clamp(ranks, 1, 4096);
  for (const Script& script : portrait.scripts) {
    if (!IsPython(script)) continue;
    for (std::string_view line : Lines(script)) {
      const auto workers = Assigned(line, "num_workers");
      const auto prefetch = Assigned(line, "prefetch_factor");
      const int cores = portrait.system.cores;
      const long all = workers ? static_cast<long>(*workers) * ranks : 0;
      if (all > cores) {
        report.Add(
            fmt::format("{}: num_workers={}{} on {} processors: workers take the time of the training process",
                        script.path, *workers, ranks > 1 ? fmt::format(" in each of {} ranks", ranks) : "", cores),
            fmt::format("num_workers={} (half of the processors, divided by the ranks), prefetch_factor=4",
                        std::max(1, cores / 2 / ranks)));
      } else if (workers && prefetch && all * *prefetch > static_cast<long>(kMostPrefetched) * cores) {
        report.Add(fmt::format("{}: num_workers={} with prefetch_factor={} keeps {} batches ready on {} processors: "
                               "memory and /dev/shm fill up and nothing gets faster",
                               script.path, *workers, *prefetch, all * *prefetch, cores),
                   "prefetch_factor=4");
      }
      if (prefetch && (!workers || *workers == 0) && !Contains(script.text, "num_workers")) {
        report.Add(fmt::format("{}: prefetch_factor without num_workers is refused by the DataLoader", script.path),
                   "give num_workers too");
      }
    }
  }
}

}  // namespace npu::doctor
