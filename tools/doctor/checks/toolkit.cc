// CANN: is it found, whole, of one piece, and of the right kind?
#include <fmt/format.h>

#include <algorithm>

#include "tools/doctor/checks/check.h"
#include "tools/doctor/explain/knowledge.h"
#include "tools/doctor/observe/elf.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace fs = std::filesystem;
namespace {

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool Within(const fs::path& inner, const fs::path& outer) {
  std::error_code error;
  const fs::path a = fs::weakly_canonical(inner, error), b = fs::weakly_canonical(outer, error);
  return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
}

}  // namespace

NPU_CHECK(NotSourced, "set-env-not-sourced", kError, kToolkit, "an installed toolkit's set_env.sh was sourced") {
  const Toolkit& toolkit = portrait.toolkit;
  if (!toolkit.home.empty() || !toolkit.toolkit_home.empty() || toolkit.found.empty()) return;
  const std::string script = toolkit.found[0].filename() == "latest"
                                 ? (toolkit.found[0].parent_path() / "set_env.sh").string()
                                 : (toolkit.found[0] / "set_env.sh").string();
  report.Add(
      fmt::format("CANN is installed in {} but its environment is not set in this shell: libascendcl.so is not found",
                  toolkit.found[0].string()),
      fmt::format("source {}", script));
}

NPU_CHECK(NoToolkit, "cann-missing", kError, kToolkit, "CANN is installed, or the command runs under anynpu run") {
  const Toolkit& toolkit = portrait.toolkit;
  if (!toolkit.home.empty() || !toolkit.toolkit_home.empty() || !toolkit.found.empty() || !toolkit.ascendcl.empty())
    return;
  report.Add("no CANN is installed or set up: libascendcl.so cannot be found, so import torch_npu fails",
             "for software cards: anynpu run -- COMMAND, or eval \"$(anynpu env)\"; for real ones: "
             "./Ascend-cann-toolkit_*.run --install");
}

NPU_CHECK(HomeWrong, "home-path-wrong", kError, kToolkit, "ASCEND_HOME_PATH is a toolkit's folder") {
  const std::string& home = portrait.toolkit.home;
  if (home.empty()) return;
  if (!Exists(home))
    return report.Add(fmt::format("ASCEND_HOME_PATH is {}, which does not exist", home),
                      "source the set_env.sh of the toolkit that is installed: ls /usr/local/Ascend");
  for (const char* part : {"runtime", "compiler"}) {
    if (!Exists(fs::path(home) / part)) {
      return report.Add(
          fmt::format("ASCEND_HOME_PATH is {}, which has no folder {}: torch_npu refuses to start with it", home, part),
          "point it to the folder that holds runtime, compiler and opp, as set_env.sh does");
    }
  }
}

NPU_CHECK(OppMissing, "opp-path-missing", kError, kToolkit, "ASCEND_OPP_PATH is the operator package's folder") {
  const Toolkit& toolkit = portrait.toolkit;
  if (toolkit.home.empty() || !Exists(toolkit.home)) return;
  const std::string fix = (fs::path(toolkit.home) / "opp").string();
  if (toolkit.opp.empty()) {
    report.Add("ASCEND_OPP_PATH is not set while ASCEND_HOME_PATH is: import torch_npu ends with an exception",
               "source set_env.sh, or export ASCEND_OPP_PATH=" + fix, {Fix::kSet, "ASCEND_OPP_PATH", fix});
  } else if (!Exists(toolkit.opp)) {
    report.Add(fmt::format("ASCEND_OPP_PATH is {}, which does not exist", toolkit.opp), "export ASCEND_OPP_PATH=" + fix,
               {Fix::kSet, "ASCEND_OPP_PATH", fix});
  }
}

NPU_CHECK(HomesDiffer, "homes-differ", kWarning, kToolkit,
          "ASCEND_HOME_PATH and ASCEND_TOOLKIT_HOME name the same installation") {
  const Toolkit& toolkit = portrait.toolkit;
  if (toolkit.home.empty() || toolkit.toolkit_home.empty() || !Exists(toolkit.home)) return;
  std::error_code error;
  if (fs::equivalent(toolkit.home, toolkit.toolkit_home, error)) return;
  report.Add(
      fmt::format("ASCEND_HOME_PATH is {} and ASCEND_TOOLKIT_HOME is {}: two set_env.sh were sourced one after another",
                  toolkit.home, toolkit.toolkit_home),
      "open a new shell and source one set_env.sh only");
}

