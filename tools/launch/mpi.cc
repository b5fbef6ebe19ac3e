#include "tools/launch/mpi.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace npu::launch {
namespace fs = std::filesystem;
namespace {

struct Option {
  const char* name;
  int values;
};
// Options of mpirun (Open MPI, MPICH's Hydra) and srun that take values in words of their own. Those of the form
// --name=value and those without a value need no row.
constexpr Option kOptions[] = {{"n", 1},
                               {"np", 1},
                               {"c", 1},
                               {"H", 1},
                               {"host", 1},
                               {"hosts", 1},
                               {"hostfile", 1},
                               {"machinefile", 1},
                               {"default-hostfile", 1},
                               {"f", 1},
                               {"ppn", 1},
                               {"perhost", 1},
                               {"N", 1},
                               {"npernode", 1},
                               {"npersocket", 1},
                               {"map-by", 1},
                               {"bind-to", 1},
                               {"rank-by", 1},
                               {"x", 1},
                               {"mca", 2},
                               {"gmca", 2},
                               {"pmixmca", 2},
                               {"prtemca", 2},
                               {"genv", 2},
                               {"env", 2},
                               {"genvlist", 1},
                               {"envlist", 1},
                               {"wdir", 1},
                               {"wd", 1},
                               {"path", 1},
                               {"prefix", 1},
                               {"iface", 1},
                               {"launcher", 1},
                               {"bootstrap", 1},
                               {"rmk", 1},
                               {"output-filename", 1},
                               {"outfile-pattern", 1},
                               {"timeout", 1},
                               {"cpu-set", 1},
                               {"cpus-per-proc", 1},
                               {"cpus-per-rank", 1},
                               {"rf", 1},
                               {"rankfile", 1},
                               {"stdin", 1},
                               {"tune", 1},
                               {"am", 1},
                               {"app", 1},
                               {"configfile", 1},
                               {"binding", 1},
                               {"bind-to-core", 0},
                               {"ntasks", 1},
                               {"nodes", 1},
                               {"ntasks-per-node", 1},
                               {"partition", 1},
                               {"p", 1},
                               {"nodelist", 1},
                               {"w", 1},
                               {"mpi", 1},
                               {"cpus-per-task", 1},
                               {"job-name", 1},
                               {"J", 1},
                               {"time", 1},
                               {"t", 1},
                               {"account", 1},
                               {"A", 1},
                               {"gres", 1},
                               {"o", 1},
                               {"output", 1},
                               {"e", 1},
                               {"error", 1},
                               {"D", 1},
                               {"chdir", 1}};

int ValuesOf(const std::string& word) {
  if (word.find('=') != std::string::npos) return 0;
  const std::string name = word.substr(word.find_first_not_of('-'));
  for (const Option& option : kOptions) {
    if (name == option.name) return option.values;
  }
  return 0;
}

bool IsProgram(const std::string& word) {
  if (word.find('/') != std::string::npos) return ::access(word.c_str(), F_OK) == 0;
  std::istringstream folders(FromProcess("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code error;
    if (fs::is_regular_file(fs::path(folder.empty() ? "." : folder) / word, error)) return true;
  }
  return false;
}

// The place of each program that a starter's command line names; several with ":" between.
std::vector<size_t> ProgramsIn(const std::vector<std::string>& command) {
  std::vector<size_t> found;
  bool wanted = true;
  for (size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word == ":") {
      wanted = true;
    } else if (!wanted || word.empty()) {
      continue;
    } else if (word == "--") {
      if (i + 1 < command.size()) found.push_back(i + 1);
      wanted = false;
    } else if (word[0] == '-' && word.size() > 1) {
      i += static_cast<size_t>(ValuesOf(word));
    } else if (IsProgram(word)) {
      found.push_back(i);
      wanted = false;
    }
  }
  return found;
}

Result<uint16_t> FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t length = sizeof any;
  const bool ok = fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 &&
                  ::getsockname(fd, reinterpret_cast<sockaddr*>(&any), &length) == 0;
  if (fd >= 0) ::close(fd);
  if (!ok) return Error(Code::kResourceExhausted, "anynpu run --mpi: no port is free.");
  return ntohs(any.sin_port);
}

