#include "tools/launch/cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "device/machine/machine.h"
#include "device/machine/names.h"
#include "device/profile/profile.h"
#include "tools/launch/bench.h"
#include "tools/launch/child.h"
#include "tools/launch/devices.h"
#include "tools/launch/environment.h"
#include "tools/launch/install.h"
#include "tools/launch/mpi.h"
#include "tools/launch/parity.h"
#include "tools/launch/traced.h"
#include "tools/launch/tree.h"
#include "tools/trace/replay.h"

namespace npu::launch {
namespace fs = std::filesystem;
namespace {

constexpr int kUsage = 2, kNotExecutable = 126, kNotFound = 127;
constexpr std::pair<const char*, const char*> kMonitors[] = {
    {"exporter", "Prometheus exporter of the cards: the npu-exporter's metrics and more"},
    {"top", "Cards, processes, collectives and operators in the terminal"},
    {"web", "The same as a page in the browser, live"}};
constexpr const char* kAnnounced = "ANYNPU_ANNOUNCED";  // set once the line about software NPUs was written

// What run, env and up share: which machine, and what it is like. Each becomes the variable that the libraries read.
struct MachineOptions {
  std::string cards, soc, hbm, cann, name;

  void AddTo(CLI::App& app) {
    app.add_option("-n,--cards", cards, "number of cards (default 2)")->type_name("CARDS");
    app.add_option("--soc", soc, "what the cards are: Ascend910B4, 910B3, ... (default Ascend910B4)")
        ->type_name("NAME");
    app.add_option("--hbm", hbm, "memory of one card: 32G, 512M (default: the real card's)")->type_name("SIZE");
    app.add_option("--cann", cann, "CANN version to report (default 9.1.0)")->type_name("VERSION");
    app.add_option("--machine", name, "a machine of its own (default: default)")->type_name("NAME");
  }

