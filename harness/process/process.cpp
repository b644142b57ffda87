#include "harness/process/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <system_error>

#include "harness/process/child.h"
#include "harness/sweep/interrupt.h"
#include "policies/base/file.h"
#include "policies/base/hashing.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollInterval{20};
constexpr std::chrono::seconds kGraceAfterSigterm{2};

// SIGTERM, then SIGKILL; returns when it is gone.
void end_child(Child& child) {
  child.send(SIGTERM);
  const Clock::time_point kill_at = Clock::now() + kGraceAfterSigterm;
  while (!child.poll_once(kPollInterval)) {
    if (Clock::now() >= kill_at) child.send(SIGKILL);
  }
}

// Daemons that kill before the system has to, and schedulers that poll, act below the limit: they
// may have killed a child that held this part of it, one in so many.
constexpr std::int64_t kSuspectPart = 2;

}  // namespace

bool is_memory_short(const MachineMemory& before, const MachineMemory& after, Bytes peak_resident) {
  if (after.oom_kills && before.oom_kills && *after.oom_kills > *before.oom_kills) return true;
  return !after.total || peak_resident.count >= after.total->count / kSuspectPart;
}

void take_end(const Child& child, const MachineMemory& before, ChildResult& result) {
  if (result.end == ChildEnd::kExited) {
    const bool signalled = WIFSIGNALED(child.status());
    result.end = signalled ? ChildEnd::kSignalled : ChildEnd::kExited;
    result.code = signalled ? WTERMSIG(child.status()) : WEXITSTATUS(child.status());
  }
  result.error_tail = child.error_tail();
  result.peak_resident = child.peak_resident();
  if (result.end == ChildEnd::kSignalled && result.code == SIGKILL) {
    result.memory_was_short = is_memory_short(before, machine_memory(), result.peak_resident);
  }
}

ChildResult run_child(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  const Clock::time_point start = Clock::now();
  const MachineMemory before = machine_memory();
  Child child(command);
  ChildResult result;
  while (!child.poll_once(kPollInterval)) {
    const bool interrupted = InterruptGuard::signal().has_value();
    if (!interrupted && Clock::now() - start < limit) continue;
    end_child(child);
    result.end = interrupted ? ChildEnd::kInterrupted : ChildEnd::kTimedOut;
    break;
  }
  result.elapsed = Clock::now() - start;
  take_end(child, before, result);
  return result;
}

std::string own_executable() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot find this program's own file");
  }
  return {path.data(), static_cast<std::size_t>(length)};
}

std::string own_executable_sha256() { return sha256_hex(read_text_file("/proc/self/exe")); }

}  // namespace rematch
