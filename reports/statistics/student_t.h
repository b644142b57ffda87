// Student's t, Fisher's F, and what testing many rows at once costs. For differences of a few noisy
// runs, whose spread is itself an estimate.
#pragma once

#include <vector>

namespace rematch {

// Probability that Student's t with `degrees` of freedom (above 0, not only whole) exceeds `t`.
double student_t_tail(double t, double degrees);

// The t that is exceeded with probability `tail`, which lies in (0, 0.5].
double student_t_quantile(double tail, double degrees);

// Probability that the ratio of two sample variances of equal spread, with so many degrees of
// freedom above and below (Fisher's F), is at least `ratio`; infinity is a ratio too.
double variance_ratio_tail(double ratio, double degrees_above, double degrees_below);

// A difference of two means over its standard error, with Welch's degrees of freedom: the arms may
// spread differently.
struct MeanDifference {
  double difference = 0;
  double error = 0;
  double degrees = 0;
};
// Both need two values at least.
MeanDifference welch_difference(const std::vector<double>& above, const std::vector<double>& below);

// How likely a difference as large as this is where the true one is at most `margin`, either way.
double probability_within(const MeanDifference& difference, double margin);

// Holm's correction: if every p-value is compared with `limit` after it, the chance of even one
// false claim among all rows is at most `limit`, however the rows depend on each other.
std::vector<double> holm_adjusted(const std::vector<double>& p_values);

}  // namespace rematch
