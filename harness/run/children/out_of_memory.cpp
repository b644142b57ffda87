#include "harness/run/children/out_of_memory.h"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "policies/base/file.h"

namespace rematch {
namespace {

constexpr std::pair<std::string_view, double> kUnits[] = {
    {"bytes", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};

constexpr std::string_view kOutOfMemory[] = {
    "DefaultCPUAllocator", "out of memory", "cudaErrorMemoryAllocation",
    "STATUS_ALLOC_FAILED"};  // a library's prefix: CUBLAS_, CUDNN_, CUSOLVER_ or CUSPARSE_

}  // namespace

std::optional<Bytes> requested_bytes(std::string_view message) {
  constexpr std::string_view kMark = "ried to allocate ";
  const std::size_t at = message.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view text = message.substr(at + kMark.size());
  double amount = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  if (error != std::errc() || amount < 0) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(rest - text.data()));
  if (!unit.starts_with(' ')) return std::nullopt;
  unit.remove_prefix(1);
  for (const auto& [name, factor] : kUnits) {
    if (unit.starts_with(name)) return Bytes{std::llround(amount * factor)};
  }
  return std::nullopt;
}

std::string without_advice(const std::string& message) {
  const std::string line = message.substr(0, message.find('\n'));
  for (const std::string_view next :
       {" Process ", " Including non-PyTorch memory", " Of the allocated memory"}) {
    const std::size_t at = line.find(next);
    if (at != std::string::npos) return line.substr(0, at);
  }
  return line;
}

bool speaks_of_memory(std::string_view message) {
  return std::any_of(std::begin(kOutOfMemory), std::end(kOutOfMemory), [&](std::string_view words) {
    return message.find(words) != std::string_view::npos;
  });
}

MemoryFile::MemoryFile(const char* name) : fd_(memfd_create(name, 0)) {
  if (fd_ < 0) throw FileError(std::string("cannot create a file in memory: ") + strerror(errno));
}

MemoryFile::~MemoryFile() { close(fd_); }

void write_in_place(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw FileError("cannot write '" + path + "': " + strerror(errno));
}

}  // namespace rematch
