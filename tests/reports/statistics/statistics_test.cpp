#include "reports/statistics/statistics.h"

#include <cmath>
#include <random>
#include <stdexcept>

#include "tests/support/catch.h"

namespace rematch {
namespace {

// A made-up machine: each process (round) has a random speed, and each step has random noise.
struct Machine {
  double step = 100;
  double round_noise = 0.01;
  double step_noise = 0.01;
};

Rounds measure(const Machine& machine, int num_rounds, int num_steps, std::mt19937_64& generator) {
  std::normal_distribution<double> normal;
  Rounds rounds;
  for (int round = 0; round < num_rounds; ++round) {
    const double speed = machine.step * (1 + machine.round_noise * normal(generator));
    std::vector<double> samples;
    for (int step = 0; step < num_steps; ++step) {
      samples.push_back(speed * (1 + machine.step_noise * normal(generator)));
    }
    rounds.push_back(std::move(samples));
  }
  return rounds;
}

bool holds(const Estimate& estimate, double truth) {
  return estimate.interval && estimate.interval->low <= truth && truth <= estimate.interval->high;
}

}  // namespace

TEST_CASE("order statistics of small lists equal the values computed by hand") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
  CHECK(median({7}) == 7);
  CHECK(quantile({10, 20, 30, 40, 50}, 0.0) == 10);
  CHECK(quantile({10, 20, 30, 40, 50}, 1.0) == 50);
  CHECK(quantile({10, 20, 30, 40, 50}, 0.1) == Approx(14));  // 0.4 of the way from 10 to 20
  CHECK(median_absolute_deviation({1, 1, 2, 2, 4, 6, 9}) == 1);
}

TEST_CASE("statistics of an empty list are rejected") {
  CHECK_THROWS_AS(median({}), std::invalid_argument);
  CHECK_THROWS_AS(quantile({1}, 1.5), std::invalid_argument);
  CHECK_THROWS_AS(median_over_rounds({}), std::invalid_argument);
  CHECK_THROWS_AS(median_over_rounds({{1}, {}}), std::invalid_argument);
  CHECK_THROWS_AS(paired_ratio({{1}, {1}}, {{1}}), std::invalid_argument);
  CHECK_THROWS_AS(paired_ratio({{0}}, {{1}}), std::invalid_argument);
}

TEST_CASE("equal samples give an interval of width zero and no noise") {
  const Rounds rounds(4, std::vector<double>(10, 5.0));
  CHECK(median_over_rounds(rounds) == Estimate{5, Interval{5, 5}});
  CHECK(paired_ratio(rounds, rounds) == Estimate{1, Interval{1, 1}});
  CHECK(judge_ratio(paired_ratio(rounds, rounds)) == RatioVerdict::kSame);
  const QualityReport quality = judge_quality(rounds);
  CHECK(quality.verdict == Quality::kGood);
  CHECK(quality.noise_ratio == 0);
  CHECK(quality.reasons.empty());
}

TEST_CASE("one round gives a median, but no interval and no verdict") {
  const Rounds one = {{100, 101, 99, 100, 102, 98}};
  const Rounds twice = {{200, 202, 198, 200, 204, 196}};
  CHECK(median_over_rounds(one) == Estimate{100, std::nullopt});
  CHECK(paired_ratio(twice, one) == Estimate{std::exp(std::log(200.0) - std::log(100.0)), {}});
  CHECK_FALSE(ratio_of_medians(twice, one).interval);
  CHECK(judge_ratio(paired_ratio(twice, one)) == RatioVerdict::kUnsure);
  CHECK(judge_quality(one).verdict == Quality::kFewRounds);
}

TEST_CASE("single slow and fast steps do not change the median") {
  std::mt19937_64 generator(1);
  Rounds rounds = measure({}, 5, 20, generator);
  const Estimate clean = median_over_rounds(rounds);
  for (std::vector<double>& round : rounds) {
    round[3] *= 50;   // a step that the system stalled
    round[9] *= 0.2;  // a step that is far too fast
  }
  const Estimate disturbed = median_over_rounds(rounds);
  CHECK(disturbed.value == Approx(clean.value).epsilon(0.002));
  CHECK(disturbed.interval->high - disturbed.interval->low <
        1.5 * (clean.interval->high - clean.interval->low));
}

