// What can be seen of an environment, gathered once; the checks read it and look at nothing else.
//
//   Portrait portrait = Observe({.root = "/", .python = "python3"});
//
// Fixed places (/proc, /etc, /dev, /usr/local/Ascend) are looked up under `root`; paths in environment variables are
// taken as they are. Nothing here changes anything; programs and libraries of the environment run in children with a
// time limit.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace npu::doctor {

struct Where {
  std::filesystem::path root = "/";
  std::string python;                // empty: python3 or python on PATH
  std::vector<std::string> scripts;  // of the user, to be looked at too
};

struct System {
  std::string host, os, kernel, machine, libc, user;
  bool in_container = false, is_root = false;
  int cores = 1;
  std::vector<std::string> modules;         // loaded kernel modules
  std::vector<std::string> driver_kernels;  // kernels for which the cards' driver has modules in /lib/modules
  int pci_cards = 0;                        // accelerators of the vendor on the PCI bus
  std::optional<uint64_t> shm_bytes, open_files, processes;
  std::vector<std::string> interfaces, addresses;
};

struct Node {
  std::string path;
  bool usable = false;  // may be read and written by this user
};

struct Driver {
  std::filesystem::path folder;  // empty: not installed
  std::string version, firmware, status;
  std::string firmware_range;              // that the driver says it takes: "[7.0.0,7.7.99]"
  std::vector<Node> cards;                 // /dev/davinci0 ...
  std::vector<std::string> missing_nodes;  // of davinci_manager, devmm_svm, hisi_hdc
};

struct Library {
  std::filesystem::path path;
  uint16_t machine = 0;  // as in ELF; 0: no ELF file
};

struct Toolkit {
  std::string home, toolkit_home, opp;       // of the environment
  std::vector<std::filesystem::path> found;  // installed toolkits in the usual places
  bool software = false;                     // the home is AnyNPU's tree
  std::string version;                       // of the home
  std::vector<Library> ascendcl, hal, dcmi;  // in the order of the loader's path
};

// What a library answered in a child.
struct Answered {
  bool asked = false;
  std::string load_error;  // of dlopen
  int signal = 0;          // the child ended by it
  bool timed_out = false;
  int code = 0, count = 0;  // aclrtGetDeviceCount, or dcmi_init
  std::string soc, message;
};

struct Package {
  std::string version, folder;
};

struct Python {
  std::string program, error, version, machine;
  std::vector<Package> torch, torch_npu;  // every one on the path, the first is imported
  std::string torch_cuda;                 // CUDA version of the first torch; empty: CPU build
  std::string torch_requirement;          // of torch_npu: "2.9.0"
  std::map<std::string, std::string> packages;
  std::vector<std::string> shadows;   // files on the path that hide torch, torch_npu or acl
  std::filesystem::path npu_library;  // libtorch_npu.so
  uint16_t npu_machine = 0;
  std::vector<std::string> unresolved;  // acl functions that it wants and no library found has
};

struct Card {
  int id = 0;
  std::string name, health;
  uint64_t hbm_used_mb = 0, hbm_total_mb = 0;
  std::vector<std::string> processes;
  std::string compatibility;  // of driver and firmware, as npu-smi info -t board says: OK, NOK
};

struct Smi {
  bool present = false, timed_out = false;
  int code = 0;
  std::string first_line, version;
  std::vector<Card> cards;
};

struct Listener {
  int port = 0;
  std::string holder;  // "python (pid 17)" or "another user's process"
};

struct Script {
  std::string path, text;
};

struct Portrait {
  Where where;
  std::map<std::string, std::string> environment;
  System system;
  Driver driver;
  Toolkit toolkit;
  Answered acl, dcmi;
  Python python;
  Smi smi;
  std::vector<Listener> listeners;
  std::vector<Script> scripts;

  std::string Env(const std::string& name) const {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  }
  bool Has(const std::string& name) const { return environment.count(name) > 0; }
  bool Real() const {
    return !driver.folder.empty() || !driver.cards.empty() || (!toolkit.software && !toolkit.found.empty());
  }
  std::optional<int> CardCount() const;
};

Portrait Observe(const Where& where);

// Parts of it, each in a file of its own.
System ObserveSystem(const Where& where);
std::vector<Listener> ObserveListeners(const Where& where);
Driver ObserveDriver(const Where& where);
Toolkit ObserveToolkit(const Portrait& portrait);
Answered AskAscendCl(const std::filesystem::path& library);
Answered AskDcmi(const std::filesystem::path& library);
Smi ObserveSmi();
Smi ParseSmi(const std::string& text);
Python ObservePython(const Portrait& portrait);

// The folders that the loader searches: LD_LIBRARY_PATH, then the system's.
std::vector<std::filesystem::path> LoaderPath(const Portrait& portrait);
std::string ReadText(const std::filesystem::path& path, size_t most = 1 << 20);
std::string ValueOf(const std::string& text, const std::string& key);  // "key=value" lines

}  // namespace npu::doctor
