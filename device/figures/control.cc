#include "device/figures/control.h"

#include "device/machine/state_file.h"

namespace npu::device {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

Result<std::unique_ptr<StateFile>> OpenFor(const std::string& machine, int card) {
  MachineConfig config;
  config.name = machine;
  NPU_ASSIGN(std::unique_ptr<StateFile> file, OpenSettled(config));
  if (card >= 0 && static_cast<uint32_t>(card) < file->layout().header.cards) return file;
  return Error(Code::kInvalidParam, "Machine {} has no card {}.", machine, card);
}

}  // namespace

Status SetSharing(const std::string& machine, int card, Sharing sharing) {
  NPU_ASSIGN(const std::unique_ptr<StateFile> file, OpenFor(machine, card));
  file->layout().figures.boards[card].shared.store(sharing, kRelaxed);
  file->layout().header.kept.store(1, kRelaxed);  // a setting outlives the processes
  return {};
}

Status ClearEcc(const std::string& machine, int card) {
  NPU_ASSIGN(const std::unique_ptr<StateFile> file, OpenFor(machine, card));
  CardBoard& board = file->layout().figures.boards[card];
  for (auto* counter : {&board.ecc_single, &board.ecc_double, &board.isolated_single, &board.isolated_double})
    counter->store(0, kRelaxed);
  return {};
}

Status ResetCard(const std::string& machine, int card) {
  NPU_TRY(ClearEcc(machine, card));
  NPU_ASSIGN(const std::unique_ptr<StateFile> file, OpenFor(machine, card));
  file->layout().figures.boards[card].resets.fetch_add(1, kRelaxed);
  return {};
}

}  // namespace npu::device
