// A file in memory that child processes inherit. It has no place on a disk, so nothing is left of
// it when its users are gone, however they end.
#pragma once

#include <string>

namespace rematch {

class MemoryFile {
 public:
  explicit MemoryFile(const char* name);  // throws FileError
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // The same in the child.
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// In place: a file in memory cannot be replaced. Its reader asks how the writer ended. Throws
// FileError.
void write_in_place(const std::string& path, const std::string& text);

}  // namespace rematch
