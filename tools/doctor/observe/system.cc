#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

#include "tools/doctor/observe/portrait.h"
#include "tools/doctor/table.h"

extern char** environ;

namespace npu::doctor {
namespace fs = std::filesystem;
namespace {

std::optional<uint64_t> Number(std::string_view text, int base = 10) {
  uint64_t value = 0;
  text = Trim(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// "Max open files            1024                 1048576              files": the soft limit. Unlimited has no value.
std::optional<uint64_t> Limit(const std::string& limits, std::string_view name) {
  for (std::string_view line : Split(limits, '\n')) {
    if (!line.starts_with(name)) continue;
    line = Trim(line.substr(name.size()));
    return Number(line.substr(0, line.find(' ')));
  }
  return std::nullopt;
}

// Size of /dev/shm: what the mount says, which a container's engine sets; else what the file system says.
std::optional<uint64_t> SharedMemory(const fs::path& root) {
  const std::string mounts = ReadText(root / "proc/mounts");
  for (std::string_view line : Split(mounts, '\n')) {
    const auto fields = Split(line, ' ');
    if (fields.size() < 4 || fields[1] != "/dev/shm") continue;
    for (std::string_view option : Split(fields[3], ',')) {
      if (!option.starts_with("size=")) continue;
      option.remove_prefix(5);
      const uint64_t unit = option.ends_with('k')   ? 1024
                            : option.ends_with('m') ? 1 << 20
                            : option.ends_with('g') ? 1 << 30
                                                    : 1;
      if (unit > 1) option.remove_suffix(1);
      if (const auto size = Number(option)) return *size * unit;
    }
  }
  struct statvfs facts {};
  if (root != "/" || statvfs("/dev/shm", &facts) != 0) return std::nullopt;
  return uint64_t{facts.f_blocks} * facts.f_frsize;
}

void ReadInterfaces(System& system) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return;
  std::set<std::string> names;
  for (const ifaddrs* at = all; at; at = at->ifa_next) {
    names.insert(at->ifa_name);
    char text[INET6_ADDRSTRLEN] = {};
    if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET) {
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr, text, sizeof text);
    } else if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET6) {
      inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr, text, sizeof text);
    }
    if (*text) system.addresses.push_back(text);
  }
  freeifaddrs(all);
  system.interfaces.assign(names.begin(), names.end());
}

// Kernels for which the cards' driver built its modules: /lib/modules/KERNEL/updates/drv_*.ko, also with a
// compression's ending.
std::vector<std::string> DriverKernels(const fs::path& root) {
  std::vector<std::string> kernels;
  std::error_code error;
  for (fs::directory_iterator at(root / "lib/modules", error), end; !error && at != end; at.increment(error)) {
    bool has = false;
    for (const char* place : {"updates", "updates/dkms", "extra"}) {
      std::error_code none;
      for (fs::directory_iterator file(at->path() / place, none), last; !none && file != last && !has;
           file.increment(none)) {
        const std::string name = file->path().filename();
        has = name.starts_with("drv_") && Contains(name, ".ko");
      }
    }
    if (has) kernels.push_back(at->path().filename());
  }
  std::sort(kernels.begin(), kernels.end());
  return kernels;
}

// Vendor 19e5, class 12: processing accelerators.
int PciCards(const fs::path& root) {
  int cards = 0;
  std::error_code error;
  for (fs::directory_iterator at(root / "sys/bus/pci/devices", error), end; !error && at != end; at.increment(error)) {
    const std::string vendor = ReadText(at->path() / "vendor", 64), kind = ReadText(at->path() / "class", 64);
    if (Trim(vendor) == "0x19e5" && Trim(kind).starts_with("0x12")) ++cards;
  }
  return cards;
}

// Socket inode -> process, by /proc/PID/fd; other users' processes cannot be seen.
std::string HolderOf(const fs::path& proc, std::string_view inode) {
  const std::string wanted = fmt::format("socket:[{}]", inode);
  std::error_code error;
  for (fs::directory_iterator at(proc, error), end; !error && at != end; at.increment(error)) {
    const std::string pid = at->path().filename();
    if (pid.find_first_not_of("0123456789") != pid.npos) continue;
    std::error_code hidden;
    for (fs::directory_iterator fd(at->path() / "fd", hidden), none; !hidden && fd != none; fd.increment(hidden)) {
      std::error_code gone;
      if (fs::read_symlink(fd->path(), gone) == wanted) {
        return fmt::format("{} (pid {})", Trim(ReadText(at->path() / "comm")), pid);
      }
    }
  }
  return "a process of another user";
}

}  // namespace

