// The memory that a process may use on this machine. RAM and the process's control groups limit it.
// Also counts the processes that the system killed because memory ran out. No LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policies/base/bytes.h"

namespace rematch {

struct MachineMemory {
  std::optional<Bytes> total;  // RAM, or the lowest limit of a control group if that limit is lower
  std::optional<Bytes> available;  // the part of `total` that is free now, without swapping
  std::optional<std::int64_t>
      oom_kills;  // number of processes killed since the system started, because memory ran out
};

// The memory of a device that is available to the next run.
struct AvailableMemory {
  Bytes bytes;
  // Text that says where the memory is available, such as "available on this machine".
  std::string what;
};

// `root` is the folder that contains proc and sys. If it is empty, this machine's files are read.
// Fields that cannot be read are absent.
MachineMemory machine_memory(const std::string& root = "");

}  // namespace rematch