NPU_CHECK(LibraryMissing, "library-missing", kError, kToolkit, "libascendcl.so is on the loader's path") {
  const Toolkit& toolkit = portrait.toolkit;
  if (!toolkit.ascendcl.empty() || (toolkit.home.empty() && toolkit.toolkit_home.empty())) return;
  const fs::path home = toolkit.home.empty() ? toolkit.toolkit_home : toolkit.home;
  if (!Exists(home)) return;
  const bool there = Exists(home / "lib64" / "libascendcl.so");
  report.Add(
      fmt::format(
          "libascendcl.so is not on the loader's path{}: import torch_npu ends with \"cannot open shared object file\"",
          there ? fmt::format(", although {} has it", (home / "lib64").string()) : ""),
      there ? fmt::format("export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH", (home / "lib64").string())
            : "install the toolkit again: its lib64 is incomplete",
      there ? Fix{Fix::kSet, "LD_LIBRARY_PATH", (home / "lib64").string() + ":$LD_LIBRARY_PATH"} : Fix{});
}

NPU_CHECK(LibraryOfAnother, "library-of-another-toolkit", kError, kToolkit,
          "the libascendcl.so found first is that of ASCEND_HOME_PATH") {
  const Toolkit& toolkit = portrait.toolkit;
  if (toolkit.home.empty() || toolkit.ascendcl.empty() || !Exists(fs::path(toolkit.home) / "lib64" / "libascendcl.so"))
    return;
  const fs::path& first = toolkit.ascendcl[0].path;
  // The home may reach its libraries by links, as that of `anynpu run --cann` does.
  std::error_code error;
  const bool own = fs::equivalent(first, fs::path(toolkit.home) / "lib64" / "libascendcl.so", error);
  if (own || Within(first, toolkit.home) || Contains(first.string(), "devlib")) return;
  report.Add(
      fmt::format(
          "the loader finds {} before that of ASCEND_HOME_PATH ({}): LD_LIBRARY_PATH lists another installation first",
          first.string(), toolkit.home),
      "open a new shell, source one set_env.sh and set LD_LIBRARY_PATH after it",
      {Fix::kSet, "LD_LIBRARY_PATH", (fs::path(toolkit.home) / "lib64").string() + ":$LD_LIBRARY_PATH"});
}

NPU_CHECK(StubLibrary, "stub-library-first", kError, kToolkit,
          "no stub library (devlib) is found before the real one") {
  if (portrait.toolkit.ascendcl.empty() || !Contains(portrait.toolkit.ascendcl[0].path.string(), "devlib")) return;
  report.Add(fmt::format("the loader finds the stub {} first: every call answers 100039",
                         portrait.toolkit.ascendcl[0].path.string()),
             "take devlib out of LD_LIBRARY_PATH; set_env.sh adds it on machines without a driver: install the driver");
}

NPU_CHECK(Architecture, "library-architecture", kError, kToolkit, "libascendcl.so is for this processor") {
  const uint16_t machine = MachineNumber(portrait.system.machine);
  if (portrait.toolkit.ascendcl.empty() || machine == 0) return;
  const Library& library = portrait.toolkit.ascendcl[0];
  if (library.machine == machine) return;
  report.Add(library.machine == 0
                 ? fmt::format("{} is no library (damaged, empty, or a text file)", library.path.string())
                 : fmt::format("{} is for {}, this machine is {}", library.path.string(), MachineName(library.machine),
                               portrait.system.machine),
             fmt::format("install the package for {}: Ascend-cann-toolkit_*_linux-{}.run", portrait.system.machine,
                         portrait.system.machine));
}