TEST_CASE("one slow process of seven changes the median by at most two percent") {
  std::mt19937_64 generator(2);
  Rounds rounds = measure({}, 7, 20, generator);
  for (double& sample : rounds[2]) sample *= 1.5;
  CHECK(median_over_rounds(rounds).value == Approx(100).epsilon(0.02));
}

TEST_CASE("the interval of a time does not extend below 0, even if rounds differ widely") {
  const Estimate estimate = median_over_rounds({{10}, {70}, {190}});
  REQUIRE(estimate.interval);
  CHECK(estimate.interval->low == 0);
  CHECK(estimate.interval->high > 190);
}

TEST_CASE("a difference of times may be negative, and is inside its interval") {
  const Estimate gain = median_difference_over_rounds({{-40}, {-35}, {-30}});
  CHECK(gain.value == -35);
  REQUIRE(gain.interval);
  CHECK(gain.interval->low < -35);
  CHECK(gain.interval->high > -35);
}

// The steps of each round rise from 100 to 120.
TEST_CASE(
    "drift compares the last third of each round with its first third, and a large drift is "
    "reported") {
  Rounds rising;
  for (int round = 0; round < 3; ++round) {
    std::vector<double> samples;
    for (int step = 0; step < 30; ++step) samples.push_back(100 + 20.0 * step / 29);
    rising.push_back(std::move(samples));
  }
  // The medians of steps 0..9 and 20..29 are at steps 4.5 and 24.5.
  const double expected = (100 + 20 * 24.5 / 29) / (100 + 20 * 4.5 / 29) - 1;
  REQUIRE(drift(rising));
  CHECK(*drift(rising) == Approx(expected));
  CHECK(judge_quality(rising).verdict == Quality::kDrifting);
  CHECK_THAT(judge_quality(rising).reasons.back(), Catch::Contains("13.4 %"));
  CHECK_FALSE(drift({{1, 2, 3, 4, 5}}));
}

TEST_CASE("steady noise is not drift, and a wide spread is noise") {
  std::mt19937_64 generator(3);
  for (int trial = 0; trial < 100; ++trial) {
    CAPTURE(trial);
    CHECK(judge_quality(measure({100, 0.005, 0.01}, 5, 30, generator)).verdict == Quality::kGood);
  }
  CHECK(judge_quality(measure({100, 0.0, 0.3}, 5, 31, generator)).verdict >= Quality::kNoisy);
  CHECK(judge_quality(measure({100, 0.2, 0.01}, 5, 30, generator)).verdict >= Quality::kNoisy);
  CHECK(judge_quality(measure({}, 2, 30, generator)).verdict == Quality::kFewRounds);
}

// The samples rise by one percent, without any noise.
TEST_CASE("a small drift is not reported, even without noise") {
  const std::vector<double> rising = {100, 100, 100.5, 100.5, 101, 101};
  CHECK(*drift({rising}) == Approx(0.01));
  CHECK(judge_quality({rising, rising, rising}).verdict == Quality::kGood);
}

// The rounds are equal, and their steps vary widely.
TEST_CASE("a wide spread of steps is noise, even if the medians of all processes are equal") {
  const std::vector<double> wide = {100, 60, 140, 80, 120};
  const QualityReport report = judge_quality({wide, wide, wide});
  CHECK(report.verdict == Quality::kNoisy);
  CHECK_THAT(report.reasons.at(0), Catch::Contains("steps of one process spread"));
}

// All rounds of `constant` are equal, so resampling them changes nothing.
TEST_CASE("if one arm has no noise, the ratio has only the noise of the other arm") {
  const Rounds noisy = {{99}, {104}, {100}, {97}};
  const Rounds constant = {{50}, {50}, {50}, {50}};
  const Estimate apart = ratio_of_medians(noisy, constant);
  const Estimate paired = paired_ratio(noisy, constant);
  REQUIRE(apart.interval);
  CHECK(apart.value == Approx(paired.value));
  CHECK(apart.interval->low == Approx(paired.interval->low));
  CHECK(apart.interval->high == Approx(paired.interval->high));
}

