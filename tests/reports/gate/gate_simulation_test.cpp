// Simulates how often the gate is wrong: false alarms for equal candidates, and the power to detect
// a true difference. The tests check that the figures in the gate's notes are upper bounds. This
// command prints the simulated figures as a table:
//   build/lite/tests/reports/gate_simulation_test '[table]'
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>

#include "reports/gate/loss_checks.h"
#include "reports/gate/loss_fall.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

constexpr int kSteps = 100;
constexpr int kGates = 10'000;

// Fills a vector with the noise of one run, step by step. The unit is the standard deviation of the
// noise at the last step.
using Noise = std::function<void(std::mt19937&, std::vector<double>&)>;

double normal(std::mt19937& bits) { return std::normal_distribution<double>()(bits); }

void independent(std::mt19937& bits, std::vector<double>& noise) {
  for (double& value : noise) value = normal(bits);
}

// Simulates runs that add numbers in different orders. Their differences persist and grow.
void growing(std::mt19937& bits, std::vector<double>& noise) {
  constexpr double kStays = 0.95;
  double state = normal(bits);
  for (std::size_t step = 0; step < noise.size(); ++step) {
    noise[step] = state * static_cast<double>(step + 1) / static_cast<double>(noise.size());
    state = kStays * state + std::sqrt(1 - kStays * kStays) * normal(bits);
  }
}

void random_walk(std::mt19937& bits, std::vector<double>& noise) {
  double state = 0;
  const double scale = 1 / std::sqrt(static_cast<double>(noise.size()));
  for (double& value : noise) value = state += scale * normal(bits);
}

// Noise with outliers. A single outlier may be larger than all other noise of the run.
void heavy_tails(std::mt19937& bits, std::vector<double>& noise) {
  std::student_t_distribution<double> tails(3);
  for (double& value : noise) value = tails(bits);
}

// The worst case: one random number determines the noise of a run at all steps, so 100 steps
// contain no more information than one step.
void one_number(std::mt19937& bits, std::vector<double>& noise) {
  const double size = normal(bits);
  for (std::size_t step = 0; step < noise.size(); ++step) {
    noise[step] = size * static_cast<double>(step + 1) / static_cast<double>(noise.size());
  }
}

struct NamedNoise {
  const char* name;
  Noise draw;
};

const std::vector<NamedNoise> kNoises = {{"independent at each step", independent},
                                         {"lasting (AR 0.95), growing", growing},
                                         {"random walk", random_walk},
                                         {"heavy tails (Student t, 3)", heavy_tails},
                                         {"one number a run", one_number}};

LossArm arm_of(int num_runs) {
  LossArm arm;
  arm.policy = "none";
  Steps steps(kSteps);
  for (StepRecord& step : steps) step.gradient_norm_bits = "0x3ff0000000000000";
  arm.runs.assign(static_cast<std::size_t>(num_runs), steps);
  return arm;
}

// Draws a loss that falls from 8 to about 3. Each run has its own noise.
void draw(LossArm& arm, const Noise& noise, double shift, std::mt19937& bits) {
  std::vector<double> own(kSteps);
  for (Steps& run : arm.runs) {
    noise(bits, own);
    for (std::size_t step = 0; step < run.size(); ++step) {
      const double curve = 3 + 5 * std::exp(-static_cast<double>(step) / 20);
      run[step].loss = curve + 1e-3 * (own[step] + shift);
    }
  }
}

struct Verdicts {
  double failed = 0;
  double passed = 0;
};

using Check = std::function<CheckRecord(const LossArm& candidate, const LossArm& reference)>;

Verdicts simulate(const Check& check, const Noise& noise, int candidate_runs, int reference_runs,
                  double shift, int num_gates = kGates) {
  std::mt19937 bits(17);
  LossArm candidate = arm_of(candidate_runs);
  LossArm reference = arm_of(reference_runs);
  Verdicts verdicts;
  for (int gate = 0; gate < num_gates; ++gate) {
    draw(reference, noise, 0, bits);
    draw(candidate, noise, shift, bits);
    const GateVerdict verdict = check(candidate, reference).verdict;
    verdicts.failed += verdict == GateVerdict::kFail ? 1.0 / num_gates : 0;
    verdicts.passed += verdict == GateVerdict::kPass ? 1.0 / num_gates : 0;
  }
  return verdicts;
}

