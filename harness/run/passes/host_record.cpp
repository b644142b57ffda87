#include "harness/run/passes/host_record.h"

namespace rematch {

std::optional<HostRecord> host_record(const Training& training) {
  const std::optional<HostMemory> host = training.host_memory();
  if (!host) return std::nullopt;
  return HostRecord{
      .peak = host->peak, .copied_out = host->copied_out, .copied_back = host->copied_back};
}

}  // namespace rematch
