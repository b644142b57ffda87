// One metric of one point in two reports: what it is on each side, by which rule they differ, and
// which part of a step the difference comes from.
#pragma once

#include "reports/compare/compare.h"

namespace rematch {

// Bytes, counts and losses: any difference beyond the floor is one.
MetricRecord compare_exact(Metric metric, const PointRecord& base, const PointRecord& candidate,
                           const Floor& floor);

// Note [When a time is called different]
// Both must hold. The 95 % bootstrap interval of the ratio of medians over process rounds lies
// beyond the floor; and Welch's t over the rounds' log medians leaves the difference beyond the
// floor a chance of at most the false-alarm ratio, after Holm's correction over all rows. The
// interval alone would be wrong once in twenty rows; the t alone is moved by one stalled round.
struct TimeComparison {
  MetricRecord record;
  std::optional<double> p_value;  // not corrected; absent: fewer than two rounds on a side
};
TimeComparison compare_times(const PointRecord& base, const PointRecord& candidate,
                             const Floor& floor);

// Fills in the verdict from the interval and the corrected p-value.
void judge_time(MetricRecord& record, const Floor& floor, double false_alarm_ratio);

// Is it left open whether the candidate takes longer by more than the floor: of two that cannot be
// told apart, a time that is surely not higher is no matter. Only times are ever unsure.
bool may_be_slower(const MetricRecord& record, const Floor& floor);

// The shares that parts of a step have in a difference, by the finest parts that both points
// recorded: time by phase and kernel class, else op class, else by phase alone; bytes by holder at
// the peak; ops by phase and op class; kernels by phase and class. Absent where there is no
// difference or none of these.
std::optional<ExplanationRecord> explain(const MetricRecord& metric, const PointRecord& base,
                                         const PointRecord& candidate);

}  // namespace rematch
