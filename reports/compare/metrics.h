// Compares one metric of one point in two reports. Computes the metric's value on each side, the
// verdict, and the parts of a step that cause the difference.
#pragma once

#include "reports/compare/compare.h"

namespace rematch {

// Compares bytes, counts and losses. Every difference beyond the floor counts.
MetricRecord compare_exact(Metric metric, const PointRecord& base, const PointRecord& candidate,
                           const Floor& floor);

// Note [When a time is called different]
// A time is called different if both conditions are met:
// - The 95 % bootstrap interval of the ratio of medians over process rounds is entirely beyond the
//   floor.
// - Welch's t test over the rounds' log medians rejects "no difference beyond the floor". After
//   Holm's correction over all rows, its p-value is at most the false-alarm ratio.
// The interval alone would give a false verdict in one row of twenty. The t test alone would react
// to a single stalled round.
struct TimeComparison {
  MetricRecord record;
  // before Holm's correction; absent if a side has fewer than two rounds
  std::optional<double> p_value;
};
TimeComparison compare_times(const PointRecord& base, const PointRecord& candidate,
                             const Floor& floor);

// Fills in the verdict from the interval and the corrected p-value.
void judge_time(MetricRecord& record, const Floor& floor, double false_alarm_ratio);

// True if the verdict on a time is unsure, and the candidate may be slower by more than the floor.
// Always false for metrics other than times.
bool may_be_slower(const MetricRecord& record, const Floor& floor);

// Returns how much each part of a step contributes to a difference, or nullopt if there is no
// difference or no parts were recorded. The parts are:
// - for times: the kernel classes of each phase; if a point lacks them, the op classes of each
//   phase, or whole phases
// - for bytes: kinds of memory at the peak, such as gradients
// - for ops: the op classes of each phase
// - for kernels: the kernel classes of each phase
// - for collectives: the kinds of collectives in each phase
std::optional<ExplanationRecord> explain(const MetricRecord& metric, const PointRecord& base,
                                         const PointRecord& candidate);

}  // namespace rematch
