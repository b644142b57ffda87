#include "harness/process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>

#include "harness/process/interrupt.h"
#include "policies/base/file.h"
#include "policies/base/hashing.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCannotStart = 127;
constexpr std::size_t kErrorTailBytes = 4096;
constexpr std::chrono::milliseconds kPollInterval{20};
// A signal that arrives just before a wait begins is noticed after at most this time.
constexpr std::chrono::milliseconds kLongestWait{200};
constexpr std::chrono::seconds kGraceAfterSigterm{2};

// Everything that the child needs between its start and exec, prepared by the parent. Until exec
// the child shares the parent's memory and the parent waits, because copying the page tables of a
// process with LibTorch would be slow.
struct ChildStart {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int error_file = -1;
  pid_t parent = -1;
  sigset_t signals;  // signals blocked before the start
};

// Makes only system calls. The child starts with the parent's signal handlers, so signals stay
// blocked until the handlers are reset.
int become_child(void* argument) {
  const auto& start = *static_cast<const ChildStart*>(argument);
  setpgid(0, 0);  // its own group, so that signals from the terminal reach only the parent
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != start.parent) _exit(kCannotStart);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &start.signals, nullptr);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(start.error_file >= 0 ? start.error_file : null, STDERR_FILENO);
  execve(start.arguments[0], start.arguments.data(), start.environment.data());
  constexpr char kMessage[] = "cannot start the child process\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  _exit(kCannotStart);
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Returns this process's variables, overridden by `settings`.
std::vector<char*> environment_with(const std::vector<std::string>& settings) {
  std::vector<char*> all = pointers_to(settings);
  all.pop_back();
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view variable = *one;
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    const auto sets_it = [name](const std::string& setting) { return setting.starts_with(name); };
    if (std::ranges::none_of(settings, sets_it)) all.push_back(*one);
  }
  all.push_back(nullptr);
  return all;
}

// Returns a negative number and sets errno if the child could not be started.
pid_t clone_into(ChildStart& start) {
  constexpr std::size_t kStackBytes = std::size_t{64} << 10;
  const auto stack = std::make_unique<std::max_align_t[]>(kStackBytes / sizeof(std::max_align_t));
  char* const top = reinterpret_cast<char*>(stack.get()) + kStackBytes;
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &start.signals);
  const pid_t pid = clone(become_child, top, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
  const int error = errno;
  sigprocmask(SIG_SETMASK, &start.signals, nullptr);
  errno = error;
  return pid;
}

}  // namespace

Child::Child(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  }
  error_end_ = ends[0];
  start(command, environment, ends[1]);
}

Child::Child(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             const std::string& error_file) {
  const int file = error_file.empty()
                       ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
                       : open(error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  start(command, environment, file);
}

// Closes `error_file`, which belongs to the child. If `error_file` is negative, the child's stderr
// is discarded.
void Child::start(const std::vector<std::string>& command,
                  const std::vector<std::string>& environment, int error_file) {
  ChildStart start{pointers_to(command), environment_with(environment), error_file, getpid(), {}};
  pid_ = clone_into(start);
  const int error = errno;
  if (error_file >= 0) close(error_file);
  if (pid_ < 0) {
    if (error_end_ >= 0) close(error_end_);
    throw std::system_error(error, std::generic_category(), "cannot start a child process");
  }
  pid_file_ =
      static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));  // -1 if the system lacks pidfd_open
}

Child::~Child() {
  if (!ended_) {
    kill(-pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  for (const int file : {error_end_, pid_file_}) {
    if (file >= 0) close(file);
  }
}

void Child::send(int signal_number) const {
  if (!ended_) kill(-pid_, signal_number);
}

void Child::stop(std::chrono::milliseconds grace) {
  send(SIGTERM);
  send(SIGCONT);  // a stopped child would not see SIGTERM
  const Clock::time_point kill_at = Clock::now() + grace;
  while (!poll_once(kPollInterval)) {
    if (Clock::now() >= kill_at) send(SIGKILL);
  }
}

bool Child::poll_once(std::chrono::milliseconds longest) {
  if (ended_) return true;
  const auto wait = std::clamp(longest, std::chrono::milliseconds(0), kLongestWait);
  std::array<pollfd, 2> files = {{{error_end_, POLLIN, 0}, {pid_file_, POLLIN, 0}}};
  if (error_end_ < 0 && pid_file_ < 0) {
    std::this_thread::sleep_for(std::min(wait, kPollInterval));
  } else if (poll(files.data(), files.size(), static_cast<int>(wait.count())) > 0) {
    read_some();
  }
  if (wait4(pid_, &status_, WNOHANG, &usage_) != pid_) return false;
  ended_ = true;
  while (read_some()) {
  }
  return true;
}

// Returns false at the end of the stream, or if there is nothing to read yet.
bool Child::read_some() {
  pollfd readable{error_end_, POLLIN, 0};
  if (error_end_ < 0 || poll(&readable, 1, 0) <= 0) return false;
  std::array<char, 4096> buffer;
  const ssize_t count = read(error_end_, buffer.data(), buffer.size());
  if (count <= 0) {
    close(error_end_);
    error_end_ = -1;
    return false;
  }
  tail_.append(buffer.data(), static_cast<std::size_t>(count));
  if (tail_.size() > kErrorTailBytes) tail_.erase(0, tail_.size() - kErrorTailBytes);
  return true;
}

ChildResult run_child(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  const Clock::time_point start = Clock::now();
  const MachineMemory before = machine_memory();
  Child child(command);
  ChildResult result;
  while (!child.poll_once(kPollInterval)) {
    const bool interrupted = InterruptGuard::signal().has_value();
    if (!interrupted && Clock::now() - start < limit) continue;
    child.stop(kGraceAfterSigterm);
    result.end = interrupted ? ChildEnd::kInterrupted : ChildEnd::kTimedOut;
    break;
  }
  result.elapsed = Clock::now() - start;
  take_end(child, before, result);
  return result;
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

bool is_memory_short(const MachineMemory& before, const MachineMemory& after, Bytes peak_resident) {
  // A daemon or scheduler may have killed the child before memory was used up. This is assumed if
  // the child held at least 1 / kSuspectPart of the total memory.
  constexpr std::int64_t kSuspectPart = 2;
  if (after.oom_kills && before.oom_kills && *after.oom_kills > *before.oom_kills) return true;
  return !after.total || peak_resident.count >= after.total->count / kSuspectPart;
}

std::string own_executable() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string own_executable_sha256() { return sha256_hex(read_text_file("/proc/self/exe")); }

}  // namespace rematch
