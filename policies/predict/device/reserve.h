// The memory of a card that tensors cannot have. Predicted peaks count what tensors ask for; the
// driver, libraries and the allocator's gaps take theirs besides.
#pragma once

#include <optional>

#include "policies/base/bytes.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/trace/trace.h"

namespace rematch {

struct MemoryReserve {
  Bytes context;        // driver and CUDA context
  Bytes communicators;  // buffers of NCCL's communicators, all together
  Bytes fragmentation;  // that the allocator holds and no tensor has
  // Of --reserve, in place of these three.
  std::optional<Bytes> asked;
  bool operator==(const MemoryReserve&) const = default;

  Bytes total() const { return asked.value_or(context + communicators + fragmentation); }
};

// By the card's sheet, out of `memory`; null: as for the cards that have one.
MemoryReserve usual_reserve(const DeviceSheet* sheet, Bytes memory, int num_communicators);

// Process groups that a rank's step communicates in. NCCL makes a communicator for each.
int num_communicators(const Trace& trace);

}  // namespace rematch
