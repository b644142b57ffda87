// From samples at op boundaries to a MemoryRecord: peak, where in the step it is and who holds it.
// Pure arithmetic; memory_probe.h takes the samples.
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
  Bytes saved;      // of the forward tag: what outlives forward, the rest being temporaries
  Bytes transient;  // what the op allocated inside and freed again, above both boundaries
  Phase phase = Phase::kForward;
  int place = 0;
};

struct StepSamples {
  std::vector<std::string> places = {""};  // top-level scopes: "blocks.3", "head", "loss"
  std::vector<BoundarySample> boundaries;  // one per executed op, in order
  Bytes baseline;                          // before the step
  Bytes baseline_requested;
  std::optional<Bytes> peak_reserved;  // most of the whole step, where there is such a thing
  Bytes after_forward;
};

// More samples than a plot can show are not kept; of each run of boundaries that becomes one
// sample, the highest stands for all.
inline constexpr std::size_t kMaxTimelineSamples = 512;

MemoryRecord summarize(const StepSamples& samples);

}  // namespace rematch
