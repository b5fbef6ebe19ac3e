// The versions that clients read: all CANN packages have the machine's CANN version, driver and firmware the driver's.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "gen/calls/acl.h"
#include "shim/acl/machine_facts.h"

namespace npu::calls {
namespace {

// Packages that aclsysGetVersionStr and -Num know, dash and underscore alike.
constexpr std::string_view kPackages[] = {
    "runtime", "compiler",        "toolkit",    "opp",  "opp_kernel", "opbase",  "ops_math",    "ops_nn",
    "ops_cv",  "ops_transformer", "ops_legacy", "hccl", "hcomm",      "metadef", "ge_executor", "ge_compiler"};

Result<std::string> VersionOf(const char* package, const char* function) {
  if (package == nullptr) return Error(Code::kInvalidParam, "{}: pkgName is null.", function);
  NPU_ASSIGN(const MachineFacts facts, FactsOfMachine());
  std::string name(package, strnlen(package, ACL_PKG_VERSION_MAX_SIZE));
  std::replace(name.begin(), name.end(), '-', '_');
  if (name == "driver" || name == "firmware") return facts.driver;
  if (std::find(std::begin(kPackages), std::end(kPackages), name) == std::end(kPackages)) {
    return Error(Code::kInvalidFile, "{}: no package {} is installed.", function, name)
        .Remedy("Ask for one of CANN's packages, e.g. runtime, hccl, ops_math or driver.");
  }
  return facts.cann;
}

// Splits at dots; missing parts are "0".
std::array<std::string, 4> PartsOf(std::string_view version) {
  std::array<std::string, 4> parts{"0", "0", "0", "0"};
  for (std::string& part : parts) {
    if (version.empty()) break;
    const size_t dot = std::min(version.find('.'), version.size());
    part = std::string(version.substr(0, dot));
    version.remove_prefix(std::min(dot + 1, version.size()));
  }
  return parts;
}

template <size_t N>
void Copy(char (&to)[N], std::string_view from) {
  std::memset(to, 0, N);
  from.copy(to, N - 1);
}

// One number that grows with the version: a release is above its candidates, those above betas and alphas.
int32_t Comparable(std::string_view version) {
  int32_t numbers[3] = {0, 0, 0};
  int32_t stage = 3, within = 0, at = 0;
  for (size_t i = 0; i < version.size();) {
    if (std::isdigit(static_cast<unsigned char>(version[i]))) {
      int32_t value = 0;
      while (i < version.size() && std::isdigit(static_cast<unsigned char>(version[i])) && value < 100000) {
        value = value * 10 + (version[i++] - '0');
      }
      if (stage == 3 && at < 3) {
        numbers[at++] = value % 100;
      } else {
        within = value % 100;
      }
    } else {
      const char c = static_cast<char>(std::tolower(static_cast<unsigned char>(version[i++])));
      if (c == 'r') stage = 2;
      if (c == 'b') stage = std::min(stage, 1);
      if (c == 'a' && stage > 1) stage = 0;
    }
  }
  return ((numbers[0] * 100 + numbers[1]) * 10 + numbers[2] % 10) * 1000 + stage * 100 + within;
}

}  // namespace

Status aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  if (version == nullptr) return Error(Code::kInvalidParam, "aclsysGetCANNVersion: version is null.");
  if (name < ACL_PKG_NAME_CANN || name > ACL_PKG_NAME_DRIVER) {
    return Error(Code::kInvalidParam, "aclsysGetCANNVersion: there is no package number {}.", static_cast<int>(name));
  }
  NPU_ASSIGN(const MachineFacts facts, FactsOfMachine());
  const std::string& text = name == ACL_PKG_NAME_DRIVER ? facts.driver : facts.cann;
  const auto parts = PartsOf(text);
  std::memset(version, 0, sizeof *version);
  Copy(version->version, text);
  Copy(version->majorVersion, parts[0]);
  Copy(version->minorVersion, parts[1]);
  Copy(version->releaseVersion, parts[2]);
  Copy(version->patchVersion, parts[3]);
  return {};
}

Status aclsysGetVersionStr(char* pkgName, char* versionStr) {
  if (versionStr == nullptr) return Error(Code::kInvalidParam, "aclsysGetVersionStr: versionStr is null.");
  NPU_ASSIGN(const std::string text, VersionOf(pkgName, "aclsysGetVersionStr"));
  std::memcpy(versionStr, text.c_str(), std::min<size_t>(text.size() + 1, ACL_PKG_VERSION_MAX_SIZE));
  return {};
}

Status aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
  if (versionNum == nullptr) return Error(Code::kInvalidParam, "aclsysGetVersionNum: versionNum is null.");
  NPU_ASSIGN(const std::string text, VersionOf(pkgName, "aclsysGetVersionNum"));
  *versionNum = Comparable(text);
  return {};
}

Status aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  if (majorVersion == nullptr || minorVersion == nullptr || patchVersion == nullptr) {
    return Error(Code::kInvalidParam, "aclrtGetVersion: an output is null.");
  }
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return {};
}

}  // namespace npu::calls
