// Tests the launcher, which is the program that a user starts. It must load LibTorch only for
// commands that need LibTorch.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "harness/process/interrupt.h"
#include "tests/harness/cli/command_line.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

// Returns the processor time of all ended child processes in seconds.
double time_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Loading LibTorch takes 0.4 s, so these commands cannot have loaded it.
TEST_CASE("help and commands about files take under 0.1 s of processor time") {
  for (const char* arguments :
       {"--help", "run --help", "search --help", "list", "--version", "run --model wan_small -h"}) {
    CAPTURE(arguments);
    const double before = time_of_children();
    CHECK(rematch(arguments).code == 0);
    CHECK(time_of_children() - before < 0.1);
  }
}

TEST_CASE("after a double dash or an equals sign, --help is an argument, not a request for help") {
  check_usage_error("describe --model=--help", "unknown flag");
  check_usage_error("describe -- --help", "describe takes a model and a policy");
}

// The launcher starts the program with LibTorch. The signal stays pending until main() of that
// program begins.
TEST_CASE("an interrupt that arrives before main() ends the command with a message") {
  const ScratchFolder scratch;
  const std::string messages = scratch.file("messages.txt");
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    hold_interrupts();
    kill(getpid(), SIGINT);
    if (std::freopen(messages.c_str(), "w", stderr) == nullptr) _exit(1);
    execl(binary(), binary(), "doctor", nullptr);
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGINT);
  CHECK(text_of(messages) == "rematch: interrupted; nothing is kept\n");
}

}  // namespace
}  // namespace rematch::testing
