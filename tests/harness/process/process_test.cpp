#include "harness/process/process.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "harness/process/interrupt.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ChildResult run_shell(const std::string& script, milliseconds limit = seconds(60)) {
  return run_child({"/bin/sh", "-c", script}, limit);
}

TEST_CASE("a child's exit code and the end of its stderr are returned") {
  const ChildResult result = run_shell("echo first >&2; echo last >&2; exit 7");
  CHECK(result.end == ChildEnd::kExited);
  CHECK(result.code == 7);
  CHECK(result.error_tail == "first\nlast\n");
  CHECK(result.peak_resident.count > 0);
}

TEST_CASE("variables given for a child replace the variables of this process") {
  Child child({"/bin/sh", "-c", "echo $HOME $REMATCH_TEST $PATH >&2"},
              {"HOME=/elsewhere", "REMATCH_TEST=7"});
  while (!child.poll_once(milliseconds(20))) {
  }
  CHECK(child.error_tail() == "/elsewhere 7 " + std::string(getenv("PATH")) + "\n");
}

TEST_CASE("only the end of a long stderr is kept") {
  const ChildResult result = run_shell(
      "i=0; while [ $i -lt 3000 ]; do echo line$i >&2; "
      "i=$((i+1)); done");
  CHECK(result.code == 0);
  CHECK(result.error_tail.size() == 4096);
  CHECK_THAT(result.error_tail, Catch::EndsWith("line2999\n"));
}

TEST_CASE("the signal that ended a child is reported") {
  const ChildResult result = run_shell("kill -SEGV $$");
  CHECK(result.end == ChildEnd::kSignalled);
  CHECK(result.code == SIGSEGV);
}

TEST_CASE(
    "a child killed despite free memory is distinguished from a child that ran out of memory") {
  const ChildResult killed = run_shell("kill -KILL $$");
  CHECK(killed.end == ChildEnd::kSignalled);
  CHECK(killed.code == SIGKILL);
  CHECK_FALSE(killed.memory_was_short);
}

// The child starts a grandchild that writes to the same stderr. If only the child were killed, the
// grandchild would survive.
TEST_CASE("a child that exceeds its time limit is ended with its process group") {
  const testing::ScratchFolder scratch;
  const std::string pid_file = scratch.file("pid");
  const ChildResult result =
      run_shell("sleep 1000 & echo $! > " + pid_file + "; wait", milliseconds(500));
  CHECK(result.end == ChildEnd::kTimedOut);
  CHECK(result.elapsed < seconds(10));
  pid_t grandchild = 0;
  REQUIRE(std::ifstream(pid_file) >> grandchild);
  for (int attempt = 0; attempt < 100 && kill(grandchild, 0) == 0; ++attempt) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  CHECK(kill(grandchild, 0) == -1);
}

TEST_CASE("a child that ignores SIGTERM is killed") {
  const ChildResult result =
      run_shell("trap '' TERM; while true; do sleep 0.05; done", milliseconds(200));
  CHECK(result.end == ChildEnd::kTimedOut);
  CHECK(result.elapsed < seconds(20));
}

TEST_CASE(
    "a signal to this process ends the child and is recorded, but does not end this process") {
  const InterruptGuard interrupts;
  std::thread sender([] {
    std::this_thread::sleep_for(milliseconds(300));
    kill(getpid(), SIGINT);
  });
  const ChildResult result = run_shell("sleep 1000");
  sender.join();
  CHECK(result.end == ChildEnd::kInterrupted);
  CHECK(InterruptGuard::signal() == SIGINT);
}

TEST_CASE("a nested guard keeps a signal that arrived before the nested guard was created") {
  const InterruptGuard outer;
  raise(SIGINT);
  {
    const InterruptGuard inner;
    CHECK(InterruptGuard::signal() == SIGINT);
  }
  raise(SIGTERM);  // the outer guard still catches the signal
  CHECK(InterruptGuard::signal() == SIGINT);
}

TEST_CASE(
    "memory is short if the system killed a process to free memory, or if the child held half of "
    "all memory") {
  const auto machine = [](std::int64_t total, std::int64_t oom_kills) {
    MachineMemory memory;
    memory.total = Bytes{total};
    memory.oom_kills = oom_kills;
    return memory;
  };
  CHECK_FALSE(is_memory_short(machine(100, 3), machine(100, 3), Bytes{49}));
  CHECK(is_memory_short(machine(100, 3), machine(100, 4), Bytes{1}));
  CHECK(is_memory_short(machine(100, 3), machine(100, 3), Bytes{50}));
  CHECK(is_memory_short(MachineMemory(), MachineMemory(), Bytes{1}));
}

TEST_CASE("a held interrupt stays pending until it is read, and can be read only once") {
  hold_interrupts();
  REQUIRE(raise(SIGTERM) == 0);
  CHECK(take_held_interrupt() == SIGTERM);
  CHECK_FALSE(take_held_interrupt().has_value());
}

}  // namespace
}  // namespace rematch
