#include "harness/sweep/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <thread>

namespace rematch {
namespace {

constexpr int kCannotStart = 127;
// A run needs two seconds for its own children; schedulers kill after five to thirty.
constexpr std::chrono::seconds kGraceToStop{4};
constexpr std::chrono::milliseconds kWithoutPidFile{20};
// A signal that comes just before the wait begins is seen after so long.
constexpr std::chrono::milliseconds kLongestWait{200};

// Between fork and exec only calls that are safe there; this process has one thread.
[[noreturn]] void become_child(char* const* arguments, int error_file, pid_t parent) {
  setpgid(0, 0);  // the terminal's signals are for the worker
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotStart);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) signal(number, SIG_DFL);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(error_file >= 0 ? error_file : null, STDERR_FILENO);
  execv(arguments[0], arguments);
  constexpr char kMessage[] = "rematch: cannot start the program\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  _exit(kCannotStart);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const std::string& error_file,
                           const std::vector<std::string>& environment) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const int errors = error_file.empty() ? STDERR_FILENO
                                        : open(error_file.c_str(),
                                               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    for (const std::string& setting : environment) putenv(const_cast<char*>(setting.c_str()));
    become_child(arguments.data(), errors, parent);
  }
  const int error = errno;
  if (!error_file.empty() && errors >= 0) close(errors);
  if (pid_ < 0) throw std::system_error(error, std::generic_category(), "cannot start a child");
  setpgid(pid_, pid_);  // both sides do it, so that it has happened whoever comes first
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

}  // namespace rematch
