// Turns samples at op boundaries into a MemoryRecord: the peak, its place in the step, and who
// holds it. Pure arithmetic; memory_probe.h takes the samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/memory.h"
#include "policies/trace/phase.h"
#include "reports/record/point.h"

namespace rematch {

// The process's tensors after an op. `place` is an index into StepSamples::places.
struct BoundarySample {
  MemorySample memory;
  // The part of the forward tag that outlives forward. The rest is temporaries.
  Bytes saved;
  // Bytes that the op allocated and freed inside, above the higher of its two boundaries.
  Bytes transient;
  Phase phase = Phase::kForward;
  int place = 0;
};

struct StepSamples {
  std::vector<std::string> places = {""};  // top-level scopes: "blocks.3", "head", "loss"
  std::vector<BoundarySample> boundaries;  // one per executed op, in order
  Bytes baseline;                          // before the step
  Bytes baseline_requested;
  // The peak of the whole step. Absent on devices that reserve no memory.
  std::optional<Bytes> peak_reserved;
  Bytes after_forward;
};

// Samples beyond this number are dropped, because a plot cannot show more. Each kept sample is the
// highest of its run of boundaries.
inline constexpr std::size_t kMaxTimelineSamples = 512;

MemoryRecord summarize(const StepSamples& samples);

}  // namespace rematch
