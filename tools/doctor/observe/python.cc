#include <nlohmann/json.hpp>
#include <set>

#include "tools/doctor/observe/elf.h"
#include "tools/doctor/observe/portrait.h"
#include "tools/doctor/observe/run.h"
#include "tools/doctor/table.h"

namespace npu::doctor {
namespace fs = std::filesystem;
namespace {

constexpr int kPythonLimitMs = 30'000;

// Runs in the user's interpreter, of any version from 3.6; reads metadata and imports nothing of torch: a broken import
// must not end it, and it takes a tenth of a second instead of ten.
constexpr const char* kProbe = R"probe(
import json, os, platform, re, sys
out = {"version": platform.python_version(), "machine": platform.machine(), "torch": [], "torch_npu": [], "packages": {}, "shadows": []}
def text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read(65536)
    except OSError:
        return ""
def key(name):
    return re.sub(r"[-_.]+", "_", name).lower()
seen = set()
for folder in sys.path:
    folder = os.path.abspath(folder or ".")
    if os.path.realpath(folder) in seen or not os.path.isdir(folder):
        continue
    seen.add(os.path.realpath(folder))
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        continue
    versions = {}
    for name in names:
        match = re.match(r"(.+?)-([0-9][^-]*?)(-py[0-9.]+)?\.(dist-info|egg-info)$", name)
        if match:
            versions[key(match.group(1))] = match.group(2)
            out["packages"].setdefault(key(match.group(1)), match.group(2))
            if key(match.group(1)) == "torch_npu" and "requirement" not in out:
                needs = re.search(r"^Requires-Dist:\s*torch\s*\(?==\s*([0-9][^\s;)]*)", text(os.path.join(folder, name, "METADATA")), re.M)
                out["requirement"] = needs.group(1) if needs else ""
    for package in ("torch", "torch_npu"):
        if os.path.isfile(os.path.join(folder, package, "__init__.py")) and (package in versions or os.path.isfile(os.path.join(folder, package, "version.py"))):
            source = text(os.path.join(folder, package, "version.py"))
            version = versions.get(package) or (re.findall(r"__version__\s*=\s*['\"]([^'\"]+)", source) or [""])[0]
            if package == "torch":
                version = (re.findall(r"__version__\s*=\s*['\"]([^'\"]+)", source) or [version])[0]
                cuda = re.findall(r"^cuda\b[^=]*=\s*['\"]([^'\"]+)", source, re.M)
                if not out["torch"]:
                    out["cuda"] = cuda[0] if cuda else ""
            out[package].append({"version": version, "folder": folder})
        elif os.path.isfile(os.path.join(folder, package + ".py")) or os.path.isfile(os.path.join(folder, package, "__init__.py")):
            out["shadows"].append(os.path.join(folder, package + (".py" if os.path.isfile(os.path.join(folder, package + ".py")) else "")))
    if os.path.isfile(os.path.join(folder, "acl.py")) and not folder.endswith(("site-packages", "dist-packages")):  # the toolkit's own
        out["shadows"].append(os.path.join(folder, "acl.py"))
print(json.dumps(out))
)probe";

std::vector<Package> Packages(const nlohmann::json& list) {
  std::vector<Package> packages;
  for (const auto& entry : list) packages.push_back({entry.value("version", ""), entry.value("folder", "")});
  return packages;
}

// acl functions that torch_npu links and no library of the loader's path exports.
std::vector<std::string> Unresolved(const Portrait& portrait, const fs::path& library) {
  std::set<std::string> wanted = ElfSymbols(library, "acl", true);
  if (wanted.empty() || portrait.toolkit.ascendcl.empty()) return {};
  const fs::path folder = portrait.toolkit.ascendcl[0].path.parent_path();
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && !wanted.empty(); at.increment(error)) {
    const std::string name = at->path().filename();
    if (!name.starts_with("libacl") && !name.starts_with("libascendcl") && name != "libge_runner.so" &&
        name != "libruntime.so" && name != "libmsprofiler.so")
      continue;
    for (const std::string& symbol : ElfSymbols(at->path(), "acl", false)) wanted.erase(symbol);
  }
  return {wanted.begin(), wanted.end()};
}

}  // namespace

Python ObservePython(const Portrait& portrait) {
  Python python;
  Ran ran;
  for (const std::string& program : portrait.where.python.empty() ? std::vector<std::string>{"python3", "python"}
                                                                  : std::vector<std::string>{portrait.where.python}) {
    python.program = program;
    ran = RunProgram({program, "-c", kProbe}, kPythonLimitMs);
    if (ran.started) break;
  }
  // The last line: a sitecustomize of the user may print too.
  const std::string_view answer = Trim(ran.out);
  auto found = nlohmann::json::parse(answer.substr(answer.rfind('\n') + 1), nullptr, false);
  if (!ran.started) {
    python.error = "not found";
  } else if (!found.is_object()) {
    python.error = ran.timed_out ? "did not answer within 30 s" : "ended with a failure of its own";
  }
  if (!python.error.empty()) return python;
  python.version = found.value("version", "");
  python.machine = found.value("machine", "");
  python.torch = Packages(found["torch"]);
  python.torch_npu = Packages(found["torch_npu"]);
  python.torch_cuda = found.value("cuda", "");
  python.torch_requirement = found.value("requirement", "");
  for (const auto& [name, version] : found["packages"].items()) python.packages[name] = version.get<std::string>();
  for (const auto& path : found["shadows"]) python.shadows.push_back(path.get<std::string>());
  if (!python.torch_npu.empty()) {
    python.npu_library = fs::path(python.torch_npu[0].folder) / "torch_npu" / "lib" / "libtorch_npu.so";
    python.npu_machine = ElfMachine(python.npu_library);
    python.unresolved = Unresolved(portrait, python.npu_library);
  }
  return python;
}

}  // namespace npu::doctor
