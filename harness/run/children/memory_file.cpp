#include "harness/run/children/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "policies/base/file.h"

namespace rematch {

MemoryFile::MemoryFile(const char* name) : fd_(memfd_create(name, 0)) {
  if (fd_ < 0) throw FileError(std::string("cannot make a file in memory: ") + strerror(errno));
}

MemoryFile::~MemoryFile() { close(fd_); }

void write_in_place(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw FileError("cannot write '" + path + "': " + strerror(errno));
}

}  // namespace rematch
