// The machine and the driver.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/doctor/checks/check.h"
#include "tools/doctor/explain/knowledge.h"
#include "tools/doctor/table.h"
#include "tools/doctor/versions.h"

namespace npu::doctor {
namespace {

constexpr uint64_t kLeastShm = 256u << 20, kLeastFiles = 1024, kLeastProcesses = 1024;

bool HasModule(const Portrait& portrait, std::string_view name) {
  for (const std::string& module : portrait.system.modules) {
    if (module == name) return true;
  }
  return false;
}

}  // namespace

NPU_CHECK(Nouveau, "nouveau-loaded", kWarning, kMachine,
          "the nouveau graphics driver is not loaded beside a card's driver") {
  if (!portrait.Real() || !HasModule(portrait, "nouveau")) return;
  report.Add(
      "the kernel module nouveau is loaded; it can take PCIe resources that the card needs (npu-smi then shows "
      "Unknown)",
      "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf && "
      "sudo update-initramfs -u && sudo reboot");
}

NPU_CHECK(SharedMemory, "shm-small", kWarning, kMachine, "/dev/shm has at least 256 MiB") {
  const auto size = portrait.system.shm_bytes;
  if (!size || *size >= kLeastShm) return;
  report.Add(fmt::format("/dev/shm has {} MiB; DataLoader workers and ranks of one host exchange data there and end "
                         "with a bus error when it is full",
                         *size >> 20),
             portrait.system.in_container ? "start the container with: docker run --shm-size=16g"
                                          : "sudo mount -o remount,size=16g /dev/shm");
}

NPU_CHECK(OpenFiles, "ulimit-files", kWarning, kMachine, "a process may open at least 1024 files") {
  if (!portrait.system.open_files || *portrait.system.open_files >= kLeastFiles) return;
  report.Add(fmt::format("a process may open {} files only; each rank, worker and stream takes some",
                         *portrait.system.open_files),
             "ulimit -n 65535");
}

NPU_CHECK(Processes, "ulimit-processes", kWarning, kMachine, "a user may have at least 1024 processes") {
  if (!portrait.system.processes || *portrait.system.processes >= kLeastProcesses) return;
  report.Add(fmt::format("this user may have {} processes and threads only; one rank takes some dozens",
                         *portrait.system.processes),
             "ulimit -u 65535");
}

NPU_CHECK(ContainerDevices, "container-without-devices", kError, kDriver,
          "a container with the vendor's CANN has device nodes") {
  if (!portrait.system.in_container || portrait.toolkit.software || portrait.toolkit.found.empty() ||
      !portrait.driver.cards.empty())
    return;
  report.Add(
      "this container has CANN but no /dev/davinci* node: it was started without the cards (docker's --gpus is for "
      "NVIDIA and gives none)",
      "docker run --device=/dev/davinci0 --device=/dev/davinci_manager --device=/dev/devmm_svm --device=/dev/hisi_hdc "
      "-v /usr/local/Ascend/driver:/usr/local/Ascend/driver -v /usr/local/bin/npu-smi:/usr/local/bin/npu-smi ...");
}

NPU_CHECK(DriverMissing, "driver-missing", kError, kDriver, "a machine with card nodes has the driver's libraries") {
  if (portrait.driver.cards.empty() || !portrait.driver.folder.empty()) return;
  report.Add(
      "there are card nodes in /dev but no driver folder (/usr/local/Ascend/driver): the driver's libraries are not "
      "installed, or not mounted in this container",
      portrait.system.in_container ? "docker run -v /usr/local/Ascend/driver:/usr/local/Ascend/driver -v "
                                     "/etc/ascend_install.info:/etc/ascend_install.info ..."
                                   : "sudo ./Ascend-hdk-*-npu-driver_*.run --full");
}

NPU_CHECK(DriverIncomplete, "driver-incomplete", kError, kDriver, "the driver's installation was completed") {
  if (portrait.driver.folder.empty() || portrait.driver.status.empty() || portrait.driver.status == "complete") return;
  report.Add(
      fmt::format("/etc/ascend_install.info says Driver_Install_Status={}: the driver's installation was not completed",
                  portrait.driver.status),
      "sudo ./Ascend-hdk-*-npu-driver_*.run --full && sudo reboot");
}

NPU_CHECK(CardsWithoutDriver, "cards-without-driver", kError, kDriver, "cards on the PCI bus have a driver") {
  if (portrait.system.in_container || portrait.system.pci_cards == 0 || !portrait.driver.folder.empty() ||
      !portrait.driver.cards.empty())
    return;
  report.Add(fmt::format("{} Ascend {} on the PCI bus, but no driver is installed: there is no /dev/davinci*",
                         portrait.system.pci_cards, portrait.system.pci_cards == 1 ? "card is" : "cards are"),
             "sudo ./Ascend-hdk-*-npu-driver_*.run --full, then the firmware's .run, then reboot");
}

// After an update of the kernel its folder has no modules of the driver, and no node appears.
NPU_CHECK(KernelModules, "kernel-modules-missing", kError, kDriver, "the driver's modules are loaded in this kernel") {
  const System& system = portrait.system;
  if (system.in_container || portrait.driver.folder.empty() || system.modules.empty()) return;
  for (const std::string& module : system.modules) {
    if (module.starts_with("drv_") || Contains(module, "davinci") || Contains(module, "ascend")) return;
  }
  const auto& built = system.driver_kernels;
  const bool for_this = std::find(built.begin(), built.end(), system.kernel) != built.end();
  if (!built.empty() && !for_this)
    return report.Add(fmt::format("the driver's modules were built for kernel {} and this one is {}: they are not "
                                  "loaded, so no card can be opened",
                                  fmt::join(built, ", "), system.kernel),
                      "boot the other kernel, or install the driver again under this one: sudo "
                      "./Ascend-hdk-*-npu-driver_*.run --full && sudo reboot");
  report.Add(
      fmt::format("the driver is installed but none of its modules (drv_*) is loaded in kernel {}", system.kernel),
      "sudo modprobe drv_davinci_intf_host; dmesg | grep -i davinci; a driver of another kernel has to be "
      "installed again: sudo ./Ascend-hdk-*-npu-driver_*.run --full");
}

NPU_CHECK(FirmwareMismatch, "firmware-mismatch", kError, kDriver, "driver and firmware accept each other") {
  const Driver& driver = portrait.driver;
  const std::string upgrade =
      "install the firmware of the driver's release: sudo ./Ascend-hdk-*-npu-firmware_*.run --full && sudo reboot";
  if (!InRange(driver.firmware, driver.firmware_range))
    return report.Add(fmt::format("firmware {} is installed and driver {} takes {}", driver.firmware, driver.version,
                                  driver.firmware_range),
                      upgrade);
  for (const Card& card : portrait.smi.cards) {
    if (card.compatibility != "NOK") continue;
    return report.Add(fmt::format("npu-smi says of card {} that its firmware and driver {} are not compatible (NOK)",
                                  card.id, driver.version),
                      upgrade);
  }
}

NPU_CHECK(DriverOld, "driver-too-old", kWarning, kDriver, "the driver is one that the CANN release is listed with") {
  const std::string& cann = portrait.toolkit.version;
  if (portrait.toolkit.software || cann.empty() || portrait.driver.version.empty()) return;
  const std::vector<std::string> listed = DriversFor(cann);
  const std::string series = DriverSeries(portrait.driver.version);
  if (listed.empty() || !Older(series, listed[0])) return;  // of newer drivers the tables say nothing
  report.Add(fmt::format("driver {} is older than those that CANN {} is listed with (Ascend HDK {}): calls of the "
                         "toolkit may end with driver errors (507899)",
                         portrait.driver.version, cann, fmt::join(listed, ", ")),
             fmt::format("install an Ascend HDK {} or newer, driver and firmware, or a CANN of this driver: anynpu "
                         "doctor --matrix",
                         listed[0]));
}

NPU_CHECK(NodesMissing, "nodes-missing", kError, kDriver, "the manager nodes stand beside the cards' nodes") {
  if (portrait.driver.missing_nodes.empty()) return;
  report.Add(fmt::format("{} {} missing while cards are there: without them no process can open a card",
                         fmt::join(portrait.driver.missing_nodes, ", "),
                         portrait.driver.missing_nodes.size() == 1 ? "is" : "are"),
             portrait.system.in_container
                 ? fmt::format("docker run --device={} ...", fmt::join(portrait.driver.missing_nodes, " --device="))
                 : "sudo systemctl restart ascend_driver or reboot");
}

NPU_CHECK(NodePermission, "node-permission", kError, kDriver, "this user may open the cards") {
  std::vector<std::string> closed;
  for (const Node& node : portrait.driver.cards) {
    if (!node.usable) closed.push_back(node.path);
  }
  if (closed.empty()) return;
  report.Add(fmt::format("{} cannot be read and written by this user", fmt::join(closed, ", ")),
             "sudo usermod -a -G HwHiAiUser $USER, then log in again");
}

NPU_CHECK(HalMissing, "driver-library-missing", kError, kDriver,
          "the driver's library libascend_hal.so is on the loader's path") {
  if (portrait.toolkit.ascendcl.empty() || portrait.toolkit.software || !portrait.toolkit.hal.empty()) return;
  report.Add(
      "libascend_hal.so is not on the loader's path: import torch_npu ends with \"libascend_hal.so: cannot open shared "
      "object file\"",
      "export "
      "LD_LIBRARY_PATH=/usr/local/Ascend/driver/lib64:/usr/local/Ascend/driver/lib64/common:/usr/local/Ascend/driver/"
      "lib64/driver:$LD_LIBRARY_PATH");
}

NPU_CHECK(Dcmi, "dcmi-fails", kError, kDriver, "libdcmi can talk to the driver") {
  const Answered& dcmi = portrait.dcmi;
  if (!dcmi.asked || (dcmi.load_error.empty() && dcmi.code == 0 && !dcmi.timed_out && dcmi.signal == 0)) return;
  const Answer* answer = Knowledge::Get().Find("dcmi", fmt::format("{}", dcmi.code));
  if (dcmi.timed_out)
    return report.Add("dcmi_init does not come back: the driver hangs",
                      "npu-smi info; dmesg | tail; reboot if both hang");
  if (dcmi.signal)
    return report.Add(fmt::format("libdcmi.so ends with signal {}", dcmi.signal),
                      "install driver and tools of one version");
  if (!dcmi.load_error.empty())
    return report.Add(fmt::format("libdcmi.so cannot be loaded: {}", dcmi.load_error),
                      "install the driver again: sudo ./Ascend-hdk-*-npu-driver_*.run --full");
  report.Add(fmt::format("dcmi_init answers {}{}", dcmi.code,
                         answer ? fmt::format(" ({}): {}", answer->name, answer->cause->why.en) : ""),
             answer ? answer->cause->next.en : "anynpu explain the code");
}

NPU_CHECK(SmiFails, "npu-smi-fails", kWarning, kDriver, "npu-smi answers") {
  if (!portrait.smi.present) {
    if (!portrait.driver.folder.empty())
      report.Add("npu-smi is not on PATH although a driver is installed",
                 "export PATH=/usr/local/bin:/usr/local/sbin:$PATH; in a container mount it: -v "
                 "/usr/local/bin/npu-smi:/usr/local/bin/npu-smi");
    return;
  }
  if (portrait.smi.timed_out)
    return report.Add("npu-smi info does not come back within 10 s: a card or its driver hangs",
                      "dmesg | grep -i davinci | tail; reboot if it goes on");
  if (portrait.smi.code != 0)
    report.Add(fmt::format("npu-smi info ends with {}: {}", portrait.smi.code, portrait.smi.first_line),
               fmt::format("anynpu explain \"{}\"", portrait.smi.first_line));
}

NPU_CHECK(Health, "card-unhealthy", kError, kCards, "all cards are healthy") {
  for (const Card& card : portrait.smi.cards) {
    if (card.health == "OK" || card.health.empty()) continue;
    report.Add(
        fmt::format("card {} ({}) reports health {}", card.id, card.name, card.health),
        fmt::format(
            "npu-smi info -t health -i {}; leave it out until then: export ASCEND_RT_VISIBLE_DEVICES=... without {}",
            card.id, card.id));
  }
}

NPU_CHECK(HbmTaken, "hbm-taken", kWarning, kCards, "no card's memory is held by processes already") {
  for (const Card& card : portrait.smi.cards) {
    // An idle card shows up to a tenth as used by its system.
    if (card.processes.empty() || card.hbm_total_mb == 0 || card.hbm_used_mb * 4 < card.hbm_total_mb) continue;
    report.Add(
        fmt::format("card {} has {} of {} MB taken already, by {}", card.id, card.hbm_used_mb, card.hbm_total_mb,
                    fmt::join(card.processes, ", ")),
        "end the processes that are left over (kill PID), or choose other cards: export ASCEND_RT_VISIBLE_DEVICES=");
  }
}

}  // namespace npu::doctor
