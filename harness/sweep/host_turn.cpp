#include "harness/sweep/host_turn.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "policies/base/file.h"

namespace rematch {
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
