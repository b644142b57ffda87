#include <c10/core/CachingDeviceAllocator.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/clocks.h"
#include "harness/measure/cuda_device.h"
#include "harness/measure/gpu_sampler.h"
#include "harness/profile/clocked_step.h"
#include "harness/profile/recorded_step.h"
#include "harness/run/passes/passes.h"
#include "harness/training/replayed_step.h"
#include "kernels/attention/backend.h"
#include "reports/statistics/statistics.h"

namespace rematch {
namespace {

// On an H100, small models' kernel launches were 1.5 times slower after two steps than after ten.
constexpr int kGpuWarmUpSteps = 3;
constexpr std::chrono::milliseconds kGpuWarmUpTime{1000};

// Times steps and their phases. No other observer is active.
class TimeListener final : public ClockedStep {
 public:
  // `sampler` may be null. It samples the GPU's state during all steps.
  TimeListener(PassPosition& position, const Job& job, const StepsToTime& to_time,
               GpuSampler* sampler)
      : ClockedStep(job.device()),
        watching_(position),
        num_steps_(to_time.count),
        has_phases_(!to_time.replayed),
        sampler_(sampler) {}

  void before_step() override {
    watching_.before_step();
    if (sampler_ != nullptr && steps.empty()) sampler_->start();
    ClockedStep::before_step();
  }
  void before_next_micro_batch() override { watching_.before_next_micro_batch(); }
  void after_forward(const at::Tensor& loss) override {
    ClockedStep::after_forward(loss);
    watching_.after_forward(loss);
  }
  void after_backward() override {
    ClockedStep::after_backward();
    watching_.after_backward();
  }
  void after_optimizer() override {
    const bool is_last = static_cast<int>(steps.size()) + 1 == num_steps_;
    if (sampler_ != nullptr && is_last) sampler_->request_stop();
    ClockedStep::after_optimizer();
    if (sampler_ != nullptr && is_last) readings = sampler_->stop();
    steps.push_back(clock().whole());
    if (!has_phases_) return;
    const auto times = clock().by_phase();
    for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizer}) {
      phases[std::string(to_string(phase))].push_back(
          static_cast<double>(times[static_cast<std::size_t>(phase)].count()));
    }
  }

  std::vector<std::chrono::nanoseconds> steps;
  std::map<std::string, std::vector<double>> phases;
  std::vector<GpuReading> readings;

 private:
  Watching watching_;
  int num_steps_;
  bool has_phases_;  // the phases of a replayed step cannot be told apart
  GpuSampler* sampler_;
};

// The counters of the device's allocator while steps are timed.
class AllocatorCounts {
 public:
  explicit AllocatorCounts(at::Device device)
      : device_(device), retries_before_(statistics().num_alloc_retries) {
    allocator().resetPeakStats(device_.index());
  }

  void note(TimeRecord& time) const {
    const auto counted = statistics();
    const auto peak = [](const c10::CachingAllocator::StatArray& bytes) {
      return Bytes{bytes[static_cast<std::size_t>(StatType::AGGREGATE)].peak};
    };
    time.peak_requested = peak(counted.requested_bytes);
    time.peak_allocated = peak(counted.allocated_bytes);
    time.peak_reserved = peak(counted.reserved_bytes);
    // Counts retries. A retry is an allocation that succeeded only after the allocator had released
    // its whole cache.
    time.device_state->allocator_retries = counted.num_alloc_retries - retries_before_;
  }

 private:
  using StatType = c10::CachingAllocator::StatType;
  c10::DeviceAllocator& allocator() const { return *c10::getDeviceAllocator(device_.type()); }
  c10::CachingDeviceAllocator::DeviceStats statistics() const {
    return allocator().getDeviceStats(device_.index());
  }

  at::Device device_;
  std::int64_t retries_before_;
};

// Warms up. Returns the number of steps taken.
int warm_up_by(const WarmUp& rule, Training& training, at::Device device, std::int64_t first_step,
               PassPosition& position) {
  const auto start = now_on(device);
  int num_steps = 0;
  while (num_steps < rule.min_steps || now_on(device) - start < rule.min_time) {
    warm_up(training, first_step + num_steps, 1, position);
    ++num_steps;
  }
  return num_steps;
}

// Runs the steps of a time pass op by op, or as replays.
class StepRunner {
 public:
  StepRunner(Training& training, at::Device device, bool replayed) : training_(training) {
    if (replayed) replayed_.emplace(training, device);
  }

