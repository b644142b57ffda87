// Computes the memory of a card that tensors cannot use. Predicted peaks count only what tensors
// request; the driver, libraries and the allocator's fragmentation need memory too.
#pragma once

#include <optional>

#include "policies/base/bytes.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/trace/trace.h"

namespace rematch {

struct MemoryReserve {
  Bytes context;        // driver and CUDA context
  Bytes communicators;  // buffers of all NCCL communicators
  Bytes fragmentation;  // reserved by the allocator but not used by tensors
  // The value of --reserve, which replaces the three above.
  std::optional<Bytes> asked;
  bool operator==(const MemoryReserve&) const = default;

  Bytes total() const { return asked.value_or(context + communicators + fragmentation); }
};

// Splits `memory` by the card's data sheet. A null sheet stands for the usual reserve.
MemoryReserve usual_reserve(const DeviceSheet* sheet, Bytes memory, int num_communicators);

// Counts the process groups that a rank's step communicates in. NCCL makes one communicator for
// each.
int num_communicators(const Trace& trace);

}  // namespace rematch