// The first host that the command line names, by itself or in a file; empty when none.
std::string FirstHost(const std::vector<std::string>& command) {
  for (size_t i = 1; i < command.size(); ++i) {
    std::string name = command[i], value = i + 1 < command.size() ? command[i + 1] : "";
    if (const size_t equals = name.find('='); equals != std::string::npos)
      value = name.substr(equals + 1), name.resize(equals);
    if (name.empty() || name[0] != '-') continue;
    name = name.substr(std::min(name.size(), name.find_first_not_of('-')));
    if (name == "H" || name == "host" || name == "hosts") return value.substr(0, value.find_first_of(",:"));
    if (name != "hostfile" && name != "machinefile" && name != "f" && name != "default-hostfile") continue;
    std::ifstream in(value);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line.substr(0, line.find('#')));
      if (std::string host; words >> host) return host.substr(0, host.find(':'));
    }
  }
  return {};
}

std::optional<std::string> First(const Lookup& current, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (auto value = current(name); value && !value->empty()) return value;
  }
  return std::nullopt;
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

}  // namespace

bool StartsRanks(const std::string& program) {
  const std::string name = fs::path(program).filename().string();
  for (const char* known : {"mpirun", "mpiexec", "orterun", "prterun", "srun", "mpirun.openmpi", "mpirun.mpich",
                            "mpiexec.openmpi", "mpiexec.mpich", "mpiexec.hydra", "mpirun.hydra"}) {
    if (name == known) return true;
  }
  return false;
}

Result<std::vector<std::string>> InsertBeforePrograms(const std::vector<std::string>& command,
                                                      const std::vector<std::string>& inserted) {
  const std::vector<size_t> places = ProgramsIn(command);
  if (places.empty()) {
    return Error(Code::kInvalidParam, "anynpu run --mpi: no program is found among the words after {}.",
                 command.empty() ? "" : command[0])
        .Remedy(
            "Put the wrapper before the program yourself: {} … anynpu mpi-rank --master HOST:PORT -- python train.py",
            command.empty() ? "mpirun" : command[0]);
  }
  std::vector<std::string> whole;
  for (size_t i = 0; i < command.size(); ++i) {
    if (std::find(places.begin(), places.end(), i) != places.end())
      whole.insert(whole.end(), inserted.begin(), inserted.end());
    whole.push_back(command[i]);
  }
  return whole;
}

Result<std::string> MasterFor(const std::vector<std::string>& command, const Lookup& current) {
  std::string host = current("MASTER_ADDR").value_or("");
  if (host.empty()) host = FirstHost(command);
  if (host.empty()) host = First(current, {"SLURM_LAUNCH_NODE_IPADDR"}).value_or("127.0.0.1");
  if (host == "localhost") host = "127.0.0.1";
  std::string port = current("MASTER_PORT").value_or("");
  if (port.empty()) {
    // On another host than this one a port cannot be tried; torch's usual one then.
    const bool here = host == "127.0.0.1";
    NPU_ASSIGN(const uint16_t free, FreePort());
    port = here ? std::to_string(free) : "29500";
  }
  return host + ":" + port;
}

