#include "reports/compare/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reports/compare/step_bits.h"
#include "reports/record/amount_of.h"
#include "reports/statistics/statistics.h"
#include "reports/statistics/student_t.h"

namespace rematch {
namespace {

std::optional<double> number(const std::optional<Bytes>& bytes) {
  if (!bytes) return std::nullopt;
  return static_cast<double>(bytes->count);
}

std::optional<double> number(const std::optional<std::int64_t>& count) {
  if (!count) return std::nullopt;
  return static_cast<double>(*count);
}

// The counts behind a metric: how often each op, or each class of kernels, ran in each phase.
struct Mix {
  const char* of;  // "ops"
  const OpCounts& counts;
  int num_steps;  // number of counted steps, always above 0
  std::optional<Phase> only = std::nullopt;
};

template <class Counts>
std::optional<Mix> mix_of(const char* of, const std::optional<Counts>& record,
                          OpCounts Counts::*counts, std::optional<Phase> only = std::nullopt) {
  if (!record || record->counted_steps <= 0) return std::nullopt;
  return Mix{of, (*record).*counts, record->counted_steps, only};
}

// Returns nothing if the metric is not a count, or if no step was counted.
std::optional<Mix> mix_of(Metric metric, const PointRecord& point) {
  switch (metric) {
    case Metric::kExecutedOps:
      return mix_of("ops", point.counts, &CountsRecord::by_op);
    case Metric::kRecomputedOps:
      return mix_of("ops", point.counts, &CountsRecord::by_op, Phase::kRecompute);
    case Metric::kKernelCount:
      if (!point.kernels || !point.kernels->is_usable()) return std::nullopt;
      return mix_of("kernels", point.kernels, &KernelRecord::count);
    case Metric::kCollectives:
      return mix_of("collectives", point.ranks, &RanksRecord::collectives);
    case Metric::kCollectiveBytes:
      return mix_of("bytes", point.ranks, &RanksRecord::collective_bytes);
    default:
      return std::nullopt;
  }
}

double per_step(const Mix& mix) {
  std::int64_t sum = 0;
  for (const Phase phase : kPhases) {
    if (mix.only && phase != *mix.only) continue;
    for (const auto& [name, count] : mix.counts[static_cast<std::size_t>(phase)]) sum += count;
  }
  return static_cast<double>(sum) / mix.num_steps;
}

std::optional<double> value_of(Metric metric, const PointRecord& point) {
  if (const auto mix = mix_of(metric, point)) return per_step(*mix);
  if (metric == Metric::kPeakAllocated && point.memory) return number(point.memory->peak_allocated);
  if (metric == Metric::kPeakReserved && point.memory) return number(point.memory->peak_reserved);
  if (metric == Metric::kRecomputedFlops) return number(point.recomputed_step_flops);
  return std::nullopt;
}

std::optional<double> ratio_of(const MetricRecord& record) {
  if (!record.base || !record.candidate || *record.base == 0) return std::nullopt;
  return *record.candidate / *record.base;
}

// Returns text such as "aten::mm in recompute".
template <class Key>
std::string place_words(const std::pair<Phase, Key>& place) {
  return name_text(place.second) + " in " + std::string(to_string(place.first));
}

void compare_mix(MetricRecord& record, const PointRecord& base, const PointRecord& candidate) {
  if (record.verdict != CompareVerdict::kSame || record.base != record.candidate) return;
  const std::optional<Mix> own = mix_of(record.metric, base);
  const std::optional<Mix> other = mix_of(record.metric, candidate);
  if (!own || !other) return;
  if (const auto found = first_difference(own->counts, own->num_steps, other->counts,
                                          other->num_steps, own->only)) {
    record.verdict = CompareVerdict::kDifferent;
    record.note = std::string("the same number of ") + own->of +
                  ", but different counts by name: " + place_words(*found);
    return;
  }
  if (record.metric != Metric::kExecutedOps && record.metric != Metric::kRecomputedOps) return;
  // A report stores the counts by class separately, so they may differ even if the counts by op are
  // equal.
  if (const auto found =
          first_difference(base.counts->by_class, own->num_steps, candidate.counts->by_class,
                           other->num_steps, own->only)) {
    record.verdict = CompareVerdict::kDifferent;
    record.note = "the same ops, but different counts of class " + place_words(*found);
  }
}

// The metric compares only the highest peak of all ranks. This function adds a note if the base and
// the candidate have this peak on different ranks, or if the peaks of other ranks differ.
void compare_rank_peaks(MetricRecord& record, const PointRecord& base,
                        const PointRecord& candidate) {
  if (!base.ranks || !candidate.ranks || !record.base || !record.candidate) return;
  const std::string worst = std::to_string(candidate.ranks->worst_rank);
  if (candidate.ranks->worst_rank != base.ranks->worst_rank) {
    record.note += (record.note.empty() ? "" : "; ") + std::string("rank ") + worst +
                   " has the highest peak; in the base it is rank " +
                   std::to_string(base.ranks->worst_rank);
  }
  if (record.verdict != CompareVerdict::kSame || record.base != record.candidate) return;
  for (const RankRecord& own : candidate.ranks->ranks) {
    for (const RankRecord& other : base.ranks->ranks) {
      if (own.rank != other.rank || own.peak_allocated == other.peak_allocated) continue;
      record.verdict = CompareVerdict::kDifferent;
      record.note += (record.note.empty() ? "" : "; ") +
                     std::string("the same highest peak, but rank ") + std::to_string(own.rank) +
                     "'s own peak differs";
      return;
    }
  }
}

// Adds a note if only one side has a value.
void note_unknown_side(MetricRecord& record) {
  if (record.base.has_value() == record.candidate.has_value()) return;
  record.note = std::string("measured only in the ") + (record.base ? "base" : "candidate");
}

void judge_exact(MetricRecord& record, const Floor& floor) {
  if (!record.base || !record.candidate) return note_unknown_side(record);
  const double difference = *record.candidate - *record.base;
  record.verdict = CompareVerdict::kSame;
  if (difference == 0) return;
  if (std::abs(difference) <= floor.absolute ||
      std::abs(difference) <= floor.relative_ratio * std::abs(*record.base)) {
    record.note = "differs by less than the floor";
    return;
  }
  record.verdict = difference > 0 ? CompareVerdict::kHigher : CompareVerdict::kLower;
}

// Returns how two steps differ, or "" if they are equal. Compares the bits of losses. If losses
// must be exactly equal, also compares the bits of gradients and parameters. Losses that are not
// finite, and gradients that are all zero, are never equal.
std::string difference_at(const StepRecord& base, const StepRecord& candidate, const Floor& floor) {
  if (!base.loss || !candidate.loss) return "not finite at ";
  const double difference = std::abs(*candidate.loss - *base.loss);
  const double allowed = std::max(floor.absolute, floor.relative_ratio * std::abs(*base.loss));
  const bool is_exact = allowed == 0;
  if (candidate.loss_bits != base.loss_bits && (is_exact || difference > allowed)) {
    return "first differs at ";
  }
  if (const std::string fault = gradient_fault(candidate); !fault.empty()) {
    return "equal, but gradients " + fault + " at ";
  }
  const std::string tensor = is_exact ? first_different_tensor(base, candidate) : "";
  return tensor.empty() ? "" : "equal, but the bits of " + tensor + " first differ at ";
}

std::string steps_text(std::size_t steps) {
  return std::to_string(steps) + (steps == 1 ? " step" : " steps");
}

// Adds a note if one side has more steps than the other. Call this only if all common steps are
// equal.
void judge_lengths(MetricRecord& record, std::size_t base, std::size_t candidate) {
  if (base == candidate) return;
  record.note = "equal over the " + steps_text(std::min(base, candidate)) + " that both have";
  if (candidate > base) return;
  record.verdict = CompareVerdict::kUnsure;
  record.note += "; the candidate lacks " + std::to_string(base - candidate);
}

// Makes the verdict unsure if, at any common step, the base recorded the bits of a value and the
// candidate did not.
void judge_unrecorded(MetricRecord& record, const PointRecord& base, const PointRecord& candidate) {
  if (record.verdict != CompareVerdict::kSame) return;
  const std::size_t steps = std::min(base.steps.size(), candidate.steps.size());
  for (std::size_t step = 0; step < steps; ++step) {
    for (const RecordedBits& recorded : kRecordedBits) {
      const bool is_lost = (candidate.steps[step].*recorded.bits).empty() &&
                           !(base.steps[step].*recorded.bits).empty();
      if (!is_lost) continue;
      record.verdict = CompareVerdict::kUnsure;
      record.note = std::string("equal, but the candidate has no bits of the ") + recorded.name +
                    " at step " + std::to_string(step);
      return;
    }
  }
}

void compare_losses(MetricRecord& record, const PointRecord& base, const PointRecord& candidate,
                    const Floor& floor) {
  const std::size_t steps = std::min(base.steps.size(), candidate.steps.size());
  if (steps == 0) {
    if (!base.steps.empty()) record.base = base.steps.back().loss;
    if (!candidate.steps.empty()) record.candidate = candidate.steps.back().loss;
    return note_unknown_side(record);
  }
  record.base = base.steps[steps - 1].loss;
  record.candidate = candidate.steps[steps - 1].loss;
  record.ratio = ratio_of(record);
  record.verdict = CompareVerdict::kSame;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::string found = difference_at(base.steps[step], candidate.steps[step], floor);
    if (found.empty()) continue;
    record.verdict = CompareVerdict::kDifferent;
    record.note = found + "step " + std::to_string(step);
    return;
  }
  judge_lengths(record, base.steps.size(), candidate.steps.size());
  judge_unrecorded(record, base, candidate);
  if (!claims_wrong_bits(candidate) || claims_wrong_bits(base)) return;
  record.verdict = CompareVerdict::kDifferent;
  record.note = "equal, but the candidate records that its bits differ from reference " +
                candidate.parity->reference + ", and the base does not";
}

Rounds rounds_of(const PointRecord& point) {
  Rounds rounds;
  if (!point.time) return rounds;
  for (const auto& samples : point.time->samples) {
    if (samples.empty()) continue;
    std::vector<double>& round = rounds.emplace_back();
    for (const auto sample : samples) round.push_back(static_cast<double>(sample.count()));
  }
  return rounds;
}

std::vector<double> log_medians(const Rounds& rounds) {
  std::vector<double> logs;
  for (const std::vector<double>& round : rounds) logs.push_back(std::log(median(round)));
  return logs;
}

bool has_times(const Rounds& rounds) {
  return !rounds.empty() && std::all_of(rounds.begin(), rounds.end(),
                                        [](const auto& round) { return median(round) > 0; });
}

// Combines the relative and the absolute floor into one limit on the logarithm of the ratio.
double log_margin(const Floor& floor, double base) {
  return std::max(std::log1p(floor.relative_ratio), std::log1p(floor.absolute / base));
}

}  // namespace

