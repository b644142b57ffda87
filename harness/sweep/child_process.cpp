#include "harness/sweep/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <thread>

#include "policies/base/file.h"

namespace rematch {
namespace {

constexpr int kCannotStart = 127;
// A run needs two seconds for its own children; schedulers kill after five to thirty.
constexpr std::chrono::seconds kGraceToStop{4};
constexpr std::chrono::milliseconds kWithoutPidFile{20};
// A signal that comes just before the wait begins is seen after so long.
constexpr std::chrono::milliseconds kLongestWait{200};

// Everything the child needs between its start and exec, made before: the child runs on the
// parent's memory, which waits for it, since copying the page tables of a process with LibTorch
// costs more than all else that a worker does for a comparison.
struct ChildStart {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int error_file = -1;
  pid_t parent = -1;
  sigset_t signals;  // that were blocked before
};

// Only system calls. Its handlers are the parent's until they are reset, so signals are blocked.
int become_child(void* argument) {
  const auto& start = *static_cast<const ChildStart*>(argument);
  setpgid(0, 0);  // the terminal's signals are for the worker
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != start.parent) _exit(kCannotStart);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &start.signals, nullptr);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(start.error_file >= 0 ? start.error_file : null, STDERR_FILENO);
  execve(start.arguments[0], start.arguments.data(), start.environment.data());
  constexpr char kMessage[] = "rematch: cannot start the program\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  _exit(kCannotStart);
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// This process' variables with those settings in front: the first of a name is found.
std::vector<char*> environment_with(const std::vector<std::string>& settings) {
  std::vector<char*> all = pointers_to(settings);
  all.pop_back();
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view variable = *one;
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    const bool is_set =
        std::any_of(settings.begin(), settings.end(),
                    [name](const std::string& setting) { return setting.starts_with(name); });
    if (!is_set) all.push_back(*one);
  }
  all.push_back(nullptr);
  return all;
}

// An error number is kept in errno. Below zero: it could not be started.
pid_t start_child(ChildStart& start) {
  constexpr std::size_t kStackBytes = std::size_t{64} << 10;
  alignas(16) static std::array<char, kStackBytes> stack;
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &start.signals);
  const pid_t pid =
      clone(become_child, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
  const int error = errno;
  sigprocmask(SIG_SETMASK, &start.signals, nullptr);
  errno = error;
  return pid;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const std::string& error_file,
                           const std::vector<std::string>& environment) {
  ChildStart start{pointers_to(command), environment_with(environment), -1, getpid(), {}};
  start.error_file = error_file.empty() ? STDERR_FILENO
                                        : open(error_file.c_str(),
                                               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  pid_ = start_child(start);
  const int error = errno;
  if (!error_file.empty() && start.error_file >= 0) close(start.error_file);
  if (pid_ < 0) throw std::system_error(error, std::generic_category(), "cannot start a child");
  pid_file_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));  // -1 on an older system
}

ChildProcess::~ChildProcess() {
  if (!has_ended_) {
    kill(-pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (pid_file_ >= 0) close(pid_file_);
}

bool ChildProcess::wait_for(std::chrono::milliseconds longest) {
  if (has_ended_) return true;
  const auto wait = std::clamp(longest, std::chrono::milliseconds(0), kLongestWait);
  if (pid_file_ >= 0) {
    pollfd ended{pid_file_, POLLIN, 0};
    poll(&ended, 1, static_cast<int>(wait.count()));
  } else {
    std::this_thread::sleep_for(std::min(wait, kWithoutPidFile));
  }
  has_ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return has_ended_;
}

void ChildProcess::send(int signal_number) const {
  if (!has_ended_) kill(pid_, signal_number);
}

void ChildProcess::stop() {
  send(SIGTERM);
  send(SIGCONT);  // one that was stopped would not see it
  const auto kill_at = std::chrono::steady_clock::now() + kGraceToStop;
  while (!wait_for(kLongestWait)) {
    if (std::chrono::steady_clock::now() >= kill_at) kill(-pid_, SIGKILL);
  }
}

namespace {

constexpr mode_t kForAll = 0666;

class HostLock {
 public:
  // Opened as it is before it is made: in a folder of everybody's, the system refuses O_CREAT on a
  // file of another user.
  explicit HostLock(const std::string& file) : fd_(::open(file.c_str(), O_RDWR | O_CLOEXEC)) {
    if (fd_ < 0) fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kForAll);
    if (fd_ < 0) throw FileError("cannot open '" + file + "': " + std::strerror(errno));
    ::fchmod(fd_, kForAll);  // whatever the mask; refused for another user's, which has it
  }
  ~HostLock() { ::close(fd_); }
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;

  bool try_lock() const { return ::flock(fd_, LOCK_EX | LOCK_NB) == 0; }

 private:
  int fd_;
};

}  // namespace

std::shared_ptr<void> take_host_turn(const std::string& file) {
  auto lock = std::make_shared<HostLock>(file);
  if (!lock->try_lock()) return nullptr;
  return lock;
}

}  // namespace rematch
