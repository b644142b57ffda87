#include "harness/sweep/sweep_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "policies/base/file.h"

namespace rematch {
namespace {

constexpr std::size_t kClaimReadBytes = 4096;
constexpr mode_t kClaimMode = 0666;

[[noreturn]] void refuse(const std::string& what, const std::string& path, int error) {
  throw FileError("cannot " + what + " '" + path + "': " + std::strerror(error));
}

// Closes the descriptor on every exit path. Callers that need the result of close() call it
// themselves.
class ClaimDescriptor {
 public:
  ClaimDescriptor(const std::string& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, kClaimMode)) {}
  ~ClaimDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  ClaimDescriptor(const ClaimDescriptor&) = delete;
  ClaimDescriptor& operator=(const ClaimDescriptor&) = delete;

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

bool is_gone(int error) { return error == ENOENT || error == ESTALE; }

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator entry(folder, error); !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) throw FileError("cannot read folder '" + folder + "': " + error.message());
  return names;
}

bool exists(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return true;
  if (!is_gone(errno)) refuse("look at", path, errno);
  return false;
}

// `what` names the operation in the error message.
void write_to(const ClaimDescriptor& file, const char* what, const std::string& path,
              std::string_view text) {
  const ssize_t count = ::write(file.get(), text.data(), text.size());
  if (count < 0) refuse(what, path, errno);
  if (static_cast<std::size_t>(count) != text.size()) refuse(what, path, ENOSPC);
}

void write_once(ClaimDescriptor& file, const std::string& path, std::string_view text) {
  write_to(file, "write", path, text);
  if (!file.close()) refuse("write", path, errno);
}

// Writes the claim to an unnamed file, then links the file to the claim's name, so that the claim
// appears with its whole text. Returns false if the name is taken. Returns nothing if this file
// system has no unnamed files, as on NFS.
std::optional<bool> link_named_claim(const std::string& folder, const std::string& path,
                                     std::string_view text) {
  ClaimDescriptor file(folder, O_WRONLY | O_TMPFILE);
  if (!file.is_open()) return std::nullopt;
  write_to(file, "make", path, text);
  const std::string open_file = "/proc/self/fd/" + std::to_string(file.get());
  if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    return true;
  }
  if (errno == EEXIST) return false;
  return std::nullopt;
}

}  // namespace

std::vector<std::string> DiskSweepFolder::claims() { return names_in(folder_ + "/claims"); }
std::vector<std::string> DiskSweepFolder::reports() { return names_in(folder_ + "/reports"); }

std::optional<std::string> DiskSweepFolder::read_claim(const std::string& name) {
  const std::string path = claim_path(name);
  const ClaimDescriptor file(path, O_RDONLY);
  if (!file.is_open() && is_gone(errno)) return std::nullopt;
  if (!file.is_open()) refuse("read", path, errno);
  std::string text;
  std::array<char, kClaimReadBytes> buffer;
  while (true) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && is_gone(errno)) return std::nullopt;
    if (count < 0) refuse("read", path, errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

// Writes the claim and its text in one step if possible. In two steps, a worker may be killed
// before it writes the text. Other workers then do not know who made the claim, and must wait until
// it is stale.
bool DiskSweepFolder::create_claim(const std::string& name, std::string_view text) {
  const std::string path = claim_path(name);
  if (const auto made = link_named_claim(folder_ + "/claims", path, text)) return *made;
  ClaimDescriptor file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.is_open() && errno == EEXIST) return false;
  if (!file.is_open()) refuse("make", path, errno);
  write_once(file, path, text);
  return true;
}

// Uses a single write, so that a reader sees all of the text or none of it, unless the disk fills
// up in the middle.
void DiskSweepFolder::append_to_claim(const std::string& name, std::string_view text) {
  const std::string path = claim_path(name);
  ClaimDescriptor file(path, O_WRONLY | O_APPEND);
  if (!file.is_open()) refuse("write", path, errno);
  write_once(file, path, text);
}

bool DiskSweepFolder::has_claim(const std::string& name) { return exists(claim_path(name)); }
bool DiskSweepFolder::has_report(const std::string& name) { return exists(report_path(name)); }

bool DiskSweepFolder::link_report(const std::string& path, const std::string& name) {
  if (::link(path.c_str(), report_path(name).c_str()) == 0) return true;
  if (errno != EEXIST) refuse("link to '" + path + "' as", report_path(name), errno);
  return false;
}

}  // namespace rematch