// In each round, both arms are slowed down by the same random factor of 1 to 2.
TEST_CASE("alternating the arms cancels slowdowns that affect both arms") {
  std::mt19937_64 generator(4);
  std::uniform_real_distribution<double> minute(1, 2);
  Rounds first = measure({100, 0, 0.005}, 6, 15, generator);
  Rounds second = measure({110, 0, 0.005}, 6, 15, generator);
  for (std::size_t round = 0; round < first.size(); ++round) {
    const double slow = minute(generator);
    for (double& sample : first[round]) sample *= slow;
    for (double& sample : second[round]) sample *= slow;
  }
  const Estimate paired = paired_ratio(second, first);
  CHECK(paired.value == Approx(1.10).epsilon(0.01));
  CHECK(judge_ratio(paired) == RatioVerdict::kSlower);
  CHECK(judge_ratio(ratio_of_medians(second, first)) == RatioVerdict::kUnsure);
}

TEST_CASE("a verdict needs the whole interval on one side of the floor") {
  struct Row {
    Estimate ratio;
    double floor;
    RatioVerdict verdict;
  };
  const std::vector<Row> rows = {
      {{1.20, Interval{1.15, 1.25}}, 0.01, RatioVerdict::kSlower},
      {{1.20, Interval{1.005, 1.40}}, 0.01, RatioVerdict::kUnsure},
      {{1.20, Interval{1.15, 1.25}}, 0.20, RatioVerdict::kUnsure},
      {{0.80, Interval{0.75, 0.85}}, 0.01, RatioVerdict::kFaster},
      {{0.99, Interval{0.97, 1.01}}, 0.01, RatioVerdict::kUnsure},
      {{1.00, Interval{0.995, 1.005}}, 0.01, RatioVerdict::kSame},
      {{1.00, Interval{0.5, 2.0}}, 0.01, RatioVerdict::kUnsure},
      {{1.00, std::nullopt}, 0.01, RatioVerdict::kUnsure},
      {{1.02, Interval{1.00, 1.04}}, kWidestSame, RatioVerdict::kSame},
      {{1.02, Interval{1.00, 1.04}}, 0.06, RatioVerdict::kUnsure},
      {{1.36, Interval{1.05, 1.75}}, 7.0, RatioVerdict::kUnsure},
  };
  for (const Row& row : rows) {
    CAPTURE(row.ratio.value, row.floor);
    CHECK(judge_ratio(row.ratio, row.floor) == row.verdict);
  }
}

TEST_CASE("a noisy A/A control raises the floor, but a quiet control does not lower the floor") {
  CHECK(floor_of_control({1, Interval{0.999, 1.001}}) == kSmallestDifference);
  CHECK(floor_of_control({1.02, Interval{0.99, 1.05}}) == Approx(0.05));
  CHECK(floor_of_control({0.9, Interval{0.8, 1.01}}) == Approx(0.25));
  CHECK(floor_of_control({1, std::nullopt}) == kSmallestDifference);
}

TEST_CASE("the same samples give the same interval") {
  std::mt19937_64 generator(5);
  const Rounds rounds = measure({}, 4, 10, generator);
  CHECK(median_over_rounds(rounds) == median_over_rounds(rounds));
}

