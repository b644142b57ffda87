#include "harness/measure/memory_timeline.h"

#include <algorithm>

namespace rematch {
namespace {

HeldBytes holders_of(const BoundarySample& sample) {
  const MemorySample& memory = sample.memory;
  const Bytes forward_temporaries = memory.at(MemoryTag::kForward) - sample.saved;
  HeldBytes held = {{Holder::kParameters, memory.at(MemoryTag::kParameter)},
                    {Holder::kGradients, memory.at(MemoryTag::kGradient)},
                    {Holder::kOptimizer, memory.at(MemoryTag::kOptimizer)},
                    {Holder::kSavedActivations, sample.saved},
                    {Holder::kRecomputeTransient, memory.at(MemoryTag::kRecompute)},
                    {Holder::kOther, forward_temporaries + memory.at(MemoryTag::kBackward) +
                                         memory.at(MemoryTag::kOther)}};
  const Bytes frozen = memory.at(MemoryTag::kFrozen);
  if (frozen.count > 0)
    held[Holder::kFrozenParameters] = frozen;  // omitted if it is 0, because few models have frozen
                                               // parameters
  return held;
}

using Peaks = std::map<std::string, const BoundarySample*>;

// Keeps the larger sample. If both are equally large, keeps the first.
void raise(Peaks& peaks, const std::string& part, const BoundarySample& sample) {
  const BoundarySample*& peak = peaks[part];
  if (peak == nullptr || sample.memory.total > peak->memory.total) peak = &sample;
}

Peaks peaks_of_parts(const StepSamples& samples) {
  Peaks peaks;
  for (const BoundarySample& sample : samples.boundaries) {
    const std::string& place = samples.places[static_cast<std::size_t>(sample.place)];
    const bool in_loss = sample.phase == Phase::kForward && place == kLossPart;
    raise(peaks, std::string(in_loss ? kLossPart : to_string(sample.phase)), sample);
    const bool in_backward = sample.phase == Phase::kBackward || sample.phase == Phase::kRecompute;
    if (in_backward && !place.empty()) raise(peaks, std::string(kBackwardOf) + place, sample);
  }
  return peaks;
}

// For a block in backward, stores the bytes but not their holders. The holders of all blocks would
// fill most of a deep model's report.
void add_peaks_of_parts(const StepSamples& samples, MemoryRecord& record) {
  for (const auto& [part, sample] : peaks_of_parts(samples)) {
    record.peak_by_phase[part] = sample->memory.total;
    if (!is_of_block(part)) record.holders_by_phase[part] = holders_of(*sample);
  }
}

MemoryTimeline timeline(const std::vector<BoundarySample>& boundaries) {
  MemoryTimeline line;
  const std::size_t count = std::min(boundaries.size(), kMaxTimelineSamples);
  for (std::size_t index = 0; index < count; ++index) {
    const auto first = boundaries.begin() + index * boundaries.size() / count;
    const auto last = boundaries.begin() + (index + 1) * boundaries.size() / count;
    const auto highest = std::max_element(
        first, last, [](const auto& a, const auto& b) { return a.memory.total < b.memory.total; });
    line.op_index.push_back(highest - boundaries.begin() + 1);
    line.phase.push_back(highest->phase);
    for (const auto& [holder, bytes] : holders_of(*highest)) {
      line.bytes[holder].push_back(bytes.count);
    }
  }
  return line;
}

}  // namespace

MemoryRecord summarize(const StepSamples& samples) {
  MemoryRecord record;
  record.baseline = samples.baseline;
  record.baseline_requested = samples.baseline_requested;
  record.peak_reserved = samples.peak_reserved;
  record.after_forward = samples.after_forward;
  if (samples.boundaries.empty()) return record;
  const auto peak = std::max_element(
      samples.boundaries.begin(), samples.boundaries.end(),
      [](const auto& a, const auto& b) { return a.memory.total < b.memory.total; });
  record.peak_allocated = peak->memory.total;
  record.peak_phase = peak->phase;
  record.peak_scope = samples.places[static_cast<std::size_t>(peak->place)];
  record.holders_at_peak = holders_of(*peak);
  record.parameter = peak->memory.at(MemoryTag::kParameter);
  add_peaks_of_parts(samples, record);
  Bytes transient;
  Bytes requested;
  for (const BoundarySample& sample : samples.boundaries) {
    transient = std::max(transient, sample.transient);
    requested = std::max(requested, sample.memory.requested);
  }
  record.peak_transient = transient;
  record.peak_requested = requested;
  record.timeline = timeline(samples.boundaries);
  return record;
}

}  // namespace rematch