std::string ReadText(const fs::path& path, size_t most) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  std::string text;
  char buffer[16384];
  for (ssize_t got; text.size() < most && (got = read(fd, buffer, std::min(sizeof buffer, most - text.size()))) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

std::string ValueOf(const std::string& text, const std::string& key) {
  for (std::string_view line : Split(text, '\n')) {
    const size_t equals = line.find('=');
    if (equals != line.npos && Trim(line.substr(0, equals)) == key) {
      std::string_view value = Trim(line.substr(equals + 1));
      if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
      return std::string(value);
    }
  }
  return {};
}

System ObserveSystem(const Where& where) {
  System system;
  utsname name{};
  if (uname(&name) == 0) {
    system.host = name.nodename;
    system.kernel = name.release;
    system.machine = name.machine;
  }
  system.os = ValueOf(ReadText(where.root / "etc/os-release"), "PRETTY_NAME");
  system.libc = fmt::format("glibc {}", gnu_get_libc_version());
  system.is_root = geteuid() == 0;
  const char* user = getenv("USER");
  system.user = user ? user : fmt::format("uid {}", geteuid());
  std::error_code error;
  system.in_container = fs::exists(where.root / ".dockerenv", error) ||
                        fs::exists(where.root / "run/.containerenv", error) ||
                        getenv("KUBERNETES_SERVICE_HOST") != nullptr;
  cpu_set_t cpus;
  system.cores = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus)
                                                               : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const std::string modules = ReadText(where.root / "proc/modules");
  for (std::string_view line : Split(modules, '\n')) {
    if (!line.empty()) system.modules.emplace_back(line.substr(0, line.find(' ')));
  }
  const std::string running = ReadText(where.root / "proc/sys/kernel/osrelease", 256);
  if (!Trim(running).empty()) system.kernel = Trim(running);
  system.driver_kernels = DriverKernels(where.root);
  system.pci_cards = PciCards(where.root);
  const std::string limits = ReadText(where.root / "proc/self/limits");
  system.open_files = Limit(limits, "Max open files");
  system.processes = Limit(limits, "Max processes");
  system.shm_bytes = SharedMemory(where.root);
  ReadInterfaces(system);
  return system;
}

std::vector<Listener> ObserveListeners(const Where& where) {
  std::vector<Listener> listeners;
  for (const char* file : {"proc/net/tcp", "proc/net/tcp6"}) {
    const std::string sockets = ReadText(where.root / file, 8 << 20);
    for (std::string_view line : Split(sockets, '\n')) {
      std::istringstream fields{std::string(line)};
      std::string slot, local, remote, state, skip, inode;
      fields >> slot >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) fields >> skip;
      fields >> inode;
      const size_t colon = local.rfind(':');
      if (state != "0A" || colon == local.npos) continue;  // 0A: listening
      const auto port = Number(std::string_view(local).substr(colon + 1), 16);
      if (port) listeners.push_back({static_cast<int>(*port), inode});
    }
  }
  return listeners;
}

std::optional<int> Portrait::CardCount() const {
  if (acl.asked && acl.code == 0 && acl.load_error.empty() && acl.count > 0 && !Has("ASCEND_RT_VISIBLE_DEVICES"))
    return acl.count;
  if (!smi.cards.empty()) return static_cast<int>(smi.cards.size());
  if (!driver.cards.empty()) return static_cast<int>(driver.cards.size());
  return std::nullopt;
}

Portrait Observe(const Where& where) {
  Portrait portrait;
  portrait.where = where;
  for (char** at = environ; *at; ++at) {
    const std::string_view entry = *at;
    const size_t equals = entry.find('=');
    if (equals != entry.npos) portrait.environment[std::string(entry.substr(0, equals))] = entry.substr(equals + 1);
  }
  portrait.system = ObserveSystem(where);
  portrait.driver = ObserveDriver(where);
  portrait.toolkit = ObserveToolkit(portrait);
  if (!portrait.toolkit.ascendcl.empty()) portrait.acl = AskAscendCl(portrait.toolkit.ascendcl[0].path);
  if (!portrait.toolkit.dcmi.empty()) portrait.dcmi = AskDcmi(portrait.toolkit.dcmi[0].path);
  portrait.smi = ObserveSmi();
  portrait.python = ObservePython(portrait);
  portrait.listeners = ObserveListeners(where);
  // Only the ports that matter are asked for their holders: it takes a walk over all processes.
  for (Listener& listener : portrait.listeners) {
    const bool ours = listener.port == 16666 || (listener.port >= 60000 && listener.port < 60032) ||
                      fmt::format("{}", listener.port) == portrait.Env("MASTER_PORT");
    listener.holder = ours ? HolderOf(where.root / "proc", listener.holder) : std::string();
  }
  for (const std::string& script : where.scripts) portrait.scripts.push_back({script, ReadText(script)});
  return portrait;
}

}  // namespace npu::doctor
