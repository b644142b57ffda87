#include "reports/statistics/student_t.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace rematch {
namespace {

constexpr int kMaxTerms = 400;
constexpr double kSmallest = 1e-300;

// Evaluates the continued fraction of the incomplete beta function by Lentz's method (Numerical
// Recipes, section 6.4). The fraction converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  const auto away_from_zero = [](double value) {
    return std::abs(value) < kSmallest ? kSmallest : value;
  };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int term = 1; term <= kMaxTerms; ++term) {
    const double m = term;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    const double change = d * c;
    result *= change;
    if (std::abs(change - 1) < std::numeric_limits<double>::epsilon()) break;
  }
  return result;
}

// The regularized incomplete beta function. `x` and `1 - x` are separate arguments, so that neither
// loses digits.
double incomplete_beta(double a, double b, double x, double one_minus_x) {
  if (x <= 0) return 0;
  if (one_minus_x <= 0) return 1;
  const double factor = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                 a * std::log(x) + b * std::log(one_minus_x));
  if (x < (a + 1) / (a + b + 2)) return factor * beta_fraction(a, b, x) / a;
  return 1 - factor * beta_fraction(b, a, one_minus_x) / b;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Returns the squared standard error of the mean: the sample variance over the number of values.
double squared_error(const std::vector<double>& values) {
  if (values.size() < 2) throw std::invalid_argument("the error of a mean needs two values");
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  return sum / (count - 1) / count;
}

}  // namespace

double student_t_tail(double t, double degrees) {
  if (!(degrees > 0)) throw std::invalid_argument("Student's t needs degrees of freedom above 0");
  if (t < 0) return 1 - student_t_tail(-t, degrees);
  if (std::isinf(t)) return 0;
  const double sum = degrees + t * t;
  return incomplete_beta(degrees / 2, 0.5, degrees / sum, t * t / sum) / 2;
}

double student_t_quantile(double tail, double degrees) {
  if (!(tail > 0 && tail <= 0.5))
    throw std::invalid_argument("a tail probability must be above 0 and at most 0.5");
  double low = 0;
  double high = 1;
  while (student_t_tail(high, degrees) > tail) high *= 2;
  constexpr int kHalvings = 80;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = (low + high) / 2;
    (student_t_tail(middle, degrees) > tail ? low : high) = middle;
  }
  return high;
}

double variance_ratio_tail(double ratio, double degrees_above, double degrees_below) {
  if (!(degrees_above > 0 && degrees_below > 0)) {
    throw std::invalid_argument("Fisher's F needs degrees of freedom above 0");
  }
  if (ratio <= 0) return 1;
  if (std::isinf(ratio)) return 0;
  const double sum = degrees_below + degrees_above * ratio;
  return incomplete_beta(degrees_below / 2, degrees_above / 2, degrees_below / sum,
                         degrees_above * ratio / sum);
}

MeanDifference welch_difference(const std::vector<double>& above,
                                const std::vector<double>& below) {
  const double first = squared_error(above);
  const double second = squared_error(below);
  const double sum = first + second;
  MeanDifference result;
  result.difference = mean_of(above) - mean_of(below);
  result.error = std::sqrt(sum);
  const double shares = first * first / static_cast<double>(above.size() - 1) +
                        second * second / static_cast<double>(below.size() - 1);
  // If neither arm varies, Welch's formula divides 0 by 0. The largest possible number of degrees
  // of freedom is used instead.
  result.degrees =
      shares > 0 ? sum * sum / shares : static_cast<double>(above.size() + below.size() - 2);
  return result;
}

double probability_within(const MeanDifference& difference, double margin) {
  const double beyond = std::abs(difference.difference) - margin;
  if (beyond <= 0) return 1;
  if (difference.error <= 0) return 0;
  return std::min(1.0, 2 * student_t_tail(beyond / difference.error, difference.degrees));
}

std::vector<double> holm_adjusted(const std::vector<double>& p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double scaled = p_values[order[rank]] * static_cast<double>(order.size() - rank);
    largest = std::max(largest, std::min(1.0, scaled));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

}  // namespace rematch
