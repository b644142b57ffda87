// Host memory that the stores of a plan take in one step. Counted by the engine, predicted by the
// simulator and stored in reports.
#pragma once

#include "policies/base/bytes.h"

namespace rematch {

struct HostMemory {
  Bytes peak;
  Bytes copied_out;   // bytes copied from the device
  Bytes copied_back;  // bytes copied to the device
  bool operator==(const HostMemory&) const = default;
};

}  // namespace rematch
