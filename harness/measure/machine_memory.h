// The memory that this machine gives a process: RAM, the limits of the process's control groups,
// and how often the system killed a process because memory ran out. No LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policies/base/bytes.h"

namespace rematch {

struct MachineMemory {
  std::optional<Bytes> total;      // RAM, or the lowest limit of a control group if that is less
  std::optional<Bytes> available;  // the part of `total` that is free now, without swapping
  std::optional<std::int64_t> oom_kills;  // kills of any process since the system started
};

// The memory of a device that is available to the next run.
struct AvailableMemory {
  Bytes bytes;
  std::string what;  // "available on this machine"
};

// `root` is the folder that contains proc and sys; empty: this machine's. Fields that cannot be
// read are absent.
MachineMemory machine_memory(const std::string& root = "");

}  // namespace rematch