Result<Variables> RankVariables(const Lookup& current, const std::string& master) {
  const auto rank = First(current, {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"});
  const auto world = First(current, {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "SLURM_NPROCS"});
  auto local = First(current, {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                               "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"});
  auto local_world =
      First(current, {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"});
  const auto missing = [](const char* what, const char* looked_for) {
    return Error(Code::kInvalidParam, "anynpu mpi-rank: {} is not known: none of {} is set.", what, looked_for)
        .Remedy(
            "Start it through mpirun (Open MPI, MPICH) or srun, as `anynpu run --mpi -- mpirun -n 8 python train.py` "
            "does, or set RANK, "
            "LOCAL_RANK and WORLD_SIZE yourself.");
  };
  if (!rank) return missing("the rank", "RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK, SLURM_PROCID");
  if (!world) return missing("the number of ranks", "WORLD_SIZE, OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_NTASKS");
  if (!IsNumber(*rank) || !IsNumber(*world) || std::stol(*rank) >= std::stol(*world)) {
    return Error(Code::kInvalidParam, "anynpu mpi-rank: rank {} of {} makes no sense.", *rank, *world)
        .Remedy("See which of RANK, WORLD_SIZE, OMPI_*, PMI_* and SLURM_* this process has inherited.");
  }
  // A starter that says nothing of hosts has one.
  if (!local) local = rank;
  if (!local_world || !IsNumber(*local_world))
    local_world = std::max(std::stol(*local) + 1, 1L) > std::stol(*world) ? *local : *world;
  const size_t colon = master.rfind(':');
  const auto address = First(current, {"MASTER_ADDR"}), port = First(current, {"MASTER_PORT"});
  if ((!address || !port) && colon == std::string::npos) {
    if (std::stol(*world) > 1)
      return missing("where the ranks meet", "MASTER_ADDR and MASTER_PORT (or --master HOST:PORT)");
  }
  Variables variables = {
      {"RANK", *rank}, {"LOCAL_RANK", *local}, {"WORLD_SIZE", *world}, {"LOCAL_WORLD_SIZE", *local_world}};
  variables.emplace_back("MASTER_ADDR", address                      ? *address
                                        : colon == std::string::npos ? "127.0.0.1"
                                                                     : master.substr(0, colon));
  variables.emplace_back("MASTER_PORT", port ? *port : colon == std::string::npos ? "29500" : master.substr(colon + 1));
  return variables;
}

std::string LintOf(const std::vector<std::string>& command) {
  if (command.empty()) return {};
  std::string text;
  if (StartsRanks(command[0])) {
    for (const std::string& word : command) text += word + " ";
  } else {
    // A script that is run: ./npu_torchrun.sh 8 …, bash npu_torchrun.sh 8 …
    for (const std::string& word : command) {
      std::error_code error;
      if (word.empty() || word[0] == '-' || !fs::is_regular_file(word, error) || fs::file_size(word, error) > 100000)
        continue;
      std::string head(2, ' ');
      std::ifstream in(word, std::ios::binary);
      std::ostringstream whole;
      whole << in.rdbuf();
      if (whole.str().rfind("#!", 0) == 0 || fs::path(word).extension() == ".sh") text = whole.str();
      break;
    }
  }
  text = std::regex_replace(text, std::regex("\\\\\\s*\\n"), " ");
  static const std::regex kBoth(
      R"((mpirun|mpiexec|orterun|srun)\b[^\n;&|]*\s(-n|-np|--np|--ntasks)[ =]+(\S+)[^\n;&|]*(torch\.distributed\.(run|launch)|\btorchrun\b)[^\n;&|]*--nproc[-_]per[-_]node[= ]+(\S+))");
  std::smatch match;
  if (!std::regex_search(text, match, kBoth)) return {};
  const std::string slots = match[3], ranks = match[6];
  if (slots == "1" || ranks == "1") return {};
  return "anynpu: this command starts " + slots + " agents of torch.distributed.run (one on each slot of " +
         match[1].str() + "), and each of them " + ranks +
         " ranks on one port: with any backend they cannot meet. One starter is enough:\n"
         "  anynpu run -n " +
         ranks + " -- torchrun --nproc-per-node=" + ranks +
         " train.py\n"
         "  anynpu run -n " +
         ranks + " --mpi -- " + match[1].str() + " -n " + slots +
         " python train.py\n"
         "HCCL asks for neither: torchrun works, and mpirun works with one rank on each slot.\n";
}

}  // namespace npu::launch
