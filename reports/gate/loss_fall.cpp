#include "reports/gate/loss_fall.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <vector>

#include "reports/gate/check_record.h"

namespace rematch {
namespace {

constexpr std::size_t kMinStepsForNoise = 8;
constexpr double kStandardErrors = 4;  // see Note [A loss that falls]

std::vector<double> mean_curve(const std::vector<Steps>& runs) {
  std::vector<double> mean(runs.front().size(), 0);
  for (const Steps& run : runs) {
    for (std::size_t step = 0; step < mean.size(); ++step) mean[step] += run[step].loss.value();
  }
  for (double& loss : mean) loss /= static_cast<double>(runs.size());
  return mean;
}

bool is_constant(const std::vector<Steps>& runs) {
  const std::optional<double>& first = runs.front().front().loss;
  return std::all_of(runs.begin(), runs.end(), [&](const Steps& run) {
    return std::all_of(run.begin(), run.end(),
                       [&](const StepRecord& step) { return step.loss == first; });
  });
}

double noise_of_steps(const std::vector<double>& curve) {
  if (curve.size() < kMinStepsForNoise) return 0;
  double sum = 0;
  for (std::size_t step = 1; step + 1 < curve.size(); ++step) {
    const double off = curve[step] - (curve[step - 1] + curve[step + 1]) / 2;
    sum += off * off;
  }
  return std::sqrt(2.0 / 3.0 * sum / static_cast<double>(curve.size() - 2));
}

std::set<std::size_t> splits_of(std::size_t num_steps) {
  std::set<std::size_t> splits = {num_steps / 2};
  for (std::size_t steps = 1; steps <= num_steps / 2; steps *= 2) {
    splits.insert(steps);
    splits.insert(num_steps - steps);
  }
  return splits;
}

// The fall of the loss at one split of the curve: the mean before the split minus the mean after
// it. unit_error is the standard error of the fall for a noise of 1 in each step.
struct Fall {
  double fall = 0;
  double unit_error = 1;
};

Fall clearest_fall(const std::vector<double>& curve) {
  std::vector<double> sum_before = {0};
  for (const double loss : curve) sum_before.push_back(sum_before.back() + loss);
  std::optional<Fall> clearest;
  for (const std::size_t split : splits_of(curve.size())) {
    const auto before = static_cast<double>(split);
    const auto after = static_cast<double>(curve.size() - split);
    const Fall own{sum_before[split] / before - (sum_before.back() - sum_before[split]) / after,
                   std::sqrt(1 / before + 1 / after)};
    if (!clearest || own.fall / own.unit_error > clearest->fall / clearest->unit_error) {
      clearest = own;
    }
  }
  return *clearest;
}

std::string over_steps(const std::vector<double>& curve) {
  return " over " + std::to_string(curve.size()) + " steps";
}

}  // namespace

std::string explain_no_fall(const LossArm& reference, double allowed) {
  const std::vector<double> curve = mean_curve(reference.runs);
  const std::string proves_nothing = ", so a run that learns nothing would pass; ";
  if (curve.size() < 2) {
    return "one step cannot show a falling loss" + proves_nothing + "give curves of several steps";
  }
  if (is_constant(reference.runs)) {
    return "the reference's loss is " + number_text(curve.front()) + " at all " +
           std::to_string(curve.size()) + " steps" + proves_nothing +
           "check that the optimizer steps and that gradients are not zero";
  }
  const Fall clearest = clearest_fall(curve);
  if (clearest.fall <= 0) {
    return "the reference's loss does not fall" + over_steps(curve) + proves_nothing +
           "give curves that begin where the loss still falls";
  }
  const double error = kStandardErrors * noise_of_steps(curve) * clearest.unit_error;
  const std::string falls =
      "the reference's loss falls by " + number_text(clearest.fall) + over_steps(curve);
  if (clearest.fall <= error) {
    return falls + ", within " + number_text(error) +
           ", which is four standard errors of this fall" + proves_nothing +
           "give curves that begin where the loss still falls, or more steps";
  }
  if (clearest.fall <= allowed) {
    return falls + ", and " + number_text(allowed) + " is allowed" + proves_nothing +
           "lower the allowed difference, or give curves that begin where the loss still falls";
  }
  return "";
}

}  // namespace rematch
