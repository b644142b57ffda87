#include "harness/run/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kErrorTailBytes = 4096;
constexpr std::chrono::milliseconds kPollInterval{20};
constexpr std::chrono::seconds kGraceAfterSigterm{2};

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("cannot make a pipe");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_end(std::size_t index) {
    if (ends[index] >= 0) close(ends[index]);
    ends[index] = -1;
  }
  std::array<int, 2> ends{-1, -1};
};

// Between fork and exec only calls that are safe after a fork of a threaded process.
[[noreturn]] void become(char* const* arguments, int error_end, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(error_end, STDERR_FILENO);
  execv(arguments[0], arguments);
  constexpr char kMessage[] = "cannot start the child process\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  _exit(127);
}

// A running child: its group, its stderr, its end.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& argument : command) {
      arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw_errno("cannot start a child process");
    if (pid_ == 0) become(arguments.data(), pipe_.ends[1], parent);
    setpgid(pid_, pid_);  // both sides do it, so that it has happened whoever comes first
    pipe_.close_end(1);
  }
  ~Child() {
    if (ended_) return;
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal_number) const { kill(-pid_, signal_number); }

  // Reads what there is of stderr, for at most one interval; then: has it ended?
  bool poll_once() {
    pollfd readable{pipe_.ends[0], POLLIN, 0};
    if (readable.fd < 0) {
      usleep(1000);
    } else if (poll(&readable, 1, static_cast<int>(kPollInterval.count())) > 0) {
      read_some();
    }
    const pid_t reaped = wait4(pid_, &status_, WNOHANG, &usage_);
    if (reaped != pid_) return false;
    ended_ = true;
    while (pipe_.ends[0] >= 0 && read_some()) {
    }
    return true;
  }

  int status() const { return status_; }
  Bytes peak_resident() const { return Bytes{static_cast<std::int64_t>(usage_.ru_maxrss) * 1024}; }
  const std::string& error_tail() const { return tail_; }

 private:
  // False at the end of the stream, or when nothing is there after the child's end.
  bool read_some() {
    pollfd readable{pipe_.ends[0], POLLIN, 0};
    if (poll(&readable, 1, 0) <= 0) return false;
    std::array<char, 4096> buffer;
    const ssize_t count = read(pipe_.ends[0], buffer.data(), buffer.size());
    if (count <= 0) {
      pipe_.close_end(0);
      return false;
    }
    tail_.append(buffer.data(), static_cast<std::size_t>(count));
    if (tail_.size() > kErrorTailBytes) tail_.erase(0, tail_.size() - kErrorTailBytes);
    return true;
  }

  Pipe pipe_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
  rusage usage_{};
  std::string tail_;
};

// SIGTERM, then SIGKILL; returns when it is gone.
void end_child(Child& child) {
  child.send(SIGTERM);
  const Clock::time_point kill_at = Clock::now() + kGraceAfterSigterm;
  while (!child.poll_once()) {
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

ChildResult run_child(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  const Clock::time_point start = Clock::now();
  const MachineMemory before = machine_memory();
  Child child(command);
  ChildResult result;
  while (!child.poll_once()) {
    const bool interrupted = InterruptGuard::signal().has_value();
    if (!interrupted && Clock::now() - start < limit) continue;
    end_child(child);
    result.end = interrupted ? ChildEnd::kInterrupted : ChildEnd::kTimedOut;
    break;
  }
  if (result.end == ChildEnd::kExited) {
    const bool signalled = WIFSIGNALED(child.status());
    result.end = signalled ? ChildEnd::kSignalled : ChildEnd::kExited;
    result.code = signalled ? WTERMSIG(child.status()) : WEXITSTATUS(child.status());
  }
  result.error_tail = child.error_tail();
  result.peak_resident = child.peak_resident();
  result.elapsed = Clock::now() - start;
  if (result.end == ChildEnd::kSignalled && result.code == SIGKILL) {
    result.memory_was_short = is_memory_short(before, machine_memory(), result.peak_resident);
  }
  return result;
}

std::string own_executable() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length < 0) throw_errno("cannot find this program's own file");
  return {path.data(), static_cast<std::size_t>(length)};
}

}  // namespace rematch
