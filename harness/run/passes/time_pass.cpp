#include <c10/core/CachingDeviceAllocator.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "harness/measure/clocks.h"
#include "harness/measure/cuda_device.h"
#include "harness/run/passes/passes.h"
#include "kernels/attention/backend.h"
#include "reports/statistics/statistics.h"

namespace rematch {
namespace {

// Times a step and its parts with nothing else attached.
class TimeListener final : public Watching {
 public:
  // `monitor` may be null; it is asked between steps.
  TimeListener(PassPosition& position, at::Device device, const GpuMonitor* monitor)
      : Watching(position), clock_(device), monitor_(monitor) {}

  void before_step() override {
    Watching::before_step();
    if (monitor_ != nullptr) readings.push_back(monitor_->read(GpuMonitor::OwnContext::kYes));
    clock_.begin();
  }
  void after_forward(const at::Tensor& loss) override {
    clock_.part_done();
    Watching::after_forward(loss);
  }
  void after_backward() override {
    clock_.part_done();
    Watching::after_backward();
  }
  void after_optimizer() override {
    clock_.end();
    steps.push_back(clock_.whole());
    const std::vector<std::chrono::nanoseconds> parts = clock_.parts();
    phases["forward"].push_back(static_cast<double>(parts.at(0).count()));
    phases["backward"].push_back(static_cast<double>(parts.at(1).count()));
    phases["optimizer"].push_back(static_cast<double>(parts.at(2).count()));
  }

  std::vector<std::chrono::nanoseconds> steps;
  std::map<std::string, std::vector<double>> phases;
  std::vector<GpuReading> readings;

 private:
  StepClock clock_;
  const GpuMonitor* monitor_;
};

// Allocations that succeeded only after the allocator had given its whole cache back.
std::int64_t num_allocator_retries(at::Device device) {
  return c10::getDeviceAllocator(device.type())->getDeviceStats(device.index()).num_alloc_retries;
}

void time_steps(Training& training, const Job& job, int num_steps, PassPosition& position,
                PointRecord& record) {
  const at::Device device = job.device();
  warm_up(training, 0, kWarmUpSteps, position);
  position = {"time", -1, {}};
  const auto monitor = device.is_cuda() ? open_gpu_monitor(device.index()) : nullptr;
  const std::int64_t retries_before = device.is_cuda() ? num_allocator_retries(device) : 0;
  TimeListener listener(position, device, monitor.get());
  at::Tensor loss;
  for (int step = 0; step < num_steps; ++step) {
    loss = training.step(kWarmUpSteps + step, listener);
  }
  if (!job.is_pretended()) require_finite(loss.item<double>(), kWarmUpSteps + num_steps - 1);
  record.time.emplace();
  record.time->samples = {listener.steps};
  for (const auto& [phase, samples] : listener.phases) {
    record.time->phases[phase] =
        std::chrono::nanoseconds(static_cast<std::int64_t>(median(samples)));
  }
  if (!device.is_cuda()) return;
  record.time->attention_backend = to_string(attention_backend_in_use());
  record.time->device_state = summarize_readings(listener.readings);
  record.time->device_state->allocator_retries = num_allocator_retries(device) - retries_before;
}

// One step after the timed ones, so that these are undisturbed, in the same process, so that both
// meet the same allocator and caches.
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

void time_pass(Training& training, const Job& job, int num_steps, PassPosition& position,
               PointRecord& record) {
  time_steps(training, job, num_steps, position, record);
  // On a GPU a call is over when its kernels are launched; the kernel pass times those.
  if (!job.device().is_cuda()) time_classes(training, kWarmUpSteps + num_steps, position, record);
}

namespace {

std::chrono::nanoseconds median_of(const std::vector<double>& nanoseconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(median(nanoseconds)));
}

// The timer goes when a step throws, too.
class Observed {
 public:
  Observed(const Training& training, MoveObserver& observer) : training_(training) {
    training_.observe_moves(&observer);
  }
  ~Observed() { training_.observe_moves(nullptr); }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  const Training& training_;
};

}  // namespace

void copy_time_pass(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                    PassPosition& position, HostRecord& host) {
  position = {"copy time", -1, {}};
  Watching listener(position);
  CopyTimer timer;
  const Observed observed(training, timer);
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
