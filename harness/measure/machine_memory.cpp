#include "harness/measure/machine_memory.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <vector>

namespace rematch {
namespace {

// Returns the number after `key` in a file whose lines read "key number" or "key: number".
std::optional<std::int64_t> number_in(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t number = 0;
    if (!(words >> name >> number)) continue;
    if (name.ends_with(':')) name.pop_back();
    if (name == key) return number;
  }
  return std::nullopt;
}

// Reads a file that holds a single number. Absent if the file says "max".
std::optional<std::int64_t> number_of(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  std::string more;
  if (!(file >> number) || number < 0 || file >> more) return std::nullopt;
  return number;
}

void lower_to(std::optional<Bytes>& least, Bytes value) {
  if (!least || value < *least) least = value;
}

// The names of the files in one version of Linux's control groups.
struct Controller {
  std::string mount;  // mount point of the group hierarchy, relative to the file system's root
  const char* limit;
  const char* usage;
  // Keys of memory.stat that count pages of files, which the system can drop.
  std::array<const char*, 2> reclaimable;
};

const Controller kSecond = {
    "/sys/fs/cgroup", "memory.max", "memory.current", {"active_file", "inactive_file"}};
const Controller kFirst = {"/sys/fs/cgroup/memory",
                           "memory.limit_in_bytes",
                           "memory.usage_in_bytes",
                           {"total_active_file", "total_inactive_file"}};

// Lowers `memory` to the limit of one control group. A limit above the machine's memory means
// "unlimited" and is ignored. If the usage is unknown, the whole limit counts as available.
void add_group(const std::string& folder, const Controller& controller, MachineMemory& memory) {
  const auto limit = number_of(folder + "/" + controller.limit);
  if (!limit || (memory.total && *limit >= memory.total->count)) return;
  lower_to(memory.total, Bytes{*limit});
  std::int64_t held = number_of(folder + "/" + controller.usage).value_or(0);
  for (const char* pages : controller.reclaimable) {
    held -= number_in(folder + "/memory.stat", pages).value_or(0);
  }
  lower_to(memory.available, Bytes{*limit - std::clamp<std::int64_t>(held, 0, *limit)});
}

// Applies the limits of all control groups of a process, up to the topmost visible group, because
// each group limits the process.
void add_groups(const std::string& root, const Controller& controller, std::string path,
                MachineMemory& memory) {
  while (true) {
    add_group(root + controller.mount + path, controller, memory);
    const std::size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return;
    path.resize(slash);
  }
}

bool names(const std::string& list, const std::string& wanted) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == wanted) return true;
  }
  return false;
}

// Lines read "4:memory:/path" in version 1 and "0::/path" in version 2.
void add_control_groups(const std::string& root, MachineMemory& memory) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) add_groups(root, kSecond, path, memory);
    if (names(controllers, "memory")) add_groups(root, kFirst, path, memory);
  }
}

std::optional<Bytes> kibibytes(const std::optional<std::int64_t>& count) {
  if (!count) return std::nullopt;
  return Bytes{*count * 1024};
}

}  // namespace

MachineMemory machine_memory(const std::string& root) {
  MachineMemory memory;
  memory.total = kibibytes(number_in(root + "/proc/meminfo", "MemTotal"));
  memory.available = kibibytes(number_in(root + "/proc/meminfo", "MemAvailable"));
  memory.oom_kills = number_in(root + "/proc/vmstat", "oom_kill");
  add_control_groups(root, memory);
  return memory;
}

}  // namespace rematch
