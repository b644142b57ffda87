// Tests the binary under torchrun and srun, which start one process for each rank. Also tests ranks
// that are killed or hang.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/harness/cli/tiny_models.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

const std::string kTwoRanks = kTinyLlama + "--parallel fsdp=2 --threads 1 --optimizer adamw ";
// The limit is long, because the machine may be busy. Usually a killed process is noticed within a
// second, and a hanging rank within ten seconds.
constexpr seconds kSoon{60};

// Returns a port that was free a moment ago.
int free_port() {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  REQUIRE(bind(listening, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  close(listening);
  return ntohs(address.sin_port);
}

// Returns a new environment variable. A test sets it for its processes, to find them later.
std::string new_mark() {
  static int count = 0;
  return "REMATCH_TEST_MARK=" + std::to_string(getpid()) + "." + std::to_string(++count);
}

enum class Starter { kTorchrun, kSrun };

// Returns the environment variables that torchrun or srun sets for a process of one rank.
std::string variables_of(Starter starter, int rank, int world, int port) {
  const std::string number = std::to_string(rank);
  const std::string meeting = "MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(port) + " ";
  if (starter == Starter::kSrun) {
    return "SLURM_PROCID=" + number + " SLURM_NTASKS=" + std::to_string(world) +
           " SLURM_LOCALID=" + number + " " + meeting;
  }
  return "RANK=" + number + " WORLD_SIZE=" + std::to_string(world) + " LOCAL_RANK=" + number + " " +
         meeting;
}

// Two ranks of a job: the program of each rank, and environment variables that both get.
struct TwoCommands {
  std::vector<std::string> programs = {binary(), binary()};
  int port = free_port();
  std::string variables;
};

// Starts two ranks with the same arguments. Runs `meanwhile` at the same time.
std::vector<Outcome> start_twice(
    const std::string& arguments, Starter starter, const std::string& mark,
    const std::function<void()>& meanwhile = [] {}, const TwoCommands& two = {}) {
  std::vector<std::future<Outcome>> commands;
  for (int rank = 0; rank < 2; ++rank) {
    commands.push_back(std::async(std::launch::async, [=] {
      return run_program(two.programs[static_cast<std::size_t>(rank)], arguments,
                         mark + " " + two.variables + variables_of(starter, rank, 2, two.port));
    }));
  }
  meanwhile();
  std::vector<Outcome> outcomes;
  for (std::future<Outcome>& command : commands) outcomes.push_back(command.get());
  return outcomes;
}

// `words` has the format of /proc/PID/cmdline and /proc/PID/environ: a zero byte follows each word.
bool has_word(const std::string& words, const std::string& word) {
  return (std::string(1, '\0') + words).find('\0' + word + '\0') != std::string::npos;
}

// Returns the path of the program with LibTorch. `command` starts this program for subcommands that
// need LibTorch.
std::string with_libtorch(const std::string& command) { return command + "-libtorch"; }

// Returns the process that runs the subcommand and has both `mark` and `variable` in its
// environment, or 0.
pid_t find_process(const std::string& mark, const std::string& subcommand,
                   const std::string& variable) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string environment = text_of(entry.path() / "environ");
    if (!has_word(environment, mark) || !has_word(environment, variable)) continue;
    const std::string arguments = text_of(entry.path() / "cmdline");
    for (const std::string& program : {std::string(binary()), with_libtorch(binary())}) {
      if (arguments.starts_with(program + '\0' + subcommand + '\0')) return std::stoi(name);
    }
  }
  return 0;
}

