#include "harness/sweep/predict_comparison.h"

#include <algorithm>
#include <cmath>

#include "policies/base/format.h"
#include "policies/catalogue/resolve.h"
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
    3;  // assumed step time divided by roofline time; 1.5 to 4 on real cards
constexpr double kSecondsAnOp = 5e-6;     // minimum time to launch, replay or count an op
constexpr double kCpuStartSeconds = 0.3;  // time to start a child process, including its model
constexpr double kCudaStartSeconds =
    4;  // time to start a child process, including a CUDA context and libraries
constexpr int kExactPasses = 2;  // one pass for parity and counts, and one pass for memory
constexpr int kWarmUpSteps = 2;

double seconds_of(const StepPrediction& step, const Trace& trace) {
  const double roofline =
      step.time ? std::chrono::duration<double>(step.time->total()).count() : 0.0;
  const auto num_ops =
      3 * static_cast<double>(trace.ops.size()) + static_cast<double>(step.recomputed_ops);
  return kOverRoofline * roofline + num_ops * kSecondsAnOp;
}

// Adds up the time of a run's child processes.
class RunPredictor {
 public:
  RunPredictor(const RunRequest& request, const Trace& trace, const DeviceSheet* sheet)
      : request_(request),
        trace_(trace),
        profile_(
            roofline_profile(trace, is_on_cuda(request) && sheet != nullptr ? *sheet : kSomeCpu)),
        simulator_(trace, request.optimizer.kind) {
    simulator_.use_profile(profile_);
  }

  // Adds the child processes of a plan. For the reference, also adds its repeats and the A/A
  // control. Returns the plan's peak.
  Bytes add(const MeasuredPlan& measured, bool is_reference) {
    const StepPrediction step = simulator_.simulate(*measured.plan, measured.schedule);
    const double start = is_on_cuda(request_) ? kCudaStartSeconds : kCpuStartSeconds;
    const int num_rounds = request_.rounds.most;
    const int num_more = is_reference ? request_.num_repeats + num_rounds : 0;
    const int num_children = (request_.times_only ? 0 : kExactPasses) + num_rounds + num_more;
    const int num_steps = request_.num_steps + kWarmUpSteps;
    seconds_ += num_children * (start + num_steps * seconds_of(step, trace_));
    return step.peak_bytes();
  }

  std::chrono::milliseconds time() const {
    return std::chrono::milliseconds(std::llround(std::ceil(seconds_ * 1000)));
  }

 private:
  const RunRequest& request_;
  const Trace& trace_;
  Profile profile_;
  StepSimulator simulator_;
  double seconds_ = 0;
};

}  // namespace

std::variant<ComparisonPrediction, Rejected> predict_comparison(const RunRequest& request,
                                                                const Trace& trace,
                                                                const DeviceSheet* sheet) {
  RunPredictor predictor(request, trace, sheet);
  ComparisonPrediction predicted;
  const Resolver resolver(trace);
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
                                           const RunRequest& request, const Trace& trace,
                                           const DeviceSheet* sheet) {
  RunPredictor predictor(request, trace, sheet);
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
