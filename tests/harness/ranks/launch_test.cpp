// Tests failures of ranks. Each failure must be named, and must end the job soon.
#include "harness/ranks/launch.h"

#include <ATen/Functions.h>
#include <signal.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness/process/interrupt.h"
#include "tests/support/catch.h"
#include "tests/support/rank_processes.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/slow_group.h"

namespace rematch::testing {
namespace {

using Catch::Contains;
using Catch::StartsWith;
using std::chrono::milliseconds;
using std::chrono::seconds;
using End = LaunchResult::End;

constexpr const char* kTraining = "all";
constexpr int kLaunchSteps = 5;

// Runs steps of two collectives each. Calls `happens` between the two collectives.
template <class Happening>
void train_on_this_rank(const Happening& happens) {
  Ranks ranks = this_rank({group_of_all(kTraining)});
  const at::Tensor x = at::ones({64});
  for (int step = 1; step <= kLaunchSteps; ++step) {
    ranks.note_step(step);
    wait_for(start_all_reduce(x, kTraining));
    happens(ranks.rank(), step);
    wait_for(start_all_reduce(x, kTraining));
  }
}

[[noreturn]] void hang() {
  while (true) pause();
}

TEST_CASE("rank: killed in step 3", "[.rank]") {
  train_on_this_rank([](int rank, int step) {
    if (rank == 2 && step == 3) kill(getpid(), SIGKILL);
  });
}

TEST_CASE("if one of four ranks is killed, the error names that rank, and the other ranks end") {
  const auto start = std::chrono::steady_clock::now();
  const LaunchResult result = launch_test_case(4, "rank: killed in step 3");
  CHECK(result.end == End::kFailed);
  CHECK(result.culprit == 2);
  CHECK_THAT(result.message, StartsWith("rank 2 ended first, signal 9"));
  REQUIRE(result.ranks.size() == 4);
  CHECK(result.ranks[2].end == ChildEnd::kSignalled);
  CHECK(result.ranks[2].code == SIGKILL);
  CHECK(std::chrono::steady_clock::now() - start < kLongForRanks);
  for (const int other : {0, 1, 3}) {
    const ChildResult& rank = result.ranks[static_cast<std::size_t>(other)];
    CHECK((rank.end == ChildEnd::kSignalled || rank.code != 0));
  }
}

TEST_CASE("rank: throws in step 2", "[.rank]") {
  train_on_this_rank([](int rank, int step) {
    if (rank == 1 && step == 2) throw std::runtime_error("no more ink");
  });
}

TEST_CASE("a rank that fails on its own is named even if other ranks fail because of it") {
  const LaunchResult result = launch_test_case(3, "rank: throws in step 2");
  CHECK(result.end == End::kFailed);
  CHECK_THAT(result.message, StartsWith("rank 1 failed first"));
  CHECK_THAT(result.ranks[1].error_tail, Contains("no more ink"));
}

// A write to a closed connection must fail without killing the process, because Gloo may write to a
// rank that has ended.
TEST_CASE("rank: writes to a closed connection", "[.rank]") {
  const Ranks ranks = this_rank({});
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  close(ends[0]);
  CHECK(write(ends[1], "x", 1) == -1);
  CHECK(errno == EPIPE);
  close(ends[1]);
}

TEST_CASE("a write to a closed connection does not kill the rank") {
  CHECK(failure_of_ranks(1, "rank: writes to a closed connection") == "");
}

TEST_CASE("rank: exits in step 2", "[.rank]") {
  train_on_this_rank([](int rank, int step) {
    if (rank != 0 || step != 2) return;
    fputs("out of paper\n", stderr);
    _exit(7);
  });
}

TEST_CASE("the message contains the last line of stderr of the rank that ended first") {
  const LaunchResult result = launch_test_case(2, "rank: exits in step 2");
  CHECK(result.culprit == 0);
  CHECK(result.message == "rank 0 ended first, exit code 7: out of paper");
}

// Runs the test case until it exceeds its time limit. It is unknown how long ranks take to start,
// so this function repeats the run with longer limits.
LaunchResult run_until_told(int world, const std::string& test_case, const std::string& telling) {
  LaunchResult result;
  for (milliseconds limit = seconds(2); limit <= kLongForRanks; limit *= 4) {
    result = launch_test_case(world, test_case, limit);
    CHECK(result.end == End::kTimedOut);
    if (result.message.find(telling) != std::string::npos) break;
  }
  return result;
}

TEST_CASE("rank: hangs in step 3", "[.rank]") {
  train_on_this_rank([](int rank, int step) {
    if (rank == 1 && step == 3) hang();
  });
}

TEST_CASE("a hanging rank ends the job at the time limit, and the error names the rank") {
  const LaunchResult result = run_until_told(
      3, "rank: hangs in step 3",
      "rank 1 is behind: it has begun step 3 and issued 5 collectives, rank 0 has begun "
      "step 3 and issued 6 collectives");
  CHECK(result.culprit == 1);
  CHECK_THAT(result.message, Contains("step 3 and issued 5 collectives"));
  CHECK(result.ranks[1].end == ChildEnd::kTimedOut);
}

TEST_CASE("rank: rank 2 never joins", "[.rank]") {
  if (this_place().rank == 2) hang();
  train_on_this_rank([](int, int) {});
}

TEST_CASE("a rank that never joins is named at the time limit") {
  const LaunchResult result = run_until_told(3, "rank: rank 2 never joins",
                                             "rank 2 is behind: it has not joined the other ranks");
  CHECK(result.culprit == 2);
}

TEST_CASE("rank: ignores SIGTERM", "[.rank]") {
  signal(SIGTERM, SIG_IGN);
  train_on_this_rank([](int rank, int step) {
    if (rank == 0 && step == 1) _exit(3);
    if (step == 1) hang();
  });
}

TEST_CASE("ranks that ignore SIGTERM are killed") {
  const LaunchResult result = launch_test_case(2, "rank: ignores SIGTERM");
  CHECK_THAT(result.message, StartsWith("rank 0 ended first, exit code 3"));
  CHECK(result.ranks[1].code == SIGKILL);
}

TEST_CASE("the error for a missing program names the program") {
  Launcher launcher(2);
  const LaunchResult result =
      launcher.run([](int) { return std::vector<std::string>{"/no/such/program"}; }, kLongForRanks);
  CHECK(result.end == End::kFailed);
  CHECK_THAT(result.message, Contains("exit code 127: cannot start the child process"));
}

// Runs in a separate process, because a process never forgets a signal that has arrived.
TEST_CASE("launcher: gets a signal", "[.rank]") {
  const InterruptGuard interrupts;
  kill(getpid(), SIGINT);
  Launcher launcher(2);
  const LaunchResult result = launcher.run(
      [](int) { return command_of_test_case("rank: rank 2 never joins"); }, kLongForRanks);
  CHECK(result.end == End::kInterrupted);
  CHECK(result.ranks[1].end == ChildEnd::kInterrupted);
}

TEST_CASE("a signal to the launcher's process ends all ranks") {
  const ChildResult result =
      run_child(command_of_test_case("launcher: gets a signal"), kLongForRanks);
  CAPTURE(result.error_tail);
  CHECK(result.end == ChildEnd::kExited);
  CHECK(result.code == 0);
}

TEST_CASE("rank: program hashes must agree", "[.rank]") {
  Ranks ranks = this_rank({});
  ranks.agree("program", own_executable_sha256());
}

TEST_CASE("ranks whose binaries differ are refused") {
  const ScratchFolder scratch;
  const std::string other = scratch.file("other");
  std::filesystem::copy_file(own_executable(), other);
  std::ofstream(other, std::ios::app) << "one byte more";
  CHECK(failure_of_ranks(2, "rank: program hashes must agree") == "");
  Launcher launcher(2);
  const LaunchResult result = launcher.run(
      [&](int rank) {
        std::vector<std::string> command = command_of_test_case("rank: program hashes must agree");
        if (rank == 1) command[0] = other;
        return command;
      },
      kLongForRanks);
  CHECK(result.end == End::kFailed);
  for (const ChildResult& rank : result.ranks) {
    CHECK_THAT(rank.error_tail, Contains("ranks differ in program: rank 0 has"));
  }
}

std::uint16_t free_port() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  return c10d::TCPStore("127.0.0.1", options).getPort();
}

// Imitates a job of torchrun or srun on two machines with one rank each.
std::vector<LaunchResult> launch_apart(const std::string& test_case) {
  const std::uint16_t port = free_port();
  std::vector<LaunchResult> results(2);
  const auto launch = [&](int rank) {
    Launcher launcher(RankPlace{rank, 2, 0, "127.0.0.1", port, "", std::nullopt});
    results[static_cast<std::size_t>(rank)] =
        launcher.run([&](int) { return command_of_test_case(test_case); }, kLongForRanks);
  };
  std::thread other(launch, 1);
  launch(0);
  other.join();
  return results;
}

TEST_CASE("rank: no rank fails", "[.rank]") {
  train_on_this_rank([](int, int) {});
}
TEST_CASE("rank: rank 1 is killed", "[.rank]") {
  train_on_this_rank([](int rank, int step) {
    if (rank == 1 && step == 3) kill(getpid(), SIGKILL);
  });
}

TEST_CASE(
    "several launchers with one rank each form one job, and every launcher reports which rank "
    "ended first") {
  for (const LaunchResult& result : launch_apart("rank: no rank fails")) {
    CHECK(result.message == "");
    CHECK(result.end == End::kWell);
    CHECK(result.ranks.size() == 1);
  }
  for (const LaunchResult& result : launch_apart("rank: rank 1 is killed")) {
    CHECK(result.end == End::kFailed);
    CHECK_THAT(result.message, StartsWith("rank 1 ended first, signal 9"));
  }
}

TEST_CASE("one launcher can launch several runs in succession") {
  Launcher launcher(2);
  for (int run = 0; run < 2; ++run) {
    const LaunchResult result = launcher.run(
        [](int) { return command_of_test_case("rank: no rank fails"); }, kLongForRanks);
    CHECK(result.message == "");
  }
}

TEST_CASE("the error for a lost store contains the store's address") {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  RankPlace place;
  place.port = store->getPort();
  Ranks ranks(place, {});
  ranks.barrier("before the store is lost");
  store.reset();
  std::string message;
  try {
    ranks.barrier("after the store is lost");
  } catch (const RanksError& error) {
    message = error.what();
  }
  CHECK_THAT(message,
             StartsWith("rank 0 lost the store at 127.0.0.1:" + std::to_string(place.port)));
}

TEST_CASE("a job without ranks is refused") {
  CHECK_THROWS_WITH(Launcher(0), "a job needs at least 1 rank, not 0");
}

}  // namespace
}  // namespace rematch::testing
