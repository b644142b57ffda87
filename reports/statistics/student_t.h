// Student's t, Fisher's F, and Holm's correction for testing many rows at once. Used to compare a
// few noisy runs.
#pragma once

#include <vector>

namespace rematch {

// Returns the probability that Student's t with `degrees` of freedom exceeds `t`. `degrees` must be
// above 0 and may be fractional.
double student_t_tail(double t, double degrees);

// Returns the value that Student's t exceeds with probability `tail`, which is in (0, 0.5].
double student_t_quantile(double tail, double degrees);

// Returns the probability that Fisher's F is at least `ratio`, given the degrees of freedom of
// numerator and denominator. `ratio` may be infinite.
double variance_ratio_tail(double ratio, double degrees_above, double degrees_below);

// A difference of two means, its standard error, and Welch's degrees of freedom. The two samples
// may have different variances.
struct MeanDifference {
  double difference = 0;
  double error = 0;
  double degrees = 0;
};
// Throws std::invalid_argument unless both lists have at least two values.
MeanDifference welch_difference(const std::vector<double>& above, const std::vector<double>& below);

// Returns the largest probability of observing a difference at least this large if the true
// difference is at most `margin`, in either direction.
double probability_within(const MeanDifference& difference, double margin);

// Returns p-values with Holm's correction. If all rows with adjusted p-values below alpha are
// reported, the probability of any false report is at most alpha.
std::vector<double> holm_adjusted(const std::vector<double>& p_values);

}  // namespace rematch