Verdicts simulate_envelope(const Noise& noise, int reference_runs, double shift,
                           int num_gates = kGates, int candidate_runs = 1) {
  return simulate(check_envelope, noise, candidate_runs, reference_runs, shift, num_gates);
}

// Only the last step counts, so a run's spread is one standard deviation of the noise: 1e-3.
Verdicts simulate_equivalence(int runs, double margin, double shift, int num_gates = kGates) {
  const Check check = [&](const LossArm& candidate, const LossArm& reference) {
    return check_equivalence(candidate, reference, 1e-3 * margin, 1);
  };
  return simulate(check, independent, runs, runs, shift, num_gates);
}

// Returns an upper bound of the true rate: the measured rate plus 2.6 standard errors.
double at_most(double rate) {
  return rate + 2.6 * std::sqrt((rate * (1 - rate) + 1.0 / kGates) / kGates);
}

}  // namespace

// Checks the error rate that Note [A loss that falls] states. Each reference is one run, whose loss
// scatters and does not fall.
TEST_CASE("at most 4 % of references without a trend count as falling") {
  constexpr int kReferences = 4000;
  const auto scatter = [](std::mt19937& bits) { return std::exponential_distribution<>()(bits); };
  for (const std::size_t num_steps : {8U, 20U, 100U, 500U}) {
    for (const bool has_tail : {false, true}) {
      CAPTURE(num_steps, has_tail);
      std::mt19937 bits(5);
      int falls = 0;
      for (int reference = 0; reference < kReferences; ++reference) {
        LossArm arm;
        Steps& steps = arm.runs.emplace_back(num_steps);
        for (StepRecord& step : steps) step.loss = 5 + (has_tail ? scatter(bits) : normal(bits));
        falls += explain_no_fall(arm, 0).empty() ? 1 : 0;
      }
      CHECK(falls <= 0.04 * kReferences);
    }
  }
}

// The loss is smooth, or scatters by a tenth of its fall, like the loss of small batches.
TEST_CASE("a falling loss is recognized even in curves of few steps") {
  std::mt19937 bits(5);
  for (const std::size_t num_steps : {2U, 3U, 5U, 8U, 20U, 100U, 1000U}) {
    for (const double scatter : {0.0, 0.1}) {
      CAPTURE(num_steps, scatter);
      int falls = 0;
      for (int reference = 0; reference < 200; ++reference) {
        LossArm arm;
        Steps& steps = arm.runs.emplace_back(num_steps);
        for (std::size_t step = 0; step < num_steps; ++step) {
          steps[step].loss =
              3 + std::exp(-5 * static_cast<double>(step) / static_cast<double>(num_steps)) +
              scatter * normal(bits);
        }
        falls += explain_no_fall(arm, 0).empty() ? 1 : 0;
      }
      CHECK(falls >= 195);
    }
  }
}

TEST_CASE(
    "T1 fails at most 0.5 % of equal candidates with three reference runs, and 0.3 % with four "
    "runs") {
  for (const NamedNoise& noise : {kNoises[0], kNoises[1]}) {
    CAPTURE(noise.name);
    CHECK(at_most(simulate_envelope(noise.draw, 3, 0).failed) <= 0.005);
    CHECK(at_most(simulate_envelope(noise.draw, 4, 0).failed) <= 0.003);
  }
  CHECK(at_most(simulate_envelope(random_walk, 4, 0).failed) <= 0.005);
}

// The check uses the candidate's run that differs most from the reference. By chance this
// difference grows with the number of runs, so the allowed factor grows too.
TEST_CASE("T1 fails an equal candidate no more often if all of its runs are checked") {
  for (const int runs : {4, 8}) {
    CAPTURE(runs);
    CHECK(at_most(simulate_envelope(growing, 3, 0, kGates, runs).failed) <= 0.005);
    CHECK(at_most(simulate_envelope(growing, 4, 0, kGates, runs).failed) <= 0.003);
    CHECK(at_most(simulate_envelope(random_walk, 4, 0, kGates, runs).failed) <= 0.005);
  }
}