  Variables Asked() const {
    Variables asked;
    for (const auto& [variable, value] : {std::pair{"ANYNPU_CARDS", &cards},
                                          {"ANYNPU_SOC", &soc},
                                          {"ANYNPU_HBM", &hbm},
                                          {"ANYNPU_CANN", &cann},
                                          {"ANYNPU_MACHINE", &name}}) {
      if (!value->empty()) asked.emplace_back(variable, *value);
    }
    return asked;
  }
};

int Fail(const Status& status, int code = kUsage) {
  fmt::print(stderr, "{}\n", status.Message());
  return code;
}

void Export(const Variables& variables) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
}

// Variables of the machine (set in this process too, so that the device layer reads them) and of the install tree.
Result<Variables> Prepare(const MachineOptions& options) {
  Variables variables = options.Asked();
  Export(variables);
  NPU_ASSIGN(const fs::path tree, FindTree());
  NPU_ASSIGN(const device::MachineConfig config, device::ConfigFromEnvironment());
  fs::path home = tree;
  if (config.cann && *config.cann != device::kDefaultCann) {
    NPU_ASSIGN(const fs::path cache, CacheFolder());
    NPU_ASSIGN(home, HomeFor(tree, device::kDefaultCann, *config.cann, cache));
  }
  fs::path libraries = tree;
  if (const std::string missing = FromProcess("ANYNPU_MISSING").value_or(""); missing == "driver") {
    NPU_ASSIGN(const fs::path cache, CacheFolder());
    NPU_ASSIGN(home, HomeWithoutDriver(home, cache));
    libraries = home;
  }
  for (auto& variable : EnvironmentFor(libraries, home, FromProcess)) variables.push_back(std::move(variable));
  // In parity mode torch_npu's queue stays as it is on a card.
  if (std::getenv("ANYNPU_PARITY") != nullptr && std::getenv("TASK_QUEUE_ENABLE") == nullptr)
    std::erase_if(variables, [](const auto& variable) { return variable.first == "TASK_QUEUE_ENABLE"; });
  return variables;
}

void Announce(const device::Machine& machine) {
  if (std::getenv(kAnnounced)) return;
  setenv(kAnnounced, "1", 1);
  fmt::print(stderr, "anynpu: {} software {} {} (machine {}, CANN {}); they compute on this computer's processor.\n",
             machine.cards(), machine.profile().soc, machine.cards() == 1 ? "NPU" : "NPUs", machine.name(),
             machine.cann());
}

int Execute(std::vector<std::string> command) {
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  const int error = errno;
  fmt::print(stderr, "anynpu: {}: {}\n", command[0], std::strerror(error));
  return error == ENOENT ? kNotFound : kNotExecutable;
}

// What the ranks of mpirun and srun are told, see mpi.h. Without a starter in front the process is a rank itself.
Result<std::vector<std::string>> ForMpi(const std::vector<std::string>& command) {
  if (!StartsRanks(command[0])) {
    NPU_ASSIGN(const Variables variables, RankVariables(FromProcess, ""));
    Export(variables);
    return command;
  }
  NPU_ASSIGN(const std::string master, MasterFor(command, FromProcess));
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return InsertBeforePrograms(command, {self.string(), "mpi-rank", "--master", master, "--"});
}

int MpiRank(const std::string& master, const std::vector<std::string>& command) {
  if (command.empty()) {
    fmt::print(stderr, "anynpu mpi-rank: no command. It is what `anynpu run --mpi -- mpirun …` puts before the program.\n");
    return kUsage;
  }
  Result<Variables> variables = RankVariables(FromProcess, master);
  if (!variables.ok()) return Fail(variables.status());
  Export(*variables);
  return Execute(command);
}

// What strict memory wants of torch: with its caching allocator a whole segment is one block.
void BeStrict(const std::string& how) {
  if (how.empty()) return;
  setenv("ANYNPU_STRICT", how.c_str(), 1);
  setenv("PYTORCH_NO_NPU_MEMORY_CACHING", "1", 0);
}

int Run(const MachineOptions& options, bool quiet, bool dev_nodes, const std::vector<std::string>& command) {
  if (command.empty()) {
    fmt::print(stderr, "anynpu run: no command. Example: anynpu run -- python train.py\n");
    return kUsage;
  }
  Result<Variables> variables = Prepare(options);
  if (!variables.ok()) return Fail(variables.status());
  Result<device::MachineConfig> config = device::ConfigFromEnvironment();
  if (!config.ok()) return Fail(config.status());
  // The slot taken here stays with this process across exec, so the machine lives as long as the command.
  Result<std::unique_ptr<device::Machine>> machine = device::Enter(*config);
  if (!machine.ok()) return Fail(machine.status());
  const device::Machine* joined = machine->release();
  if (quiet) setenv(kAnnounced, "1", 1);
  Announce(*joined);
  if (dev_nodes) {
    if (Status status = PrivateDev(joined->cards()); !status.ok()) Fail(status);
  }
  Export(*variables);
  return Execute(command);
}

// The command as a child in parity mode, and the report of it. torch_npu's queue keeps the setting that it has on a card.
int RunInParity(const MachineOptions& options, const std::string& mode, bool quiet, bool dev_nodes, const std::vector<std::string>& command) {
  if (mode != "refuse" && mode != "warn") {
    fmt::print(stderr, "anynpu run: --parity={} is not known; it is --parity (refuse) or --parity=warn\n", mode);
    return kUsage;
  }
  Result<Folder> folder = Folder::Make("anynpu run --parity");
  if (!folder.ok()) return Fail(folder.status());
  setenv("ANYNPU_PARITY", mode.c_str(), 1);
  setenv("ANYNPU_PARITY_REPORT", folder->path().c_str(), 1);
  const int code = RunChild("anynpu run", [&] { return Run(options, quiet, dev_nodes, command); });
  Export(options.Asked());
  Result<device::MachineConfig> config = device::ConfigFromEnvironment();
  const std::string soc(config.ok() && config->soc ? *config->soc : std::string(device::kDefaultSoc));
  const device::Profile* profile = device::FindProfile(soc);
  fmt::print(stderr, "{}", ParityText(ReadParity(folder->path()), profile != nullptr ? std::string(profile->soc) : soc, mode == "refuse"));
  return code;
}

int PrintEnvironment(const MachineOptions& options) {
  Result<Variables> variables = Prepare(options);
  if (!variables.ok()) return Fail(variables.status());
  std::fputs(ShellExports(*variables).c_str(), stdout);
  return 0;
}

int Up(const MachineOptions& options) {
  Export(options.Asked());
  Result<device::MachineConfig> config = device::ConfigFromEnvironment();
  Status status = config.ok() ? device::Keep(*config) : config.status();
  if (!status.ok()) return Fail(status);
  fmt::print("machine {} is kept until `anynpu down`\n", config->name);
  return 0;
}

// Without a name the machine that `anynpu up` would keep here.
int Down(const std::string& name) {
  Result<device::MachineConfig> here = device::ConfigFromEnvironment();
  if (name.empty() && !here.ok()) return Fail(here.status());
  Status status = name.empty() ? Status() : device::MustExist(name);
  if (status.ok()) status = device::Drop(name.empty() ? here->name : name);
  return status.ok() ? 0 : Fail(status);
}

int Links(const std::string& prefix, bool remove) {
  Result<fs::path> tree = FindTree();
  if (!tree.ok()) return Fail(tree.status());
  const fs::path folder = fs::absolute(prefix).lexically_normal();
  const Status status = remove ? Uninstall(*tree, folder) : Install(*tree, folder);
  if (!status.ok()) return Fail(status, 1);
  for (const Link& link : LinksFor(*tree)) fmt::print("{} {}\n", remove ? "-" : "+", (folder / link.at).string());
  return 0;
}

int Smi(std::vector<std::string> arguments) {
  Result<Variables> variables = Prepare({});
  if (!variables.ok()) return Fail(variables.status());
  Export(*variables);
  arguments.insert(arguments.begin(), "npu-smi");
  if (arguments.size() == 1) arguments.push_back("info");
  return Execute(arguments);
}

// exporter, top and web are a program of their own, since the libraries they use are not everywhere.
int Monitor(std::vector<std::string> words) {
  Result<Variables> variables = Prepare({});
  if (!variables.ok()) return Fail(variables.status());
  Export(*variables);
  Result<fs::path> tree = FindTree();
  if (!tree.ok()) return Fail(tree.status());
  const fs::path program = *tree / "bin" / "anynpu-monitor";
  std::error_code error;
  if (!fs::exists(program, error)) {
    fmt::print(stderr,
               "anynpu {}: this installation was built without it. Install prometheus-cpp-dev libcpp-httplib-dev libyaml-cpp-dev "
               "libssl-dev libcrypt-dev and build again (docs/guide/monitoring.md).\n",
               words[0]);
    return kNotFound;
  }
  words.insert(words.begin(), program.string());
  return Execute(words);
}

int Bench(const std::string& python, const std::vector<std::string>& words) {
  Result<fs::path> tree = FindTree();
  if (!tree.ok()) return Fail(tree.status());
  Result<std::vector<std::string>> command = BenchCommand(*tree, python, words);
  return command.ok() ? Execute(*command) : Fail(command.status());
}

// The command runs as a child, so that its trace can be told when it has ended; the exit status is the command's.
int TraceCommand(const MachineOptions& options, const TraceOptions& trace, const std::vector<std::string>& command) {
  if (command.empty()) {
    fmt::print(stderr, "anynpu trace: no command. Example: anynpu trace -- python train.py\n");
    return kUsage;
  }
  Result<Traced> traced = Traced::Begin(trace);
  if (!traced.ok()) return Fail(traced.status());
  const int code = traced->Child([&] { return Run(options, /*quiet=*/false, /*dev_nodes=*/false, command); });
  const Status status = traced->Tell();
  return status.ok() ? code : Fail(status, 1);
}

int ReplayFile(const MachineOptions& options, const std::string& file, const trace::ReplayOptions& replay) {
  Result<Variables> variables = Prepare(options);
  if (!variables.ok()) return Fail(variables.status());
  Export(*variables);
  Result<fs::path> tree = FindTree();
  if (!tree.ok()) return Fail(tree.status());
  Result<std::vector<trace::Record>> records = trace::Read(file);
  if (!records.ok()) return Fail(records.status());
  Result<std::string> table = trace::Replay(*tree, *records, replay);
  if (!table.ok()) return Fail(table.status());
  std::fputs(table->c_str(), stdout);
  return 0;
}

// `anynpu check ops`: a Python program of the tree, since it compares with torch.
int Check(const MachineOptions& options, const std::string& what, const std::string& python, std::vector<std::string> words) {
  Result<fs::path> tree = FindTree();
  if (!tree.ok()) return Fail(tree.status());
  const fs::path program = *tree / "python" / "check" / what;
  std::error_code error;
  if (what.find('/') != std::string::npos || !fs::exists(program / "__main__.py", error)) {
    fmt::print(stderr, "anynpu check: there is no check {}. Known: ops\n", what);
    return kUsage;
  }
  words.insert(words.begin(), {python, program.string()});
  return Run(options, /*quiet=*/true, /*dev_nodes=*/false, words);
}

// `anynpu check`: the self-test in the environment as it is when that has a toolkit, else with the software cards.
int SelfCheck(const MachineOptions& options, std::vector<std::string> words) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  words.insert(words.begin(), {self.string(), "check-here"});
  const char* home = std::getenv("ASCEND_HOME_PATH");
  const bool as_it_is = options.Asked().empty() && home != nullptr && fs::is_directory(home, error);
  return as_it_is ? Execute(words) : Run(options, /*quiet=*/true, /*dev_nodes=*/false, words);
}

