// Recognizes out-of-memory errors and reads the size of the failed allocation from their messages.
// Also defines the in-memory files that pass requests and results between processes.
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

// Removes the half page of memory statistics and advice from a message of LibTorch's CUDA
// allocator. Returns the first line of any other message. Pure.
std::string without_advice(const std::string& message);

// Returns whether an error message reports that memory ran out. LibTorch's CPU allocator, the CUDA
// runtime, cuBLAS, cuDNN and similar libraries each word this message differently. Pure.
bool speaks_of_memory(std::string_view message);

// A file in memory that child processes inherit. The kernel frees the file when the last process
// that uses it ends.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name);  // throws FileError
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // The path of the file. Valid in this process and in its child processes.
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// Overwrites the file in place, not atomically. A reader must first check that the writer exited
// normally. Throws FileError.
void write_in_place(const std::string& path, const std::string& text);

}  // namespace rematch
