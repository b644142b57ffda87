// Reads the failed request out of an allocator's error message. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policies/base/bytes.h"

namespace rematch {

// From the message of LibTorch's CUDA allocator, "Tried to allocate 20.00 MiB", which rounds to two
// decimals; or of its CPU allocator, "you tried to allocate 123 bytes". Nothing in any other.
std::optional<Bytes> requested_bytes(std::string_view message);

// The message of LibTorch's CUDA allocator up to what was free: accounts and advice follow, half a
// page of them. Any other's first line.
std::string without_advice(const std::string& message);

// Does an error say that memory ran out? LibTorch's CPU allocator, the CUDA runtime outside its
// allocator, cuBLAS, cuDNN and their kin each say so in their own words.
bool speaks_of_memory(std::string_view message);

// A file in memory that child processes inherit. It has no place on a disk, so nothing is left of
// it when its users are gone, however they end.

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