// Takes the words behind the first `--` from argv: they are not for us, whatever they look like.
std::optional<std::vector<std::string>> TakeBehindDashes(int& argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0) {
      std::vector<std::string> words(argv + i + 1, argv + argc);
      argc = i;
      return words;
    }
  }
  return std::nullopt;
}

// The command that a subcommand runs: its words may stand before a `--` of their own or behind ours.
Result<std::vector<std::string>> CommandOf(const CLI::App& subcommand, const std::optional<std::vector<std::string>>& behind) {
  std::vector<std::string> words = subcommand.remaining();
  if (!words.empty() && words[0].starts_with('-')) {
    return Error(Code::kInvalidParam, "anynpu {}: the option {} is not known.", subcommand.get_name(), words[0])
        .Remedy("See `anynpu {} --help`; options of the command stand behind its name or behind --.", subcommand.get_name());
  }
  if (!behind) return words;
  if (!words.empty()) words.push_back("--");
  words.insert(words.end(), behind->begin(), behind->end());
  return words;
}

}  // namespace

int Main(int argc, char** argv, const std::vector<Command>& commands) {
  for (const Command& brought : commands) {
    if (argc > 1 && std::strcmp(argv[1], brought.name) == 0) return brought.run({argv + 2, argv + argc});
  }
  for (const auto& [name, help] : kMonitors) {
    if (argc > 1 && std::strcmp(argv[1], name) == 0) return Monitor({argv + 1, argv + argc});
  }
  const std::optional<std::vector<std::string>> behind = TakeBehindDashes(argc, argv);
  CLI::App app("A software Ascend NPU: programs written for torch_npu run on this computer's processor.", "anynpu");
  app.require_subcommand(1);
  MachineOptions options;

  CLI::App* run = app.add_subcommand("run", "Run a command that sees the software NPUs");
  options.AddTo(*run);
  bool quiet = false, dev_nodes = false, mpi = false, legacy_rules = false;
  run->add_flag("-q,--quiet", quiet, "do not say that the NPUs are software");
  std::string strict;
  run->add_flag("--strict{1}", strict,
                "watch device memory: use before write and after free, out of bounds, host use, stream order, leaks (--strict=warn: "
                "without an exit code of its own)")
      ->check(CLI::IsMember({"1", "warn"}));
  std::string parity;
  std::string missing;
  CLI::Option* without = run->add_option("--missing", missing, "driver or ops: as on a machine without the driver, or without the package of kernels")->type_name("WHAT");
  run->add_flag("--parity{refuse}", parity, "refuse what the chosen card refuses; --parity=warn lists it and goes on");
  run->add_flag("--dev-nodes", dev_nodes, "show /dev/davinci* to the command (needs user and mount namespaces)");
  run->add_flag("--mpi", mpi, "mpirun or srun follows: give its ranks RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  run->add_flag("--legacy-hccl-rules", legacy_rules, "warn of calls that a widely read article says HCCL refuses (real HCCL takes them)");
  run->prefix_command();
  std::string master;
  CLI::App* mpi_rank = app.add_subcommand("mpi-rank", "One rank of mpirun or srun: sets what torchrun would set (see run --mpi)");
  mpi_rank->add_option("--master", master, "where the ranks meet")->type_name("HOST:PORT");
  mpi_rank->prefix_command();

  CLI::App* env = app.add_subcommand("env", "Print shell exports: eval \"$(anynpu env)\"");
  options.AddTo(*env);
  CLI::App* up = app.add_subcommand("up", "Keep a machine when no process uses it");
  options.AddTo(*up);
  std::string down_name;
  CLI::App* down = app.add_subcommand("down", "Let a kept machine go");
  down->add_option("--machine", down_name, "which (default: $ANYNPU_MACHINE, else default)")->type_name("NAME");

  std::string prefix;
  bool remove = false;
  CLI::App* install = app.add_subcommand("install", "Lay links where guides expect the vendor's files");
  install->add_option("--prefix", prefix, "folder, e.g. /usr/local/Ascend")->required()->type_name("DIR");
  install->add_flag("--remove", remove, "take the links away");

  CLI::App* smi = app.add_subcommand("smi", "npu-smi, without a path set up");
  smi->prefix_command();
  CLI::App* bench = app.add_subcommand("bench", "Speed as ratios to torch's CPU and other referees: anynpu bench, anynpu bench ops");
  std::string python;
  bench->add_option("--python", python, "the Python that has torch and torch_npu (default: python3)")->type_name("PROGRAM");
  bench->prefix_command();
  bench->footer("Behind the options: steps, adds, allreduce (all three without a word) or ops, and their options;\n"
                "`anynpu bench ops --help` lists those.");
  CLI::App* trace = app.add_subcommand("trace", "Run a command and list the aclnn operators it called: arguments, time, kernel");
  options.AddTo(*trace);
  TraceOptions tracing;
  trace->add_option("-o,--output", tracing.folder, "keep the calls there, for anynpu replay")->type_name("DIR");
  trace->add_option("--chrome", tracing.chrome, "also write a Chrome trace (chrome://tracing, Perfetto)")->type_name("FILE");
  trace->add_option("--top", tracing.rows, "rows of the list (30)")->type_name("N");
  trace->prefix_command();
  CLI::App* replay = app.add_subcommand("replay", "Make the calls of a trace again, with new values");
  options.AddTo(*replay);
  std::string file;
  trace::ReplayOptions replaying;
  replay->add_option("trace", file, "a file or folder of anynpu trace -o")->required()->type_name("TRACE");
  replay->add_option("--only", replaying.only, "only this operator")->type_name("NAME");
  replay->add_option("--times", replaying.times, "runs of each call (20)")->type_name("N")->check(CLI::Range(1, 1'000'000));
  for (const Command& brought : commands) app.add_subcommand(brought.name, brought.help);
  for (const auto& [name, help] : kMonitors) app.add_subcommand(name, help);
  std::string check_python = "python3";
  CLI::App* check = app.add_subcommand(
      "check", "A self-test of the installation with a score; anynpu check ops compares operators with torch on the CPU");
  check->footer("anynpu check-here --help lists the options of the self-test, anynpu check ops -- --help those of the comparison.");
  options.AddTo(*check);
  check->add_option("--python", check_python, "a Python with torch and torch_npu (default: python3)")->type_name("PROGRAM");
  check->prefix_command();
  CLI::App* version = app.add_subcommand("version", "Print versions");
  CLI11_PARSE(app, argc, argv);

  std::vector<std::string> command;
  for (const CLI::App* runs : {run, mpi_rank, trace}) {
    if (!*runs) continue;
    Result<std::vector<std::string>> words = CommandOf(*runs, behind);
    if (!words.ok()) return Fail(words.status());
    command = words.take();
  }
  if (*run) {
    if (legacy_rules) setenv("ANYNPU_LEGACY_HCCL_RULES", "1", 1);
    std::fputs(LintOf(command).c_str(), stderr);
    if (mpi && !command.empty()) {
      Result<std::vector<std::string>> for_mpi = ForMpi(command);
      if (!for_mpi.ok()) return Fail(for_mpi.status());
      command = for_mpi.take();
    }
    BeStrict(strict);
    if (*without) {
      if (missing != "driver" && missing != "ops") {
        fmt::print(stderr, "anynpu run: --missing {} is not known; it is driver or ops\n", missing);
        return kUsage;
      }
      setenv("ANYNPU_MISSING", missing.c_str(), 1);
    }
    if (!parity.empty()) return RunInParity(options, parity, quiet, dev_nodes, command);
    return Run(options, quiet, dev_nodes, command);
  }
  if (*mpi_rank) return MpiRank(master, command);
  if (*env) return PrintEnvironment(options);
  if (*up) return Up(options);
  if (*down) return Down(down_name);
  if (*install) return Links(prefix, remove);
  if (*smi) return Smi(smi->remaining());
  if (*trace) return TraceCommand(options, tracing, command);
  if (*replay) return ReplayFile(options, file, replaying);
  if (*bench) return Bench(python, bench->remaining());
  if (*check) {
    std::vector<std::string> words = check->remaining();
    if (behind) words.insert(words.end(), behind->begin(), behind->end());
    if (words.empty() || words[0].starts_with('-')) return SelfCheck(options, words);
    const std::string what = words[0];
    words.erase(words.begin());
    return Check(options, what, check_python, words);
  }
  if (*version) {
    fmt::print("anynpu {}, reports CANN {} and driver {} unless asked otherwise\n", NPU_VERSION, device::kDefaultCann,
               device::kDefaultDriver);
  }
  return 0;
}

}  // namespace npu::launch
