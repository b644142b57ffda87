// Recognizes out-of-memory errors and reads the size of the failed request from their messages.
// Also holds the in-memory files that pass requests and results between processes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policies/base/bytes.h"

namespace rematch {

// Parses the message of LibTorch's CUDA allocator ("Tried to allocate 20.00 MiB", rounded to two
// decimals) or of its CPU allocator ("you tried to allocate 123 bytes"). Absent for any other
// message. Pure.
std::optional<Bytes> requested_bytes(std::string_view message);

// Removes the memory statistics and the advice from a message of LibTorch's CUDA allocator, which
// make up half a page. Returns the first line of any other message. Pure.
std::string without_advice(const std::string& message);

// Returns whether an error says that memory ran out. LibTorch's CPU allocator, the CUDA runtime
// outside its allocator, cuBLAS, cuDNN and similar libraries each use their own words. Pure.
bool speaks_of_memory(std::string_view message);

// A file in memory that child processes inherit. The file is not on a disk. It disappears when its
// last user ends, in any way.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name);  // throws FileError
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // The path of the file, valid in this process and in its children.
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// Overwrites the file in place, because a file in memory cannot be replaced. A reader may see a
// partial file, so it must check first how the writer ended. Throws FileError.
void write_in_place(const std::string& path, const std::string& text);

}  // namespace rematch