// Waits until find_process() finds the process, and sends the signal to it. Gives up after kSoon.
bool signal_process(int signal_number, const std::string& mark, const std::string& subcommand,
                    const std::string& variable) {
  const auto give_up_at = steady_clock::now() + kSoon;
  while (steady_clock::now() < give_up_at) {
    const pid_t process = find_process(mark, subcommand, variable);
    if (process > 0) return kill(process, signal_number) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

const Json& only_point(const Json& report) {
  REQUIRE(report["points"].size() == 1);
  return report["points"][0];
}

TEST_CASE("ranks started by torchrun or srun measure the same as ranks started by rematch") {
  const ScratchFolder scratch;
  const std::string arguments = "run " + kTwoRanks + "--policy none,full --steps 2 --rounds 1 -o ";
  const std::string here = scratch.file("here.json");
  REQUIRE(rematch(arguments + here).code == 0);
  const Json spawned = read_json_file(here);
  for (const Starter starter : {Starter::kTorchrun, Starter::kSrun}) {
    const std::string file = scratch.file("started.json");
    const std::vector<Outcome> outcomes = start_twice(arguments + file, starter, new_mark());
    CAPTURE(outcomes[0].err);
    CHECK(outcomes[0].code == 0);
    CHECK_THAT(outcomes[0].out, Catch::Contains("full"));
    CHECK(outcomes[1].code == 0);
    CHECK(outcomes[1].out == "");
    CHECK(outcomes[1].err == "");
    const Json started = read_json_file(file);
    REQUIRE(started["points"].size() == spawned["points"].size());
    for (std::size_t point = 0; point < spawned["points"].size(); ++point) {
      const Json& own = started["points"][point];
      const Json& other = spawned["points"][point];
      CAPTURE(own["policy"]);
      for (const char* fact :
           {"key", "status", "counts", "ops", "memory", "ranks", "steps", "parity", "effect"}) {
        CAPTURE(fact);
        CHECK(own[fact] == other[fact]);
      }
      CHECK(own["status"] == "ok");
      CHECK(own["time"]["samples_ns"][0].size() == 2);
    }
    std::filesystem::remove_all(scratch.file("started.points"));
  }
}

TEST_CASE("a killed rank ends a started job in seconds, and the error names the rank") {
  const ScratchFolder scratch;
  const std::string mark = new_mark();
  steady_clock::time_point killed_at;
  const std::vector<Outcome> outcomes =
      start_twice("run " + kTwoRanks + "--policy none --steps 100000 --rounds 0 --retries 0 -o " +
                      scratch.file("report.json"),
                  Starter::kTorchrun, mark, [&] {
                    CHECK(signal_process(SIGKILL, mark, "point", "RANK=1"));
                    killed_at = steady_clock::now();
                  });
  CHECK(steady_clock::now() - killed_at < kSoon);
  CAPTURE(outcomes[0].err, outcomes[1].err);
  CHECK(outcomes[0].code == 5);
  CHECK(outcomes[1].code == 5);
  CHECK(outcomes[1].out == "");
  const Json report = read_json_file(scratch.file("report.json"));
  CHECK(only_point(report)["status"] == "crash");
  CHECK_THAT(only_point(report)["reason"].get<std::string>(),
             Catch::StartsWith("rank 1 ended first, signal 9"));
}

TEST_CASE(
    "if the command of one rank is killed, the error names the rank, and later points do not wait "
    "for it") {
  const ScratchFolder scratch;
  const std::string mark = new_mark();
  steady_clock::time_point killed_at;
  const std::vector<Outcome> outcomes = start_twice(
      "run " + kTwoRanks + "--policy none,full --steps 100000 --rounds 0 --retries 0 -o " +
          scratch.file("report.json"),
      Starter::kTorchrun, mark, [&] {
        while (find_process(mark, "point", "RANK=1") == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        CHECK(signal_process(SIGKILL, mark, "run", "RANK=1"));
        killed_at = steady_clock::now();
      });
  CHECK(steady_clock::now() - killed_at < kSoon);
  CAPTURE(outcomes[0].err);
  CHECK(outcomes[0].code == 5);
  const Json report = read_json_file(scratch.file("report.json"));
  REQUIRE(report["points"].size() == 2);
  for (const Json& point : report["points"]) {
    CHECK(point["status"] == "crash");
    CHECK_THAT(point["reason"].get<std::string>(), Catch::StartsWith("rank 1 is lost: "));
  }
}

TEST_CASE("a run with a hanging rank ends at --timeout, and the error names the rank") {
  const ScratchFolder scratch;
  const std::string mark = new_mark();
  auto command = std::async(std::launch::async, [&] {
    return rematch("run " + kTwoRanks +
                       "--policy none --steps 100000 --rounds 0 --retries 0 --timeout 5s -o " +
                       scratch.file("report.json"),
                   mark + " ");
  });
  CHECK(signal_process(SIGSTOP, mark, "point", "RANK=1"));
  const auto stopped_at = steady_clock::now();
  const Outcome outcome = command.get();
  CHECK(steady_clock::now() - stopped_at < kSoon);
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.code == 5);
  const Json report = read_json_file(scratch.file("report.json"));
  CHECK(only_point(report)["status"] == "timeout");
  CHECK_THAT(only_point(report)["reason"].get<std::string>(),
             Catch::StartsWith("not finished after 5000 ms: rank 1 is behind: "));
  CHECK_THAT(outcome.out, Catch::Contains("rank 1 is behind"));
}

TEST_CASE("if a command never starts, every point reports this at --timeout") {
  const ScratchFolder scratch;
  const Outcome outcome = rematch(
      "run " + kTwoRanks + "--policy none,full --steps 2 --rounds 0 --retries 0 --timeout 2s -o " +
          scratch.file("report.json"),
      variables_of(Starter::kTorchrun, 0, 2, free_port()));
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  const Json report = read_json_file(scratch.file("report.json"));
  REQUIRE(report["points"].size() == 2);
  for (const Json& point : report["points"]) {
    CHECK(point["status"] == "crash");
    CHECK_THAT(point["reason"].get<std::string>(),
               Catch::StartsWith("rank 1 was never started: its command did not accept request 1"));
  }
}

TEST_CASE(
    "if the binaries of two ranks differ, every rank ends with an error that names both hashes") {
  const ScratchFolder scratch;
  TwoCommands two;
  two.programs[1] = scratch.file("rematch");
  std::filesystem::copy_file(binary(), two.programs[1]);
  std::filesystem::copy_file(with_libtorch(binary()), with_libtorch(two.programs[1]));
  std::ofstream(with_libtorch(two.programs[1]), std::ios::app) << "one byte more";
  const std::vector<Outcome> outcomes = start_twice(
      "run " + kTwoRanks + "--policy none --steps 2 --rounds 0 -o " + scratch.file("report.json"),
      Starter::kTorchrun, new_mark(), [] {}, two);
  CAPTURE(outcomes[0].err, outcomes[1].err);
  CHECK(outcomes[0].code == 5);
  CHECK(outcomes[1].code == 5);
  const Json report = read_json_file(scratch.file("report.json"));
  CHECK(only_point(report)["status"] == "crash");
  CHECK_THAT(only_point(report)["reason"].get<std::string>(),
             Catch::Contains("ranks differ in program: rank 0 has"));
}

TEST_CASE(
    "if the command of rank 0 and its store are killed, the other commands report that and end") {
  const std::string mark = new_mark();
  steady_clock::time_point killed_at;
  const std::vector<Outcome> outcomes =
      start_twice("run " + kTwoRanks + "--policy none --steps 100000 --rounds 0 --retries 0",
                  Starter::kTorchrun, mark, [&] {
                    while (find_process(mark, "point", "RANK=1") == 0) {
                      std::this_thread::sleep_for(std::chrono::milliseconds(10));
                    }
                    CHECK(signal_process(SIGKILL, mark, "run", "RANK=0"));
                    killed_at = steady_clock::now();
                  });
  CHECK(steady_clock::now() - killed_at < kSoon);
  CHECK(outcomes[1].code == 5);
  CHECK(is_one_clear_line(outcomes[1]));
  CHECK_THAT(outcomes[1].err, Catch::StartsWith("rematch: rank 1 lost the store at 127.0.0.1:") &&
                                  Catch::Contains("the command of rank 0 has ended"));
}

// The first job serves a store and waits for its second rank. The second job is told that this
// store belongs to torchrun's agent, and connects to it.
TEST_CASE("a lost store ends a job in seconds, and the report says that the store was lost") {
  const ScratchFolder scratch;
  TwoCommands two;
  two.variables = "TORCHELASTIC_USE_AGENT_STORE=True REMATCH_LAUNCH=of_this_job ";
  const std::string agent = new_mark();
  auto serving = std::async(std::launch::async, [&] {
    return rematch("run " + kTwoRanks + "--policy none --timeout 5min",
                   agent + " " + variables_of(Starter::kTorchrun, 0, 2, two.port));
  });
  const std::string mark = new_mark();
  steady_clock::time_point killed_at;
  const std::vector<Outcome> outcomes = start_twice(
      "run " + kTwoRanks + "--policy none,full --steps 100000 --rounds 0 --retries 0 -o " +
          scratch.file("report.json"),
      Starter::kTorchrun, mark,
      [&] {
        while (find_process(mark, "point", "RANK=1") == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        CHECK(signal_process(SIGKILL, agent, "run", "RANK=0"));
        killed_at = steady_clock::now();
      },
      two);
  CHECK(steady_clock::now() - killed_at < kSoon);
  serving.get();
  CAPTURE(outcomes[0].err, outcomes[1].err);
  CHECK(outcomes[0].code == 5);
  CHECK(outcomes[1].code == 5);
  const Json report = read_json_file(scratch.file("report.json"));
  REQUIRE(report["points"].size() == 2);
  for (const Json& point : report["points"]) {
    CHECK(point["status"] == "crash");
    CHECK_THAT(point["reason"].get<std::string>(), Catch::Contains("the store"));
  }
}

TEST_CASE("if a job's size differs from the layout's size, every rank's error names both sizes") {
  for (const int rank : {0, 1, 2}) {
    const Outcome outcome = rematch("run " + kTwoRanks + "--policy none --steps 1 --rounds 0",
                                    variables_of(Starter::kTorchrun, rank, 3, 29500));
    CAPTURE(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(is_one_clear_line(outcome));
    CHECK_THAT(outcome.err, Catch::Contains("this is rank " + std::to_string(rank) + " of 3 "));
    CHECK_THAT(outcome.err, Catch::Contains("--parallel has 2 ranks"));
  }
  const Outcome half = rematch("run " + kTwoRanks + "--policy none", "RANK=1 WORLD_SIZE=2 ");
  CHECK(half.code == 2);
  CHECK_THAT(half.err, Catch::Contains("RANK is set but MASTER_ADDR is not"));
}

TEST_CASE("if rank 0 refuses the arguments, the other commands end with the same exit code") {
  const std::vector<Outcome> outcomes =
      start_twice("run " + kTwoRanks + "--policy keep_everything --steps 1 --rounds 0",
                  Starter::kTorchrun, new_mark());
  CHECK(outcomes[0].code == 2);
  CHECK(outcomes[1].code == 2);
}

}  // namespace
}  // namespace rematch::testing
