#include "reports/statistics/student_t.h"

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "tests/support/catch.h"

namespace rematch {

// The values come from printed tables of the F distribution.
TEST_CASE("the tail of the F distribution equals printed tables") {
  CHECK(variance_ratio_tail(9.2766, 3, 3) == Approx(0.05).epsilon(1e-3));
  CHECK(variance_ratio_tail(141.11, 3, 3) == Approx(0.001).epsilon(1e-3));
  CHECK(variance_ratio_tail(3.5644, 8, 20) == Approx(0.01).epsilon(1e-3));
  CHECK(variance_ratio_tail(1, 7, 7) == Approx(0.5));
  CHECK(variance_ratio_tail(0, 3, 3) == 1);
  CHECK(variance_ratio_tail(std::numeric_limits<double>::infinity(), 3, 3) == 0);
  CHECK_THROWS_AS(variance_ratio_tail(1, 0, 3), std::invalid_argument);
}

// Printed tables list two-sided probabilities, so 5 % there is a tail of 0.025 here.
TEST_CASE("Student's quantiles equal the printed table") {
  CHECK(student_t_quantile(0.025, 1) == Approx(12.706).margin(0.001));
  CHECK(student_t_quantile(0.025, 3) == Approx(3.182).margin(0.001));
  CHECK(student_t_quantile(0.005, 6) == Approx(3.707).margin(0.001));
  CHECK(student_t_quantile(0.05, 10) == Approx(1.812).margin(0.001));
  CHECK(student_t_quantile(0.0005, 6) == Approx(5.959).margin(0.001));
  CHECK(student_t_quantile(0.025, 100000) == Approx(1.960).margin(0.001));
}

// With one degree of freedom, the distribution is Cauchy's, whose tail is 1/2 - atan(t) / pi. With
// two degrees the tail is (1 - t / sqrt(2 + t^2)) / 2.
TEST_CASE("tails of Student's t equal the closed forms for one and two degrees of freedom") {
  const double pi = std::acos(-1.0);
  for (const double t : {0.0, 1e-8, 0.1, 1.0, 3.0, 30.0, 1e4}) {
    CAPTURE(t);
    CHECK(student_t_tail(t, 1) == Approx(std::atan2(1.0, t) / pi).epsilon(1e-9));
    const double root = std::sqrt(2 + t * t);
    CHECK(student_t_tail(t, 2) == Approx(1 / (root * (root + t))).epsilon(1e-9));
    CHECK(student_t_tail(-t, 2) == Approx(1 - student_t_tail(t, 2)));
  }
}

// The means are 3 and 1. The squared standard errors are 1/3 (variance 1, three values) and 1
// (variance 2, two values).
TEST_CASE("Welch's difference equals the difference computed by hand") {
  const MeanDifference difference = welch_difference({2, 3, 4}, {0, 2});
  CHECK(difference.difference == Approx(2));
  CHECK(difference.error == Approx(std::sqrt(4.0 / 3)));
  // The degrees of freedom are (4/3)^2 / ((1/3)^2 / 2 + 1^2 / 1).
  CHECK(difference.degrees == Approx(16.0 / 9 / (1.0 / 18 + 1)));
  CHECK_THROWS_AS(welch_difference({1}, {1, 2}), std::invalid_argument);
}

TEST_CASE(
    "a difference within the margin gives p-value 1, and a larger difference without spread gives "
    "0") {
  CHECK(probability_within({0.5, 0.1, 4}, 0.5) == 1);
  CHECK(probability_within({0.5, 0.0, 4}, 0.4) == 0);
  CHECK(probability_within({0.5, 0.0, 4}, 0.6) == 1);
  CHECK(probability_within({-0.5, 0.1, 4}, 0.2) == Approx(2 * student_t_tail(3, 4)));
}

// The sorted p-values are multiplied by 4, 3, 2 and 1: 0.01 * 4, 0.02 * 3, 0.03 * 2, 0.5 * 1. A
// result that is smaller than the previous result is replaced by the previous result.
TEST_CASE(
    "Holm's correction multiplies by the number of remaining rows, and p-values never decrease") {
  const std::vector<double> adjusted = holm_adjusted({0.5, 0.03, 0.01, 0.02});
  CHECK(adjusted[2] == Approx(0.04));
  CHECK(adjusted[3] == Approx(0.06));
  CHECK(adjusted[1] == Approx(0.06));
  CHECK(adjusted[0] == Approx(0.5));
  CHECK(holm_adjusted({0.9, 0.8}) == std::vector<double>{1, 1});
  CHECK(holm_adjusted({}).empty());
}

TEST_CASE("a true null hypothesis is rejected as often as the p-value predicts", "[property]") {
  std::mt19937_64 generator(3);
  std::normal_distribution<double> normal;
  for (const std::size_t size : {2U, 4U, 8U}) {
    CAPTURE(size);
    int rejected = 0;
    constexpr int kExperiments = 4000;
    for (int experiment = 0; experiment < kExperiments; ++experiment) {
      std::vector<double> above(size);
      std::vector<double> below(size);
      for (double& value : above) value = normal(generator);
      for (double& value : below) value = normal(generator);
      rejected += probability_within(welch_difference(above, below), 0) < 0.05 ? 1 : 0;
    }
    CHECK(rejected < 0.06 * kExperiments);  // 5 % plus 3 standard deviations of the simulation
    CHECK(rejected > 0.01 * kExperiments);  // with few runs, Welch's test rejects too rarely
  }
}

}  // namespace rematch
