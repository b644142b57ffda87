// Estimates the device memory that tensors cannot use. Predicted peaks count only tensors, but the
// driver, libraries and fragmentation in the allocator need memory too.
#pragma once

#include <optional>

#include "policies/base/bytes.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/trace/trace.h"

namespace rematch {

struct MemoryReserve {
  Bytes context;        // memory of the driver and the CUDA context
  Bytes communicators;  // memory of the buffers of all NCCL communicators
  Bytes fragmentation;  // memory that the allocator reserves but tensors do not use
  // The value of --reserve. If present, it replaces the three members above.
  std::optional<Bytes> asked;
  bool operator==(const MemoryReserve&) const = default;

  Bytes total() const { return asked.value_or(context + communicators + fragmentation); }
};

// Returns the memory reserved on a card with `memory` bytes, from the card's data sheet, or
// kUsualReserve if `sheet` is null.
MemoryReserve usual_reserve(const DeviceSheet* sheet, Bytes memory, int num_communicators);

// Returns the number of process groups in which a rank's step communicates. NCCL makes one
// communicator for each.
int num_communicators(const Trace& trace);

}  // namespace rematch
