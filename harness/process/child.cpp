#include "harness/process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <thread>

namespace rematch {
namespace {

constexpr std::size_t kErrorTailBytes = 4096;
constexpr std::chrono::milliseconds kWithoutStderr{1};

std::vector<char*> argument_pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// This process' variables, those of `settings` in the place of what they were.
std::vector<char*> variables_with(const std::vector<std::string>& settings) {
  std::vector<char*> all = argument_pointers(settings);
  all.pop_back();
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view variable = *one;
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    if (std::ranges::none_of(
            settings, [name](const std::string& setting) { return setting.starts_with(name); })) {
      all.push_back(*one);
    }
  }
  all.push_back(nullptr);
  return all;
}

// Between fork and exec only calls that are safe after a fork of a threaded process.
[[noreturn]] void become(char* const* arguments, char* const* environment, int error_end,
                         pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(error_end, STDERR_FILENO);
  execve(arguments[0], arguments, environment);
  constexpr char kMessage[] = "cannot start the child process\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  _exit(127);
}

}  // namespace

Child::Child(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  const std::vector<char*> arguments = argument_pointers(command);
  const std::vector<char*> variables = variables_with(environment);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  }
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(arguments.data(), variables.data(), ends[1], parent);
  const int error = errno;
  close(ends[1]);
  error_end_ = ends[0];
  if (pid_ < 0) {
    close(error_end_);
    throw std::system_error(error, std::generic_category(), "cannot start a child process");
  }
  setpgid(pid_, pid_);  // both sides do it, so that it has happened whoever comes first
}

Child::~Child() {
  if (!ended_) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (error_end_ >= 0) close(error_end_);
}

void Child::send(int signal_number) const {
  if (!ended_) kill(-pid_, signal_number);
}

bool Child::poll_once(std::chrono::milliseconds longest) {
  if (ended_) return true;
  pollfd readable{error_end_, POLLIN, 0};
  if (readable.fd < 0) {
    std::this_thread::sleep_for(std::min(longest, kWithoutStderr));
  } else if (poll(&readable, 1, static_cast<int>(longest.count())) > 0) {
    read_some();
  }
  const pid_t reaped = wait4(pid_, &status_, WNOHANG, &usage_);
  if (reaped != pid_) return false;
  ended_ = true;
  while (error_end_ >= 0 && read_some()) {
  }
  return true;
}

// False at the end of the stream, or when nothing is there.
bool Child::read_some() {
  pollfd readable{error_end_, POLLIN, 0};
  if (poll(&readable, 1, 0) <= 0) return false;
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

}  // namespace rematch