NPU_CHECK(Unloadable, "library-unloadable", kError, kToolkit, "libascendcl.so can be loaded") {
  const Answered& acl = portrait.acl;
  if (!acl.asked || portrait.toolkit.ascendcl.empty()) return;
  const Library& library = portrait.toolkit.ascendcl[0];
  if (library.machine == 0 ||
      (MachineNumber(portrait.system.machine) != 0 && library.machine != MachineNumber(portrait.system.machine)))
    return;
  if (acl.timed_out)
    return report.Add(fmt::format("{} does not answer within 20 s", library.path.string()),
                      "npu-smi info; the driver or a card hangs: dmesg | tail");
  if (acl.signal)
    return report.Add(fmt::format("{} ends the process with signal {}", library.path.string(), acl.signal),
                      "libraries of different installations are mixed: open a new shell and source one set_env.sh");
  if (acl.load_error.empty()) return;
  const bool symbol = Contains(acl.load_error, "undefined symbol");
  report.Add(fmt::format("libascendcl.so cannot be loaded: {}", acl.load_error),
             symbol ? "two versions are mixed on LD_LIBRARY_PATH: open a new shell and source one set_env.sh"
                    : "add the folder of the missing library to LD_LIBRARY_PATH (the driver's are in "
                      "/usr/local/Ascend/driver/lib64)");
}

NPU_CHECK(Kernels, "kernels-missing", kError, kToolkit, "the operator package has kernels") {
  const Toolkit& toolkit = portrait.toolkit;
  if (toolkit.software || toolkit.opp.empty() || !Exists(toolkit.opp) || toolkit.ascendcl.empty()) return;
  const fs::path kernels = fs::path(toolkit.opp) / "built-in" / "op_impl" / "ai_core" / "tbe" / "kernel";
  std::error_code error;
  if (fs::exists(kernels, error) && !fs::is_empty(kernels, error)) return;
  report.Add(fmt::format("{} does not exist or is empty: the kernels package is not installed, the first operator ends "
                         "with EZ9999 \"Cannot find bin of op\"",
                         kernels.string()),
             "install Ascend-cann-kernels-<soc>_*.run of the toolkit's version");
}

NPU_CHECK(ArticleHome, "ascend-home-order", kError, kToolkit, "ASCEND_HOME was set before LD_LIBRARY_PATH used it") {
  const std::string list = portrait.Env("LD_LIBRARY_PATH");
  for (std::string_view folder : Split(list, ':')) {
    if (!folder.starts_with("/runtime/lib64") && !folder.starts_with("/opp/") && !folder.starts_with("/lib64/plugin") &&
        folder != "/runtime/lib")
      continue;
    const std::string home = portrait.Env("ASCEND_HOME");
    return report.Add(
        fmt::format("LD_LIBRARY_PATH holds {}: $ASCEND_HOME was empty when it was written there, so AscendOp's library "
                    "is not found (undefined symbol)",
                    folder),
        home.empty()
            ? "export ASCEND_HOME=/usr/local/Ascend first, then LD_LIBRARY_PATH; better: source set_env.sh"
            : fmt::format("set ASCEND_HOME={} in a line before LD_LIBRARY_PATH; better: source set_env.sh", home));
  }
}

NPU_CHECK(DeviceCount, "no-card-visible", kError, kCards, "AscendCL sees a card") {
  const Answered& acl = portrait.acl;
  if (!acl.asked || acl.timed_out || acl.signal || !acl.load_error.empty() || (acl.code == 0 && acl.count > 0)) return;
  // A visible list that hides all cards is named by its own check.
  if (portrait.Has("ASCEND_RT_VISIBLE_DEVICES")) return;
  const Answer* answer = Knowledge::Get().Find("rt", fmt::format("{}", acl.code));
  if (!answer) answer = Knowledge::Get().Find("acl", fmt::format("{}", acl.code));
  if (acl.code == 0) return report.Add("AscendCL counts no card", "ls -l /dev/davinci*; npu-smi info");
  report.Add(fmt::format("aclrtGetDeviceCount answers {}{}{}", acl.code,
                         answer ? fmt::format(" ({}): {}", answer->name, answer->what.en) : "",
                         acl.message.empty() ? "" : "; " + acl.message.substr(0, 200)),
             answer ? answer->cause->next.en : fmt::format("anynpu explain {}", acl.code));
}

}  // namespace npu::doctor
