#include "reports/record/simulated_memory.h"

#include <string>

namespace rematch {
namespace {

HeldBytes held_by_kind(const HolderBytes& holders) {
  HeldBytes held;
  for (const Holder holder : kAll<Holder>) {
    if (holder != Holder::kFrozenParameters) held[holder] = holders[holder];
  }
  return held;
}

using Peaks = std::map<std::string, const StepBoundary*>;

// Replaces the peak of `part` with `boundary` if `boundary` has more bytes.
void raise(Peaks& peaks, const std::string& part, const StepBoundary& boundary) {
  const StepBoundary*& peak = peaks[part];
  if (peak == nullptr || boundary.holders.total() > peak->holders.total()) peak = &boundary;
}

// Returns the peak of each part of the step that MemoryRecord::peak_by_phase lists.
Peaks peaks_of_parts(const std::vector<StepBoundary>& boundaries, const Trace& trace) {
  Peaks peaks;
  for (const StepBoundary& boundary : boundaries) {
    const std::string place = boundary.scope ? trace.scopes[*boundary.scope].path : "";
    const bool in_loss = boundary.phase == Phase::kForward && place == kLossPart;
    raise(peaks, std::string(in_loss ? kLossPart : to_string(boundary.phase)), boundary);
    const bool in_backward =
        boundary.phase == Phase::kBackward || boundary.phase == Phase::kRecompute;
    if (in_backward && !place.empty()) raise(peaks, std::string(kBackwardOf) + place, boundary);
  }
  return peaks;
}

}  // namespace

MemoryRecord memory_of(const StepPrediction& step, const Trace& trace) {
  MemoryRecord memory;
  memory.peak_allocated = step.peak_bytes();
  memory.peak_phase = step.peak.phase;
  if (step.peak.scope) memory.peak_scope = trace.scopes[*step.peak.scope].path;
  memory.after_forward = step.after_forward;
  memory.parameter = step.peak.holders[Holder::kParameters];
  memory.baseline = step.before;
  memory.holders_at_peak = held_by_kind(step.peak.holders);
  for (int phase = 0; phase < kNumPhases; ++phase) {
    const Bytes peak = step.peak_by_phase[static_cast<std::size_t>(phase)];
    if (peak.count == 0) continue;
    memory.peak_by_phase[std::string(to_string(static_cast<Phase>(phase)))] = peak;
  }
  return memory;
}

MemoryRecord memory_of(const StepPrediction& step, const std::vector<StepBoundary>& boundaries,
                       const Trace& trace) {
  MemoryRecord memory = memory_of(step, trace);
  memory.peak_by_phase.clear();
  for (const auto& [part, boundary] : peaks_of_parts(boundaries, trace)) {
    memory.peak_by_phase[part] = boundary->holders.total();
    if (!is_of_block(part)) memory.holders_by_phase[part] = held_by_kind(boundary->holders);
  }
  return memory;
}

CountsRecord counts_of(const PredictedCounts& counts) {
  CountsRecord record;
  record.counted_steps = 1;
  record.by_op = counts.by_op;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [name, executed] : counts.by_class[phase]) {
      record.by_class[phase][from_string<OpClass>(name).value_or(OpClass::kOther)] = executed;
    }
  }
  return record;
}

}  // namespace rematch
