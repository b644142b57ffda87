#include "harness/measure/memory_timeline.h"

#include <algorithm>

namespace rematch {
namespace {

constexpr std::string_view kLossScope = "loss";

HeldBytes holders_of(const BoundarySample& sample) {
  const MemorySample& memory = sample.memory;
  const Bytes forward_temporaries = memory.at(MemoryTag::kForward) - sample.saved;
  return {{Holder::kParameters, memory.at(MemoryTag::kParameter)},
          {Holder::kGradients, memory.at(MemoryTag::kGradient)},
          {Holder::kOptimizer, memory.at(MemoryTag::kOptimizer)},
          {Holder::kSavedActivations, sample.saved},
          {Holder::kRecomputeTransient, memory.at(MemoryTag::kRecompute)},
          {Holder::kOther,
           forward_temporaries + memory.at(MemoryTag::kBackward) + memory.at(MemoryTag::kOther)}};
}

void raise(std::map<std::string, Bytes>& peaks, const std::string& part, Bytes total) {
  Bytes& peak = peaks[part];
  peak = std::max(peak, total);
}

std::map<std::string, Bytes> peak_by_phase(const StepSamples& samples) {
  std::map<std::string, Bytes> peaks;
  for (const BoundarySample& sample : samples.boundaries) {
    const std::string& place = samples.places[static_cast<std::size_t>(sample.place)];
    const Bytes total = sample.memory.total;
    const bool in_loss = sample.phase == Phase::kForward && place == kLossScope;
    raise(peaks, in_loss ? std::string(kLossScope) : std::string(to_string(sample.phase)), total);
    const bool in_backward = sample.phase == Phase::kBackward || sample.phase == Phase::kRecompute;
    if (in_backward && !place.empty()) raise(peaks, "backward." + place, total);
  }
  return peaks;
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
  record.peak_by_phase = peak_by_phase(samples);
  Bytes transient;
  for (const BoundarySample& sample : samples.boundaries) {
    transient = std::max(transient, sample.transient);
  }
  record.peak_transient = transient;
  record.timeline = timeline(samples.boundaries);
  return record;
}

}  // namespace rematch
