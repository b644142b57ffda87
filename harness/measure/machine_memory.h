// How much memory this machine gives a process: RAM, the limits of the control groups that the
// process is in, and how often the system has killed for want of it. No LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policies/base/bytes.h"

namespace rematch {

struct MachineMemory {
  std::optional<Bytes> total;      // RAM, or the least limit of a control group if that is less
  std::optional<Bytes> available;  // of it at the moment, without swapping
  std::optional<std::int64_t> oom_kills;  // of any process, since the system started
};

// The memory of a device for what is about to run.
struct AvailableMemory {
  Bytes bytes;
  std::string what;  // "available on this machine"
};

// `root` is where proc and sys lie; empty: of this machine. What cannot be read is absent.
MachineMemory machine_memory(const std::string& root = "");

}  // namespace rematch