MetricRecord compare_exact(Metric metric, const PointRecord& base, const PointRecord& candidate,
                           const Floor& floor) {
  MetricRecord record;
  record.metric = metric;
  if (metric == Metric::kLoss) {
    compare_losses(record, base, candidate, floor);
    return record;
  }
  record.base = value_of(metric, base);
  record.candidate = value_of(metric, candidate);
  record.ratio = ratio_of(record);
  judge_exact(record, floor);
  compare_mix(record, base, candidate);
  if (metric == Metric::kPeakAllocated) compare_rank_peaks(record, base, candidate);
  return record;
}

TimeComparison compare_times(const PointRecord& base, const PointRecord& candidate,
                             const Floor& floor) {
  TimeComparison result;
  MetricRecord& record = result.record;
  record.metric = Metric::kStepTime;
  const Rounds below = rounds_of(base);
  const Rounds above = rounds_of(candidate);
  if (has_times(below)) record.base = median_over_rounds(below).value;
  if (has_times(above)) record.candidate = median_over_rounds(above).value;
  if (!record.base || !record.candidate) {
    note_unknown_side(record);
    return result;
  }
  const Estimate ratio = ratio_of_medians(above, below);
  record.ratio = ratio.value;
  if (ratio.interval) record.interval = {{ratio.interval->low, ratio.interval->high}};
  if (below == above) {
    record.verdict = CompareVerdict::kSame;
    record.note = "both sides have the same samples, so this is one measurement, not two";
    return result;
  }
  if (below.size() < 2 || above.size() < 2) {
    record.note = "only one round on one side, so the spread between rounds is unknown";
    return result;
  }
  result.p_value = probability_within(welch_difference(log_medians(above), log_medians(below)),
                                      log_margin(floor, *record.base));
  return result;
}

void judge_time(MetricRecord& record, const Floor& floor, double false_alarm_ratio) {
  if (!record.base || !record.candidate || record.verdict == CompareVerdict::kSame) return;
  record.verdict = CompareVerdict::kUnsure;
  if (!record.interval || !record.adjusted_p_value) return;
  const double high = std::exp(log_margin(floor, *record.base));
  const auto [interval_low, interval_high] = *record.interval;
  const bool surely = *record.adjusted_p_value <= false_alarm_ratio;
  if (interval_low > high && surely) {
    record.verdict = CompareVerdict::kSlower;
  } else if (interval_high < 1 / high && surely) {
    record.verdict = CompareVerdict::kFaster;
  } else if (interval_low >= 1 / high && interval_high <= high) {
    record.verdict = CompareVerdict::kSame;
  }
}

bool may_be_slower(const MetricRecord& record, const Floor& floor) {
  if (record.metric != Metric::kStepTime || record.verdict != CompareVerdict::kUnsure) return false;
  if (!record.interval || !record.adjusted_p_value || !record.base) return true;
  return record.interval->at(1) > std::exp(log_margin(floor, *record.base));
}

}  // namespace rematch
