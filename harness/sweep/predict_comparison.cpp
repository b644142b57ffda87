#include "harness/sweep/predict_comparison.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "harness/run/runnable_schedule.h"
#include "policies/base/format.h"
#include "policies/catalogue/stages.h"
#include "policies/catalogue/systems.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/pipeline/step_time.h"
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
    3;  // assumed step time divided by roofline time; 1.5 to 4 on real cards
constexpr double kSecondsAnOp = 5e-6;     // minimum time to launch, replay or count an op
constexpr double kCpuStartSeconds = 0.3;  // time to start a child process, including its model
constexpr double kCudaStartSeconds =
    4;  // time to start a child process, including a CUDA context and libraries
constexpr int kExactPasses = 2;  // one pass for parity and counts, and one pass for memory
constexpr int kWarmUpSteps = 2;

// The simulator of one stage of a pipeline, or of a model without stages.
struct SimulatedStage {
  SimulatedStage(const Trace& of, const DeviceSheet& sheet, OptimizerKind optimizer)
      : trace(of), profile(roofline_profile(of, sheet)), simulator(of, optimizer) {
    simulator.use_profile(profile);
  }

  const Trace& trace;
  Profile profile;
  StepSimulator simulator;
};

// Adds up the time of a run's child processes.
class RunPredictor {
 public:
  RunPredictor(const RunRequest& request, const std::vector<const Trace*>& stages,
               const DeviceSheet* sheet)
      : request_(request) {
    const DeviceSheet& card = is_on_cuda(request) && sheet != nullptr ? *sheet : kSomeCpu;
    for (const Trace* trace : stages) {
      stages_.push_back(std::make_unique<SimulatedStage>(*trace, card, request.optimizer.kind));
    }
  }

  // Adds the child processes of a plan. For the reference, also adds its repeats and the A/A
  // control. Returns the plan's peak.
  Bytes add(const MeasuredPlan& measured, bool is_reference) {
    const std::vector<Plan> plans = plans_of_shapes(*measured.plan);
    std::vector<StepPrediction> steps;
    Bytes peak;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      const Plan& plan = stages_.size() == 1 ? *measured.plan : plans.at(stage);
      steps.push_back(stages_[stage]->simulator.simulate(plan, measured.schedule));
      peak = std::max(peak, steps.back().peak_bytes());
    }
    const double start = is_on_cuda(request_) ? kCudaStartSeconds : kCpuStartSeconds;
    const int num_rounds = request_.rounds.most;
    const int num_more = is_reference ? request_.num_repeats + num_rounds : 0;
    const int num_children = (request_.times_only ? 0 : kExactPasses) + num_rounds + num_more;
    const int num_steps = request_.num_steps + kWarmUpSteps;
    seconds_ += num_children * (start + num_steps * seconds_of(steps));
    return peak;
  }

  std::chrono::milliseconds time() const {
    return std::chrono::milliseconds(std::llround(std::ceil(seconds_ * 1000)));
  }

 private:
  double seconds_of(const std::vector<StepPrediction>& steps) const {
    std::size_t most_ops = 0;
    for (std::size_t stage = 0; stage < steps.size(); ++stage) {
      const auto num_ops = 3 * stages_[stage]->trace.ops.size() +
                           static_cast<std::size_t>(steps[stage].recomputed_ops);
      most_ops = std::max(most_ops, num_ops);
    }
    const std::chrono::duration<double> roofline = roofline_of(steps);
    return kOverRoofline * roofline.count() + static_cast<double>(most_ops) * kSecondsAnOp;
  }

  // Returns the step time. The time of a pipeline includes its bubble.
  Profile::Duration roofline_of(const std::vector<StepPrediction>& steps) const {
    if (steps.size() == 1) {
      return steps.front().time ? steps.front().time->total() : Profile::Duration{};
    }
    const PipelineShape shape = pipeline_shape(stages_.front()->trace.dimensions);
    std::vector<StageTime> times;
    for (std::size_t stage = 0; stage < steps.size(); ++stage) {
      times.push_back(
          stage_time(stages_[stage]->profile, steps[stage].time->recompute, shape.micro_batches));
    }
    return pipeline_time(shape, times, /*passing=*/{}).step;
  }

  const RunRequest& request_;
  std::vector<std::unique_ptr<SimulatedStage>> stages_;
  double seconds_ = 0;
};

}  // namespace

std::variant<ComparisonPrediction, Rejected> predict_comparison(
    const RunRequest& request, const std::vector<const Trace*>& stages, const DeviceSheet* sheet) {
  if (auto rejected = reject_unrunnable_schedule(stages.front()->dimensions)) return *rejected;
  RunPredictor predictor(request, stages, sheet);
  ComparisonPrediction predicted;
  const StageResolver resolver(stages);
  for (const Policy& policy : request.policies) {
    const auto plan = resolver.resolve(policy, request.no_effect);
    if (const auto* rejected = std::get_if<Rejected>(&plan)) return *rejected;
    std::vector<Schedule> schedules = request.schedules;
    if (schedules.empty()) schedules = {usual_schedule(policy.name)};
    for (const Schedule schedule : schedules) {
      const bool is_reference =
          &policy == &request.policies.front() && schedule == schedules.front();
      const Bytes peak = predictor.add({&std::get<Plan>(plan), schedule}, is_reference);
      predicted.least_peak = std::min(predicted.least_peak.value_or(peak), peak);
      predicted.most_peak = std::max(predicted.most_peak.value_or(peak), peak);
      if (std::get<Plan>(plan).regions.empty()) break;
    }
  }
  predicted.time = predictor.time();
  return predicted;
}

std::chrono::milliseconds predict_run_time(const std::vector<MeasuredPlan>& plans,
                                           const RunRequest& request,
                                           const std::vector<const Trace*>& stages,
                                           const DeviceSheet* sheet) {
  RunPredictor predictor(request, stages, sheet);
  for (std::size_t index = 0; index < plans.size(); ++index) {
    predictor.add(plans[index], /*is_reference=*/index == 0);
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