// The oracle draws each of the n^n resamples. Steps do not vary, so a round equals its median.
TEST_CASE("the bootstrap interval equals an enumeration of all resamples") {
  const std::vector<double> values = {100, 101, 103, 90, 104.5, 99};
  constexpr double kStudent[] = {12.706, 4.303, 3.182, 2.776, 2.571};
  for (std::size_t size = 2; size <= values.size(); ++size) {
    CAPTURE(size);
    Rounds rounds;
    for (std::size_t round = 0; round < size; ++round) rounds.push_back({values[round]});
    std::vector<double> medians;
    const auto resamples = static_cast<std::size_t>(std::pow(size, size));
    for (std::size_t resample = 0; resample < resamples; ++resample) {
      std::vector<double> drawn;
      for (std::size_t rest = resample; drawn.size() < size; rest /= size) {
        drawn.push_back(values[rest % size]);
      }
      medians.push_back(median(drawn));
    }
    double mean = 0;
    for (const double each : medians) mean += each / static_cast<double>(resamples);
    double variance = 0;
    for (const double each : medians) {
      variance += (each - mean) * (each - mean) / static_cast<double>(resamples);
    }
    const double n = static_cast<double>(size);
    const double half = kStudent[size - 2] * std::sqrt(variance * n / (n - 1));
    const Estimate estimate = median_over_rounds(rounds);
    CHECK(estimate.interval->high - estimate.value == Approx(half).epsilon(1e-9));
    CHECK(estimate.value - estimate.interval->low == Approx(half).epsilon(1e-9));
  }
}

// A 95 % interval must contain the truth in 95 % of experiments, and must not be too wide. For the
// mean of n normal values with deviation s, Student's interval has the width 2 t s / sqrt(n). For a
// median, it is up to 1.25 times as wide.
TEST_CASE("the interval contains the truth in about 95 of 100 simulated experiments",
          "[property]") {
  struct Row {
    int num_rounds;
    double widest;  // largest mean width, in standard deviations of a round
  };
  for (const Row& row : {Row{3, 8.0}, Row{4, 5.0}, Row{5, 4.0}, Row{9, 2.4}}) {
    CAPTURE(row.num_rounds);
    std::mt19937_64 generator(6);
    constexpr int kExperiments = 1000;
    const Machine machine{100, 0.01, 0.001};
    int held = 0;
    double width = 0;
    for (int experiment = 0; experiment < kExperiments; ++experiment) {
      const Estimate estimate = median_over_rounds(measure(machine, row.num_rounds, 9, generator));
      held += holds(estimate, 100) ? 1 : 0;
      width += (estimate.interval->high - estimate.interval->low) / kExperiments;
    }
    CHECK(held >= 930);
    CHECK(held <= 992);
    CHECK(width < row.widest);
  }
}

TEST_CASE("equal arms are called different in fewer than 1 % of experiments", "[property]") {
  for (const int num_rounds : {2, 3, 5, 8}) {
    CAPTURE(num_rounds);
    std::mt19937_64 generator(7);
    int alarms = 0;
    for (int experiment = 0; experiment < 1000; ++experiment) {
      const Rounds first = measure({100, 0.004, 0.01}, num_rounds, 10, generator);
      const Rounds second = measure({100, 0.004, 0.01}, num_rounds, 10, generator);
      const RatioVerdict verdict = judge_ratio(paired_ratio(first, second));
      alarms += verdict == RatioVerdict::kFaster || verdict == RatioVerdict::kSlower ? 1 : 0;
    }
    CHECK(alarms < 10);
  }
}

TEST_CASE("on a quiet machine equal arms are called the same", "[property]") {
  std::mt19937_64 generator(9);
  int sames = 0;
  for (int experiment = 0; experiment < 200; ++experiment) {
    const Rounds first = measure({100, 0.001, 0.005}, 5, 20, generator);
    const Rounds second = measure({100, 0.001, 0.005}, 5, 20, generator);
    sames += judge_ratio(paired_ratio(first, second)) == RatioVerdict::kSame ? 1 : 0;
  }
  CHECK(sames > 190);
}

TEST_CASE("four alternating rounds detect a true difference of 10 %", "[property]") {
  std::mt19937_64 generator(8);
  int found = 0;
  for (int experiment = 0; experiment < 200; ++experiment) {
    const Rounds base = measure({100, 0.004, 0.01}, 4, 10, generator);
    const Rounds slower = measure({110, 0.004, 0.01}, 4, 10, generator);
    found += judge_ratio(paired_ratio(slower, base)) == RatioVerdict::kSlower ? 1 : 0;
  }
  CHECK(found > 190);
}

}  // namespace rematch
