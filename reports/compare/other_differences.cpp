#include "reports/compare/other_differences.h"

#include <algorithm>
#include <initializer_list>

namespace rematch {
namespace {

class Names {
 public:
  template <class Fact>
  void add_unless_equal(const char* name, const Fact& base, const Fact& candidate) {
    if (!(base == candidate)) names.emplace_back(name);
  }

  std::vector<std::string> names;
};

bool differs(const ComparedRow& row, std::initializer_list<Metric> metrics) {
  return std::any_of(row.metrics.begin(), row.metrics.end(), [&](const MetricRecord& record) {
    const bool is_asked = std::find(metrics.begin(), metrics.end(), record.metric) != metrics.end();
    return is_asked && record.verdict != CompareVerdict::kSame &&
           record.verdict != CompareVerdict::kNotMeasured;
  });
}

// Two runs of different lengths have the same ops in a step if their totals are in proportion. A
// class that never ran may stand there with 0 or not at all.
bool same_per_step(const ClassCounts& base, int base_steps, const ClassCounts& candidate,
                   int candidate_steps) {
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    std::map<OpClass, std::int64_t> all = base[phase];
    all.insert(candidate[phase].begin(), candidate[phase].end());
    for (const auto& entry : all) {
      const auto executed = [&](const ClassCounts& counts) {
        const auto found = counts[phase].find(entry.first);
        return found == counts[phase].end() ? 0 : found->second;
      };
      if (executed(base) * candidate_steps != executed(candidate) * base_steps) return false;
    }
  }
  return true;
}

void add_predicted_counts(Names& found, const PointRecord& base, const PointRecord& candidate) {
  const auto& own = base.predicted_counts;
  const auto& other = candidate.predicted_counts;
  const bool are_counted = own && other && base.counts && candidate.counts;
  const bool is_same = are_counted ? same_per_step(*own, base.counts->counted_steps, *other,
                                                   candidate.counts->counted_steps)
                                   : own == other;
  if (!is_same) found.names.emplace_back("predicted_counts");
}

void add_memory(Names& found, const MemoryRecord& base, const MemoryRecord& candidate) {
  const auto add = [&](const char* name, const auto member) {
    found.add_unless_equal(name, base.*member, candidate.*member);
  };
  add("memory.peak_phase", &MemoryRecord::peak_phase);
  add("memory.peak_scope", &MemoryRecord::peak_scope);
  add("memory.after_forward_bytes", &MemoryRecord::after_forward);
  add("memory.parameter_bytes", &MemoryRecord::parameter);
  add("memory.baseline_bytes", &MemoryRecord::baseline);
  add("memory.peak_requested_bytes", &MemoryRecord::peak_requested);
  add("memory.baseline_requested_bytes", &MemoryRecord::baseline_requested);
  add("memory.workspace_bytes", &MemoryRecord::workspace);
  add("memory.predicted_peak_requested_bytes", &MemoryRecord::predicted_peak_requested);
  add("memory.holders_at_peak", &MemoryRecord::holders_at_peak);
  add("memory.peak_by_phase_bytes", &MemoryRecord::peak_by_phase);
  add("memory.holders_by_phase", &MemoryRecord::holders_by_phase);
  add("memory.dead_save_bytes", &MemoryRecord::dead_save);
  add("memory.predicted_peak_allocated_bytes", &MemoryRecord::predicted_peak_allocated);
  add("memory.predicted_after_forward_bytes", &MemoryRecord::predicted_after_forward);
  add("memory.predicted_peak_note", &MemoryRecord::predicted_peak_note);
}

void add_parity(Names& found, const ParityRecord& base, const ParityRecord& candidate) {
  const auto add = [&](const char* name, const auto member) {
    found.add_unless_equal(name, base.*member, candidate.*member);
  };
  add("parity.reference", &ParityRecord::reference);
  add("parity.reference_reason", &ParityRecord::reference_reason);
  add("parity.compared_steps", &ParityRecord::compared_steps);
  add("parity.loss_bits_equal", &ParityRecord::loss_bits_equal);
  add("parity.gradient_bits_equal", &ParityRecord::gradient_bits_equal);
  add("parity.parameter_hash_equal", &ParityRecord::parameter_hash_equal);
  add("parity.generator_hash_equal", &ParityRecord::generator_hash_equal);
  add("parity.first_different_step", &ParityRecord::first_different_step);
  add("parity.first_different_tensor", &ParityRecord::first_different_tensor);
  add("parity.every_parameter_has_gradient", &ParityRecord::every_parameter_has_gradient);
  add("parity.first_parameter_without_gradient", &ParityRecord::first_parameter_without_gradient);
}

void add_kernels(Names& found, const KernelRecord& base, const KernelRecord& candidate) {
  found.add_unless_equal("kernels.launches", base.launches, candidate.launches);
  found.add_unless_equal("kernels.note", base.note, candidate.note);
}

void add_effect(Names& found, const EffectRecord& base, const EffectRecord& candidate) {
  found.add_unless_equal("effect.same_as", base.same_as, candidate.same_as);
  found.add_unless_equal("effect.intended", base.intended, candidate.intended);
  found.add_unless_equal("effect.counts_equal_prediction", base.counts_equal_prediction,
                         candidate.counts_equal_prediction);
  found.add_unless_equal("effect.detail", base.detail, candidate.detail);
}

// Parts that one side alone has differ as a whole.
template <class Part, class Add>
void add_part(Names& found, const char* name, const std::optional<Part>& base,
              const std::optional<Part>& candidate, Add add) {
  if (base && candidate) return add(found, *base, *candidate);
  if (base.has_value() != candidate.has_value()) found.names.emplace_back(name);
}

}  // namespace

std::vector<std::string> other_differences(const PointRecord& base, const PointRecord& candidate,
                                           const ComparedRow& row) {
  Names found;
  found.add_unless_equal("device", base.device, candidate.device);
  found.add_unless_equal("reason", base.reason, candidate.reason);
  const bool other_ops = differs(row, {Metric::kExecutedOps, Metric::kRecomputedOps});
  if (base.counts && candidate.counts) {
    found.add_unless_equal("counted_steps", base.counts->counted_steps,
                           candidate.counts->counted_steps);
  }
  if (!other_ops) add_predicted_counts(found, base, candidate);
  if (!differs(row, {Metric::kPeakAllocated, Metric::kPeakReserved})) {
    add_part(found, "memory", base.memory, candidate.memory, add_memory);
  }
  if (base.kernels && candidate.kernels) add_kernels(found, *base.kernels, *candidate.kernels);
  if (base.time && candidate.time) {
    found.add_unless_equal("time.attention_backend", base.time->attention_backend,
                           candidate.time->attention_backend);
  }
  add_part(found, "parity", base.parity, candidate.parity, add_parity);
  add_part(found, "effect", base.effect, candidate.effect, add_effect);
  if (!other_ops && !differs(row, {Metric::kRecomputedFlops})) {
    found.add_unless_equal("executed_step_flops", base.step_flops, candidate.step_flops);
  }
  return std::move(found.names);
}

}  // namespace rematch