// The stated rates do not cover noise that is the same in all steps of a run, nor single outliers.
TEST_CASE("T1 fails more equal candidates if noise is constant per run or has outliers") {
  CHECK(simulate_envelope(one_number, 4, 0).failed > 0.01);
  CHECK(at_most(simulate_envelope(one_number, 4, 0).failed) <= 0.03);
  CHECK(at_most(simulate_envelope(one_number, 8, 0).failed) <= 0.003);
  CHECK(at_most(simulate_envelope(heavy_tails, 4, 0).failed) <= 0.03);
}

TEST_CASE("T1 detects a lasting difference of twelve times the standard deviation of one step") {
  CHECK(simulate_envelope(independent, 4, 4, 2000).failed < 0.01);
  CHECK(simulate_envelope(independent, 4, 12, 2000).failed > 0.99);
  CHECK(simulate_envelope(growing, 4, 12, 2000).failed > 0.99);
  CHECK(simulate_envelope(independent, 4, 12, 2000, 4).failed > 0.99);
  CHECK(simulate_envelope(growing, 4, 12, 2000, 4).failed > 0.99);
}

// The margin is four standard deviations of a run's mean loss. The standard deviation is estimated
// from only eight runs. If the estimate is much too small, the gate is inconclusive for an equal
// candidate, or even rejects it.
TEST_CASE(
    "with four runs, T2 rejects at most 0.1 % of equal candidates and passes 98.5 % of them") {
  const Verdicts equal = simulate_equivalence(4, 0, 0);
  CHECK(at_most(equal.failed) <= 0.002);
  CHECK(equal.failed <= 0.001);
  CHECK(at_most(1 - equal.passed) <= 0.015);
}

// The user's margin of 8 is larger than the margin that follows from the noise of 1, so the user's
// margin is used. By construction, a candidate that differs by exactly the margin passes one time
// in twenty. A candidate that differs by twice the margin never passes.
TEST_CASE(
    "T2 passes one in twenty candidates that differ by the margin, and none that differ by twice "
    "the "
    "margin") {
  CHECK(std::abs(simulate_equivalence(4, 8, 8).passed - 0.05) < 0.01);
  const Verdicts twice = simulate_equivalence(4, 8, 16);
  CHECK(twice.passed == 0);
  CHECK(twice.failed > 0.99);
}

double percent(double rate) { return 100 * rate; }

constexpr int kMany = 40'000;  // number of experiments; they take two minutes

void print_envelope(int candidate_runs) {
  const auto failed = [&](const NamedNoise& noise, int reference_runs, double shift, int gates) {
    return percent(
        simulate_envelope(noise.draw, reference_runs, shift, gates, candidate_runs).failed);
  };
  std::printf("T1, 100 steps, %d of the candidate: FAIL of\n%-28s %9s %9s %9s %11s %11s\n",
              candidate_runs, "", "equal, 3", "equal, 4", "equal, 8", "+6 sd, 4", "+12 sd, 4");
  for (const NamedNoise& noise : kNoises) {
    std::printf("%-28s", noise.name);
    for (const int runs : {3, 4, 8}) std::printf(" %7.3f %%", failed(noise, runs, 0, kMany));
    for (const double shift : {6.0, 12.0}) {
      std::printf(" %9.1f %%", failed(noise, 4, shift, kMany / 8));
    }
    std::printf("\n");
  }
}

TEST_CASE("prints the table of false alarms and power", "[.table]") {
  for (const int candidate_runs : {1, 4}) print_envelope(candidate_runs);
  struct Row {
    const char* name;
    double margin;
    double shift;
  };
  std::printf("\n%-44s %9s %14s %9s\n", "T2, noise of a run 1 sd", "PASS", "INCONCLUSIVE", "FAIL");
  for (const Row& row :
       {Row{"equal, no margin given", 0, 0}, Row{"equal, margin 8", 8, 0},
        Row{"differs by half the margin of 8", 8, 4}, Row{"differs by the margin of 8", 8, 8},
        Row{"differs by twice the margin of 8", 8, 16}}) {
    for (const int runs : {4, 8}) {
      const Verdicts verdicts = simulate_equivalence(runs, row.margin, row.shift, kMany);
      std::printf(
          "%-36s %d runs %7.3f %% %12.3f %% %7.3f %%\n", row.name, runs, percent(verdicts.passed),
          percent(std::abs(1 - verdicts.passed - verdicts.failed)), percent(verdicts.failed));
    }
  }
}

}  // namespace rematch
