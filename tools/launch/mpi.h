// Programs that expect torchrun's variables, started by mpirun or srun.
//
//   anynpu run --mpi -- mpirun -n 8 python train.py
// becomes
//   mpirun -n 8 anynpu mpi-rank --master 127.0.0.1:41234 -- python train.py
//
// and `anynpu mpi-rank` sets RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT from what the
// starter gave the process (OMPI_*, PMI_*, SLURM_*), before the program begins. What the user set stands.
#pragma once

#include <string>
#include <vector>

#include "base/status/status.h"
#include "tools/launch/environment.h"

namespace npu::launch {

// Whether a program of that name starts others on ranks.
bool StartsRanks(const std::string& program);

// The command with `inserted` before each program that it starts. Fails when no program is found.
Result<std::vector<std::string>> InsertBeforePrograms(const std::vector<std::string>& command,
                                                      const std::vector<std::string>& inserted);

// Where the ranks meet: the first host the command names, this one otherwise, and a free port.
Result<std::string> MasterFor(const std::vector<std::string>& command, const Lookup& current);

// What mpi-rank sets. Fails with what is missing and what was looked for.
Result<Variables> RankVariables(const Lookup& current, const std::string& master);

// A warning with the form that works, for commands (or scripts that are run) that start torchrun's agents on every
// rank of mpirun: n agents of n ranks each on one port. Empty when there is nothing to say.
std::string LintOf(const std::vector<std::string>& command);

}  // namespace npu::launch
