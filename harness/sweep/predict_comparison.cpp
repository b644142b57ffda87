#include "harness/sweep/predict_comparison.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "harness/sweep/sweep_file.h"
#include "policies/base/format.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/systems.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/step/step.h"

namespace rematch {
namespace {

// An assumed CPU with a few cores that reaches LibTorch's usual speed. Its figures are fixed, so
// that a plan is the same on every machine.
constexpr DeviceSheet kSomeCpu{.name = "cpu",
                               .source = "an estimate",
                               .memory = Bytes{std::int64_t{16} << 30},
                               .bfloat16_flops_per_second = 2e10,
                               .float32_flops_per_second = 4e10,
                               .memory_bytes_per_second = 1e10,
                               .pcie_bytes_per_second = 1e10,
                               .link_bytes_per_second = 1e10,
                               .cards = {}};
constexpr double kOverRoofline =
    3;  // ratio to the roofline's time; real steps on cards take 1.5 to 4 times as long
constexpr double kSecondsAnOp = 5e-6;     // minimum time to launch, replay or count an op
constexpr double kCpuStartSeconds = 0.3;  // time to start a child process, including its model
constexpr double kCudaStartSeconds =
    4;  // time to start a child process, including a CUDA context and libraries
constexpr int kExactPasses = 2;  // one pass for parity and counts, and one pass for memory
constexpr int kWarmUpSteps = 2;

int first_number(const std::string& text, std::size_t start, int otherwise) {
  int number = otherwise;
  if (start < text.size()) std::from_chars(text.data() + start, text.data() + text.size(), number);
  return number;
}

double seconds_of(const StepPrediction& step, const Trace& trace) {
  const double roofline =
      step.time ? std::chrono::duration<double>(step.time->total()).count() : 0.0;
  const auto num_ops =
      3 * static_cast<double>(trace.ops.size()) + static_cast<double>(step.recomputed_ops);
  return kOverRoofline * roofline + num_ops * kSecondsAnOp;
}

std::vector<Schedule> schedules_of(const std::string& text, const std::string& policy) {
  if (text == "both") return {Schedule::kWholeRegion, Schedule::kOnDemand};
  return {from_string<Schedule>(text).value_or(usual_schedule(policy))};
}

// Adds up the time of a run's child processes.
class RunPredictor {
 public:
  RunPredictor(const Trace& trace, const RunWords& run)
      : trace_(trace),
        run_(run),
        profile_(roofline_profile(trace, run.sheet != nullptr ? *run.sheet : kSomeCpu)),
        simulator_(trace, run.has_optimizer ? OptimizerKind::kAdamW : OptimizerKind::kNothing) {
    simulator_.use_profile(profile_);
  }

  // Adds the child processes of a plan. `num_more` counts the reference's additional runs: its
  // repeats and the A/A control. Returns the plan's peak.
  Bytes add(const MeasuredPlan& measured, int num_more) {
    const StepPrediction step = simulator_.simulate(*measured.plan, measured.schedule);
    const double start = run_.on_cuda ? kCudaStartSeconds : kCpuStartSeconds;
    const int num_children = (run_.exact_passes ? kExactPasses : 0) + run_.num_rounds + num_more;
    seconds_ += num_children * (start + (run_.num_steps + kWarmUpSteps) * seconds_of(step, trace_));
    return step.peak_bytes();
  }

  std::chrono::milliseconds time() const {
    return std::chrono::milliseconds(std::llround(std::ceil(seconds_ * 1000)));
  }

 private:
  const Trace& trace_;
  const RunWords& run_;
  Profile profile_;
  StepSimulator simulator_;
  double seconds_ = 0;
};

}  // namespace

RunWords run_words(const std::vector<std::string>& words, const DeviceSheet* sheet) {
  RunWords run;
  run.num_steps = std::max(1, first_number(flag_among(words, "--steps"), 0, run.num_steps));
  const std::string rounds = flag_among(words, "--rounds");
  const std::size_t colon = rounds.find(':');
  run.num_rounds = first_number(rounds, colon == std::string::npos ? 0 : colon + 1, run.num_rounds);
  run.has_optimizer = flag_among(words, "--optimizer") != "none";
  run.on_cuda = flag_among(words, "--device").starts_with("cuda");
  run.sheet = run.on_cuda ? sheet : nullptr;
  const bool allows = std::find(words.begin(), words.end(), "--allow-no-effect") != words.end();
  if (allows) run.no_effect = NoEffect::kAllow;
  return run;
}

std::variant<ComparisonPrediction, Rejected> predict_comparison(const PlannedComparison& comparison,
                                                                const Trace& trace,
                                                                const RunWords& run) {
  RunPredictor predictor(trace, run);
  ComparisonPrediction predicted;
  const Resolver resolver(trace);
  for (const std::string& name : comparison.policies) {
    const auto policy = parse_policy(name);
    if (const auto* rejected = std::get_if<Rejected>(&policy)) return *rejected;
    const auto plan = resolver.resolve(std::get<Policy>(policy), run.no_effect);
    if (const auto* rejected = std::get_if<Rejected>(&plan)) return *rejected;
    const std::vector<Schedule> schedules = schedules_of(comparison.schedule, name);
    for (const Schedule schedule : schedules) {
      const bool is_reference =
          name == comparison.policies.front() && schedule == schedules.front();
      const Bytes peak = predictor.add({&std::get<Plan>(plan), schedule},
                                       is_reference ? comparison.num_repeats + run.num_rounds : 0);
      predicted.least_peak = std::min(predicted.least_peak.value_or(peak), peak);
      predicted.most_peak = std::max(predicted.most_peak.value_or(peak), peak);
      if (std::get<Plan>(plan).regions.empty()) break;
    }
  }
  predicted.time = predictor.time();
  return predicted;
}

std::chrono::milliseconds predict_run_time(const std::vector<MeasuredPlan>& plans, int num_repeats,
                                           const Trace& trace, const RunWords& run) {
  RunPredictor predictor(trace, run);
  for (std::size_t index = 0; index < plans.size(); ++index) {
    predictor.add(plans[index], index == 0 ? num_repeats + run.num_rounds : 0);
  }
  return predictor.time();
}

std::string length_text(std::chrono::milliseconds time) {
  const double seconds = static_cast<double>(time.count()) / 1e3;
  if (seconds < 120) return format_fixed(seconds, 0) + " s";
  if (seconds < 7200) return format_fixed(seconds / 60, 0) + " min";
  return format_fixed(seconds / 3600, 0) + " h";
}

}  // namespace rematch
