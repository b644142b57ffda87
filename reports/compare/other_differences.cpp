#include "reports/compare/other_differences.h"

#include <algorithm>
#include <initializer_list>

#include "policies/base/field_value.h"
#include "reports/record/fields/point_fields.h"

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

void add_kernels(Names& found, const KernelRecord& base, const KernelRecord& candidate) {
  found.add_unless_equal("kernels.launches", base.launches, candidate.launches);
  found.add_unless_equal("kernels.note", base.note, candidate.note);
}

// A record that one side alone has differs as a whole.
template <HasFields Part>
void add_part(Names& found, const std::string& name, const std::optional<Part>& base,
              const std::optional<Part>& candidate) {
  if (base == candidate) return;
  if (!base || !candidate) {
    found.names.push_back(name);
    return;
  }
  Json own = fields_to_json(*base, kNotRepeated);
  Json other = fields_to_json(*candidate, kNotRepeated);
  visit_fields(*base, [&](const Field& field, const auto&) {
    if (own[field.key] != other[field.key]) found.names.push_back(name + "." + field.key);
  });
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
    add_part(found, "memory", base.memory, candidate.memory);
    if (base.ranks && candidate.ranks) {
      found.add_unless_equal("ranks.ranks", base.ranks->ranks, candidate.ranks->ranks);
    }
  }
  if (base.kernels && candidate.kernels) add_kernels(found, *base.kernels, *candidate.kernels);
  if (base.time && candidate.time) {
    found.add_unless_equal("time.attention_backend", base.time->attention_backend,
                           candidate.time->attention_backend);
  }
  add_part(found, "parity", base.parity, candidate.parity);
  add_part(found, "effect", base.effect, candidate.effect);
  if (!other_ops && !differs(row, {Metric::kRecomputedFlops})) {
    found.add_unless_equal("executed_step_flops", base.step_flops, candidate.step_flops);
  }
  return std::move(found.names);
}

}  // namespace rematch