  int warm_up(const WarmUp& rule, at::Device device, std::int64_t first, PassPosition& position) {
    int num_steps = 0;
    const auto run = [&] { num_steps = warm_up_by(rule, training_, device, first, position); };
    replayed_ ? replayed_->run(run) : run();
    return num_steps;
  }

  // Captures the step that is replayed, with the batch of step `index`.
  void prepare(std::int64_t index) {
    if (replayed_) replayed_->capture(index);
  }

  at::Tensor step(std::int64_t index, StepListener& listener) {
    return replayed_ ? replayed_->step(index, listener) : training_.step(index, listener);
  }

 private:
  Training& training_;
  std::optional<ReplayedStep> replayed_;
};

// Returns the number of the step after the last timed step.
std::int64_t time_steps(Training& training, const Job& job, const StepsToTime& steps,
                        PassPosition& position, PointRecord& record) {
  const at::Device device = job.device();
  StepRunner runner(training, device, steps.replayed);
  const int warm_up_steps = runner.warm_up(steps.warm_up, device, steps.first, position);
  const std::int64_t first = steps.first + warm_up_steps;
  position = {"time", first - 1, {}};
  const auto monitor = device.is_cuda() ? open_gpu_monitor(device.index()) : nullptr;
  std::optional<GpuSampler> sampler;
  if (monitor) sampler.emplace(*monitor);
  std::optional<AllocatorCounts> allocator;
  if (device.is_cuda()) allocator.emplace(device);
  runner.prepare(first);  // a replay allocates nothing, so the peaks are those of the capture
  TimeListener listener(position, job, steps, sampler ? &*sampler : nullptr);
  at::Tensor loss;
  for (int step = 0; step < steps.count; ++step) {
    loss.reset();  // frees the last step's loss, which would otherwise count in this step's peak
    loss = runner.step(first + step, listener);
  }
  const std::int64_t next = first + steps.count;
  if (!job.is_pretended() && loss.defined()) require_finite(loss.item<double>(), next - 1);
  record.warm_up_steps = warm_up_steps;
  record.time.emplace();
  if (steps.replayed) record.time->replayed = true;
  if (device.is_cuda()) {
    record.time->attention_backend = to_string(attention_backend_in_use());
    record.time->device_state = summarize_readings(listener.readings);
    allocator->note(*record.time);
  }
  record.time->samples = {listener.steps};
  for (const auto& [phase, samples] : listener.phases) {
    record.time->phases[phase] =
        std::chrono::nanoseconds(static_cast<std::int64_t>(median(samples)));
  }
  return next;
}

// Times op classes in one step after the timed steps, because timing each op slows the step down.
// Uses the same process, and so the same allocator and caches.
void time_classes(Training& training, std::int64_t step, PassPosition& position,
                  PointRecord& record) {
  position = {"op time", -1, {}};
  OpClassTimer timer;
  Watching listener(position);
  {
    const OpObserverGuard observe(&timer);
    training.step(step, listener);
  }
  record.time->classes = timer.times();
}

}  // namespace

WarmUp warm_up_of_process(at::Device device) {
  if (!device.is_cuda() || on_dry_device()) return {};
  return {kGpuWarmUpSteps, kGpuWarmUpTime};
}

std::int64_t time_pass(Training& training, const Job& job, const StepsToTime& steps,
                       PassPosition& position, PointRecord& record) {
  const std::int64_t next = time_steps(training, job, steps, position, record);
  // On a GPU a call ends when its kernels are launched. The kernel pass times the kernels.
  if (job.device().is_cuda()) return next;
  time_classes(training, next, position, record);
  return next + 1;
}

namespace {

std::chrono::nanoseconds median_of(const std::vector<double>& nanoseconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(median(nanoseconds)));
}

}  // namespace

void copy_time_pass(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                    PassPosition& position, HostRecord& host) {
  position = {"copy time", -1, {}};
  Watching listener(position);
  CopyTimer timer;
  const ObservedMoves observed(training, timer);
  std::vector<double> hidden;
  std::vector<double> exposed;
  for (int step = 0; step < num_steps; ++step) {
    training.step(first_step + step, listener);
    synchronize(device);
    const CopyTimes times = timer.take();
    hidden.push_back(static_cast<double>(times.hidden().count()));
    exposed.push_back(static_cast<double>(times.exposed().count()));
  }
  host.hidden_time = median_of(hidden);
  host.exposed_time = median_of(exposed);
}

}  // namespace rematch
