// Compares one metric of one point in two reports: its value on each side, the verdict, and which
// part of a step the difference comes from.
#pragma once

#include "reports/compare/compare.h"

namespace rematch {

// For bytes, counts and losses. Every difference beyond the floor counts.
MetricRecord compare_exact(Metric metric, const PointRecord& base, const PointRecord& candidate,
                           const Floor& floor);

// Note [When a time is called different]
// Two conditions must hold. First, the 95 % bootstrap interval of the ratio of medians over process
// rounds lies beyond the floor. Second, Welch's t over the rounds' log medians gives a difference
// beyond the floor a probability of at most the false-alarm ratio, after Holm's correction over all
// rows. The interval alone would be wrong once in twenty rows. The t alone would react to one
// stalled round.
struct TimeComparison {
  MetricRecord record;
  std::optional<double> p_value;  // uncorrected; absent with fewer than two rounds on a side
};
TimeComparison compare_times(const PointRecord& base, const PointRecord& candidate,
                             const Floor& floor);

// Fills in the verdict from the interval and the corrected p-value.
void judge_time(MetricRecord& record, const Floor& floor, double false_alarm_ratio);

// True if the verdict on a time is unsure and the candidate may be slower by more than the floor.
// False if the candidate is surely not slower, and for every other metric.
bool may_be_slower(const MetricRecord& record, const Floor& floor);

// Returns the share of each part of a step in a difference. Uses the finest parts that both points
// recorded: time by phase and kernel class, else by phase and op class, else by phase; bytes by
// holder at the peak; ops by phase and op class; kernels by phase and kernel class; collectives by
// phase and kind. Absent if there is no difference or if none of these was recorded.
std::optional<ExplanationRecord> explain(const MetricRecord& metric, const PointRecord& base,
                                         const PointRecord& candidate);

}  // namespace rematch
