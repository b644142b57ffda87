// Turns samples at op boundaries into a MemoryRecord: the peak, its place in the step, and what
// holds the bytes. Pure arithmetic; memory_probe.h takes the samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/memory.h"
#include "policies/trace/phase.h"
#include "reports/record/point.h"

namespace rematch {

// The bytes of the process's tensors after an op. `place` is an index into StepSamples::places.
struct BoundarySample {
  MemorySample memory;
  // The bytes with tag kForward that are still alive after forward. All other bytes with this tag
  // are temporaries.
  Bytes saved;
  // Bytes that the op allocated temporarily, above the larger of the totals before and after the
  // op.
  Bytes transient;
  Phase phase = Phase::kForward;
  int place = 0;
};

struct StepSamples {
  std::vector<std::string> places = {""};  // top-level scopes such as "blocks.3", "head" and "loss"
  std::vector<BoundarySample> boundaries;  // one boundary per executed op, in order
  Bytes baseline;                          // bytes allocated before the step
  Bytes baseline_requested;
  // Most bytes that the allocator had reserved from the driver at any time in the step. Absent on
  // devices without a driver.
  std::optional<Bytes> peak_reserved;
  Bytes after_forward;
};

// Maximum number of samples, for plots. If a step has more op boundaries, each sample is the
// highest of several.
inline constexpr std::size_t kMaxTimelineSamples = 512;

MemoryRecord summarize(const StepSamples& samples);

}  // namespace rematch
