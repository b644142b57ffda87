#include "policies/base/file.h"
#include "policies/base/json.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace rematch {
namespace {

constexpr std::size_t kReadBytes = 1 << 16;
constexpr int kTemporaryNames = 100;

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, mode_t mode = 0)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // Returns false if closing failed. A full disk may be reported only here, and the destructor
  // cannot report it.
  bool close() {
    const int result = ::close(fd_);
    fd_ = -1;
    return result == 0;
  }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
  throw FileError("cannot " + what + " '" + path + "': " + std::strerror(error));
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Resolves symbolic links, so that writing replaces the file to which a link points and not the
// link.
std::string follow_links(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real ? std::string(real.get()) : path;
}

void write_directly(const std::string& path, std::string_view text) {
  Descriptor file(path, O_WRONLY);
  if (!file.is_open() || !write_all(file.get(), text) || !file.close()) fail("write", path, errno);
}

std::string temporary_name(const std::string& target, int attempt) {
  return target + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(attempt);
}

// Writes a named temporary file next to the target and renames it. Used on file systems without
// unnamed files (O_TMPFILE).
void write_beside(const std::string& target, std::string_view text) {
  for (int attempt = 0; attempt < kTemporaryNames; ++attempt) {
    const std::string path = temporary_name(target, attempt);
    Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL, mode_t{0666});
    if (!file.is_open() && errno == EEXIST) continue;
    if (file.is_open() && write_all(file.get(), text) && ::fsync(file.get()) == 0 && file.close() &&
        ::rename(path.c_str(), target.c_str()) == 0) {
      return;
    }
    const int error = errno;
    ::unlink(path.c_str());
    fail("write", target, error);
  }
  fail("write", target, EEXIST);
}

// Links an open unnamed file at `path`. Returns an errno value, or 0 on success.
int link_open_file(int fd, const std::string& path) {
  const std::string open_file = "/proc/self/fd/" + std::to_string(fd);
  const int result =
      ::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW);
  return result == 0 ? 0 : errno;
}

// Writes an unnamed file and links it to the target once it is complete, so a killed process leaves
// nothing behind. To replace an existing target, gives the file a temporary name and renames it.
// Returns false if the file system or the kernel does not support this.
bool write_without_name(const std::string& target, std::string_view text) {
  Descriptor file(folder_of(target), O_WRONLY | O_TMPFILE, mode_t{0666});
  if (!file.is_open()) return false;
  if (!write_all(file.get(), text) || ::fsync(file.get()) != 0) fail("write", target, errno);
  int error = link_open_file(file.get(), target);
  if (error == 0) return true;
  std::string name;
  for (int attempt = 0; attempt < kTemporaryNames && error == EEXIST; ++attempt) {
    name = temporary_name(target, attempt);
    error = link_open_file(file.get(), name);
  }
  if (error != 0) return false;
  if (::rename(name.c_str(), target.c_str()) == 0) return true;
  error = errno;
  ::unlink(name.c_str());
  fail("write", target, error);
}

// Makes the rename durable. Some network file systems cannot sync a folder. This is not an error,
// because the file itself is complete.
void sync_folder(const std::string& folder) {
  const Descriptor file(folder, O_RDONLY | O_DIRECTORY);
  if (file.is_open()) ::fsync(file.get());
}

}  // namespace

std::string read_text_file(const std::string& path, Bytes limit) {
  const Descriptor file(path, O_RDONLY);
  if (!file.is_open()) fail("read", path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail("read", path, errno);
  if (S_ISDIR(status.st_mode)) fail("read", path, EISDIR);
  std::string text;
  // The size is only a hint, because a pipe has no size and a file may grow while it is read.
  if (status.st_size <= limit.count) text.reserve(static_cast<std::size_t>(status.st_size));
  std::array<char, kReadBytes> buffer;
  while (true) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read", path, errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (static_cast<std::int64_t>(text.size()) > limit.count) {
      throw FormatError(path + ": is larger than the limit of " + std::to_string(limit.count) +
                        " bytes; is it a file of this project?");
    }
  }
}

Json read_json_file(const std::string& path, Bytes limit) {
  return parse_json(read_text_file(path, limit), path);
}

void write_file_atomically(const std::string& path, std::string_view text) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail("write", path, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) return write_directly(path, text);
  const std::string target = exists ? follow_links(path) : path;
  if (!write_without_name(target, text)) write_beside(target, text);
  sync_folder(folder_of(target));
}

void write_json_file(const std::string& path, const Json& json) {
  write_file_atomically(path, json.dump(2) + "\n");
}

}  // namespace rematch
