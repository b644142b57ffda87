#include "harness/sweep/this_worker.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "policies/base/file.h"

namespace rematch {
namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::string first_line(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string host_name() {
  const std::string node = variable("SLURMD_NODENAME");
  if (!node.empty()) return node;
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// Returns ids of the machine's boot and of the process namespace, or "" if they are unknown.
// Process ids are comparable only between processes for which this text is equal.
std::string machine_name() {
  std::error_code none;
  const auto space = std::filesystem::read_symlink("/proc/self/ns/pid", none);
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  return none || boot.empty() ? "" : boot + " " + space.string();
}

struct ProcessState {
  char state = 0;
  std::int64_t born = 0;
};

// Reads /proc/PID/stat. The process name, in brackets, may contain any characters. After the name
// come the state and, 19 fields later, the start time.
std::optional<ProcessState> process_state(std::int64_t pid) {
  constexpr int kFieldsToStart = 19;
  const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(bracket + 1));
  ProcessState process;
  std::string skipped;
  fields >> process.state;
  for (int field = 1; field < kFieldsToStart; ++field) fields >> skipped;
  fields >> process.born;
  return fields ? std::optional(process) : std::nullopt;
}

class HostLock {
 public:
  // Opens an existing file before it tries to create one. In a world-writable folder, the system
  // refuses O_CREAT on another user's file.
  explicit HostLock(const std::string& file) : fd_(::open(file.c_str(), O_RDWR | O_CLOEXEC)) {
    constexpr mode_t kForAll = 0666;
    if (fd_ < 0) fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kForAll);
    if (fd_ < 0) throw FileError("cannot open '" + file + "': " + std::strerror(errno));
    // Sets the mode regardless of the umask. Fails if another user owns the file; that user has
    // already set the mode.
    ::fchmod(fd_, kForAll);
  }
  ~HostLock() { ::close(fd_); }
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;

  bool try_lock() const { return ::flock(fd_, LOCK_EX | LOCK_NB) == 0; }

 private:
  int fd_;
};

}  // namespace

ClaimHolder this_worker(const std::string& plan) {
  ClaimHolder holder;
  holder.plan = plan;
  holder.host = host_name();
  holder.machine = machine_name();
  holder.pid = getpid();
  if (const auto process = process_state(holder.pid)) holder.born = process->born;
  const std::string job = variable("SLURM_ARRAY_JOB_ID");
  const std::string task = variable("SLURM_ARRAY_TASK_ID");
  if (!job.empty() && !task.empty()) holder.task = job + "_" + task;
  const std::string start = variable("SLURM_RESTART_COUNT");
  std::from_chars(start.data(), start.data() + start.size(), holder.task_start);
  return holder;
}

bool is_process_gone(const ClaimHolder& holder) {
  static const std::string machine = machine_name();
  if (machine.empty() || holder.machine != machine || holder.born == 0) return false;
  const auto process = process_state(holder.pid);
  if (!process) return true;
  // A zombie counts as ended. Containers without an init process do not reap zombies.
  return process->state == 'Z' || process->born != holder.born;
}

std::chrono::nanoseconds monotonic_now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

StopRequest stop_request_by_signal() {
  const std::optional<int> noted = InterruptGuard::signal();
  if (!noted) return StopRequest::kNone;
  return *noted == SIGUSR1 ? StopRequest::kDeadline : StopRequest::kStop;
}

void sleep_until_told(std::chrono::milliseconds length) {
  constexpr std::chrono::milliseconds kSlice{50};
  const auto end = monotonic_now() + length;
  while (stop_request_by_signal() == StopRequest::kNone && monotonic_now() < end) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kSlice, end - monotonic_now()));
  }
}

std::shared_ptr<void> take_host_turn(const std::string& file) {
  auto lock = std::make_shared<HostLock>(file);
  return lock->try_lock() ? lock : nullptr;
}

}  // namespace rematch
