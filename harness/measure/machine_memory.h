// The memory that this process may use: the machine's RAM, or less if a control group limits the
// process. No LibTorch.
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
      oom_kills;  // processes killed for lack of memory since the system started
};

// The memory that the next run may use on its device.
struct AvailableMemory {
  Bytes bytes;
  // a phrase such as "available on this machine"
  std::string what;
};

// `root` is the folder that contains proc and sys. If it is empty, this machine's files are read.
// Fields that cannot be read are absent.
MachineMemory machine_memory(const std::string& root = "");

}  // namespace rematch
