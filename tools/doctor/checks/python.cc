// Python, torch and torch_npu, and what belongs together.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/doctor/checks/check.h"
#include "tools/doctor/observe/elf.h"
#include "tools/doctor/table.h"
#include "tools/doctor/versions.h"

namespace npu::doctor {
namespace fs = std::filesystem;
namespace {

std::string Folders(const std::vector<Package>& packages) {
  std::string text;
  for (const Package& p : packages) text += fmt::format("{}{} in {}", text.empty() ? "" : ", ", p.version, p.folder);
  return text;
}

std::string Install(const Python& python, const std::string& what) {
  return fmt::format("{} -m pip install {}", python.program, what);
}

}  // namespace

NPU_CHECK(PythonMissing, "python-missing", kError, kPython, "a Python interpreter runs") {
  if (portrait.python.error.empty()) return;
  report.Add(fmt::format("{}: {}", portrait.python.program, portrait.python.error),
             "name the interpreter of your environment: anynpu doctor --python /path/to/python");
}

NPU_CHECK(TorchMissing, "torch-missing", kError, kPython, "torch is installed in the Python that runs") {
  if (!portrait.python.error.empty() || !portrait.python.torch.empty()) return;
  report.Add(fmt::format("torch is not installed in {} (Python {})", portrait.python.program, portrait.python.version),
             Install(portrait.python, "torch"));
}

NPU_CHECK(TorchNpuMissing, "torch-npu-missing", kError, kPython, "torch_npu is installed beside torch") {
  if (portrait.python.torch.empty() || !portrait.python.torch_npu.empty()) return;
  const std::string version = Plain(portrait.python.torch[0].version);
  report.Add(fmt::format("torch {} is there but torch_npu is not: \"module 'torch' has no attribute 'npu'\", \"Device "
                         "backend 'npu' is not available\"",
                         version),
             Install(portrait.python, "torch_npu==" + version));
}

NPU_CHECK(CudaTorch, "cuda-torch", kWarning, kPython, "torch is the CPU build, on which torch_npu builds") {
  // Software cards do not mind it, and PyPI's torch for x86-64 is such a build.
  if (portrait.python.torch.empty() || portrait.toolkit.software) return;
  const std::string& version = portrait.python.torch[0].version;
  const bool cuda = Contains(version, "+cu") || !portrait.python.torch_cuda.empty();
  if (!cuda) return;
  report.Add(fmt::format("torch {} is a CUDA build{}: with torch_npu the two device kinds get in each other's way",
                         version, portrait.python.torch_cuda.empty() ? "" : " for CUDA " + portrait.python.torch_cuda),
             Install(portrait.python,
                     fmt::format("--force-reinstall torch=={}+cpu", Plain(version))) +
                 ", with --index-url of PyTorch's CPU builds");
}

NPU_CHECK(TwoTorches, "two-torches", kWarning, kPython, "torch and torch_npu stand once on the path") {
  if (portrait.python.torch.size() > 1) {
    report.Add(
        fmt::format("torch stands {} times on the path ({}); the first is imported", portrait.python.torch.size(),
                    Folders(portrait.python.torch)),
        fmt::format("take the other out: {} -m pip uninstall torch, or clean PYTHONPATH", portrait.python.program));
  }
  if (portrait.python.torch_npu.size() > 1) {
    report.Add(
        fmt::format("torch_npu stands {} times on the path ({}); the first is imported",
                    portrait.python.torch_npu.size(), Folders(portrait.python.torch_npu)),
        fmt::format("take the other out: {} -m pip uninstall torch_npu, or clean PYTHONPATH", portrait.python.program));
  }
}

NPU_CHECK(Shadowed, "module-shadowed", kError, kPython, "no file of one's own hides torch, torch_npu or acl") {
  if (portrait.python.shadows.empty()) return;
  report.Add(
      fmt::format("{} is imported in place of the package of that name", fmt::join(portrait.python.shadows, ", ")),
      "rename it (and remove its __pycache__)");
}

NPU_CHECK(TorchMismatch, "torch-mismatch", kError, kPython, "torch_npu and torch carry the same version") {
  const Python& python = portrait.python;
  if (python.torch.empty() || python.torch_npu.empty()) return;
  const std::string torch = Plain(python.torch[0].version), npu = Plain(python.torch_npu[0].version);
  const auto combination = CombinationFor(npu);
  // What the wheel itself asks for, else the table, else the numbers of its own version.
  std::string wanted = !python.torch_requirement.empty() ? Plain(python.torch_requirement)
                       : combination                     ? combination->torch
                                                         : std::string();
  if (wanted.empty()) {
    const auto parts = Split(npu, '.');
    if (parts.size() < 2) return;
    wanted = std::string(parts[0]) + "." + std::string(parts[1]);
    if (torch.starts_with(wanted + ".")) return;
  }
  if (wanted.ends_with(".*")) wanted.resize(wanted.size() - 2);  // torch==2.13.0.*
  if (torch == wanted || torch.starts_with(wanted + ".")) return;
  report.Add(
      fmt::format("torch_npu {} is built for torch {}, but torch is {}: the import ends with an undefined symbol", npu,
                  wanted, torch),
      Install(python, fmt::format("torch=={} torch_npu=={}", wanted, npu)));
}

NPU_CHECK(PythonMismatch, "python-mismatch", kError, kPython, "there are wheels of torch_npu for this Python") {
  const Python& python = portrait.python;
  const std::string torch = !python.torch_npu.empty() ? python.torch_npu[0].version
                            : !python.torch.empty()   ? python.torch[0].version
                                                      : std::string();
  const std::vector<std::string> known = torch.empty() ? std::vector<std::string>() : PythonsFor(Plain(torch));
  const auto parts = Split(python.version, '.');
  if (known.empty() || parts.size() < 2) return;
  const std::string mine = std::string(parts[0]) + "." + std::string(parts[1]);
  if (std::find(known.begin(), known.end(), mine) != known.end()) return;
  report.Add(fmt::format("torch_npu {} is made for Python {}; this is {}", Plain(torch), fmt::join(known, ", "),
                         python.version),
             fmt::format("make an environment with one of them: conda create -n npu python={}", known.back()));
}

NPU_CHECK(CannMismatch, "cann-mismatch", kWarning, kPython, "the CANN release is the one that torch_npu was made for") {
  const Python& python = portrait.python;
  if (python.torch_npu.empty() || portrait.toolkit.version.empty()) return;
  const auto combination = CombinationFor(python.torch_npu[0].version);
  if (!combination || combination->cann.empty()) return;
  const auto same = [&](const std::string& release) { return SameRelease(portrait.toolkit.version, release); };
  if (std::any_of(combination->cann.begin(), combination->cann.end(), same)) return;
  report.Add(
      fmt::format("torch_npu {} goes with CANN {}; CANN {} is set up: functions that one of them lacks are missed at "
                  "run time (ACL_ERROR_INVALID_PARAM, undefined symbols)",
                  Plain(python.torch_npu[0].version), fmt::join(combination->cann, " or "), portrait.toolkit.version),
      fmt::format("install CANN {}, or a torch_npu of CANN {} (anynpu doctor --matrix)", combination->cann[0],
                  portrait.toolkit.version));
}

NPU_CHECK(TorchNpuElsewhere, "torch-npu-elsewhere", kWarning, kPython,
          "torch and torch_npu are installed in the same place") {
  const Python& python = portrait.python;
  if (python.torch.size() != 1 || python.torch_npu.size() != 1 || python.torch[0].folder == python.torch_npu[0].folder)
    return;
  report.Add(fmt::format("torch is in {} and torch_npu in {}: an update of one leaves the other behind",
                         python.torch[0].folder, python.torch_npu[0].folder),
             "use a virtual environment for both: python -m venv npu");
}

NPU_CHECK(WheelArchitecture, "wheel-architecture", kError, kPython, "torch_npu's library is for this processor") {
  const uint16_t machine = MachineNumber(portrait.system.machine);
  if (portrait.python.npu_machine == 0 || machine == 0 || portrait.python.npu_machine == machine) return;
  report.Add(fmt::format("{} is for {}, this machine is {}", portrait.python.npu_library.string(),
                         MachineName(portrait.python.npu_machine), portrait.system.machine),
             Install(portrait.python, "--force-reinstall --no-cache-dir torch_npu"));
}

NPU_CHECK(AbiMismatch, "abi-mismatch", kError, kPython, "CANN has every acl function that torch_npu links") {
  const std::vector<std::string>& missing = portrait.python.unresolved;
  if (missing.empty()) return;
  report.Add(
      fmt::format("torch_npu wants {} of AscendCL, which the library found first ({}) does not have{}: import ends "
                  "with an undefined symbol",
                  missing[0], portrait.toolkit.ascendcl.empty() ? "" : portrait.toolkit.ascendcl[0].path.string(),
                  missing.size() > 1 ? fmt::format(", and {} more", missing.size() - 1) : ""),
      "install the CANN release that belongs to this torch_npu (anynpu doctor --matrix), and let it stand first on "
      "LD_LIBRARY_PATH");
}

NPU_CHECK(NumPy, "numpy-too-new", kWarning, kPython, "NumPy is one that torch was built for") {
  const auto numpy = portrait.python.packages.find("numpy");
  if (portrait.python.torch.empty() || numpy == portrait.python.packages.end()) return;
  if (!numpy->second.starts_with("2.") || !Older(Plain(portrait.python.torch[0].version), "2.3")) return;
  report.Add(fmt::format("torch {} was built for NumPy 1 and NumPy {} is installed: tensor.numpy() fails",
                         portrait.python.torch[0].version, numpy->second),
             Install(portrait.python, "'numpy<2'"));
}

NPU_CHECK(CompilerPackages, "compiler-packages-missing", kWarning, kPython,
          "the Python packages that CANN's operator compiler imports are there") {
  if (!portrait.python.error.empty() || portrait.toolkit.software || portrait.toolkit.ascendcl.empty()) return;
  std::vector<std::string> missing;
  for (const char* name : {"attrs", "cffi", "decorator", "numpy", "protobuf", "psutil", "pyyaml", "scipy", "sympy"}) {
    if (!portrait.python.packages.count(name)) missing.push_back(name);
  }
  if (missing.empty()) return;
  report.Add(fmt::format("CANN's operator compiler imports {}: an operator that has to be compiled ends with EH9999",
                         fmt::join(missing, ", ")),
             Install(portrait.python, fmt::format("{}", fmt::join(missing, " "))));
}

NPU_CHECK(AutoloadOff, "autoload-off", kWarning, kPython, "torch may load torch_npu by itself") {
  if (portrait.Env("TORCH_DEVICE_BACKEND_AUTOLOAD") != "0" || portrait.python.torch_npu.empty()) return;
  report.Add(
      "TORCH_DEVICE_BACKEND_AUTOLOAD=0: programs without \"import torch_npu\" of their own do not know the device npu",
      "unset TORCH_DEVICE_BACKEND_AUTOLOAD", {Fix::kUnset, "TORCH_DEVICE_BACKEND_AUTOLOAD", ""});
}

}  // namespace npu::doctor
