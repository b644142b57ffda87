#include "harness/run/passes.h"

#include <ATen/Parallel.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sum.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <cmath>
#include <new>

#include "harness/measure/cuda_device.h"
#include "harness/measure/device_clock.h"
#include "harness/measure/device_memory.h"
#include "harness/measure/hash.h"
#include "harness/measure/memory.h"
#include "harness/measure/memory_probe.h"
#include "harness/measure/op_class_timer.h"
#include "harness/measure/op_counter.h"
#include "harness/run/kernel_pass.h"
#include "harness/run/out_of_memory.h"
#include "harness/run/training.h"
#include "kernels/attention/backend.h"
#include "reports/statistics/statistics.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

// A loss that is not finite: whatever it was compared with, the point is of no use.
struct LossNotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Where a pass is, for the reason of one that fails.
struct Position {
  std::string pass = "building the model";
  std::int64_t step = -1;
  std::optional<Phase> phase;

  std::string describe() const {
    if (step < 0 || !phase) return pass;
    return pass + " pass, step " + std::to_string(step) + ", " + std::string(to_string(*phase));
  }
};

// Keeps `position` up to date, whatever else a pass listens for.
class Watching : public StepListener {
 public:
  explicit Watching(Position& position) : position_(position) {}
  void before_step() override {
    ++position_.step;
    position_.phase = Phase::kForward;
  }
  void after_forward(const at::Tensor&) override { position_.phase = Phase::kBackward; }
  void after_backward() override { position_.phase = Phase::kOptimizer; }

 private:
  Position& position_;
};

void require_finite(double loss, std::int64_t step) {
  if (std::isfinite(loss)) return;
  throw LossNotFinite("the loss of step " + std::to_string(step) + " is " +
                      (std::isnan(loss) ? "not a number" : "infinite") +
                      "; lower the learning rate or check the data");
}

// Note [Gradient norm]
// The square root of the sum of squares of all gradients, each tensor squared and summed in
// float64, the tensors' sums added in parameter order: the same in Python.
double squares_of(const at::Tensor& gradient) {
  return gradient.to(at::kDouble).pow(2).sum().item<double>();
}

// The parity pass: what a step left behind, bit by bit.
class ParityListener final : public Watching {
 public:
  ParityListener(Position& position, const Training& training, at::Device device,
                 PointRecord& record)
      : Watching(position), training_(training), device_(device), record_(record) {}

  void before_step() override {
    Watching::before_step();
    step_ = {};
  }
  void after_forward(const at::Tensor& loss) override {
    Watching::after_forward(loss);
    const auto value = loss.item<float>();
    step_.loss_bits = bits_of(value);
    if (std::isfinite(value)) step_.loss = value;
  }
  void after_backward() override {
    Watching::after_backward();
    double squares = 0;
    for (const NamedTensor& parameter : training_.parameters()) {
      const at::Tensor& gradient = parameter.tensor.grad();
      step_.gradient_hashes[parameter.name] = tensor_hash(gradient);
      const double own = gradient.defined() ? squares_of(gradient) : 0;
      squares += own;
      if (record_.steps.empty() && own == 0) note_missing_gradient(parameter.name);
    }
    step_.gradient_norm_bits = bits_of(std::sqrt(squares));
  }
  void after_optimizer() override {
    step_.parameter_hash = tensors_hash(training_.parameter_tensors());
    step_.generator_hash = generator_hash(device_);
    record_.steps.push_back(step_);
  }

 private:
  void note_missing_gradient(const std::string& name) {
    ParityRecord& parity = record_.parity.value();
    if (parity.every_parameter_has_gradient.value_or(true)) {
      parity.first_parameter_without_gradient = name;
    }
    parity.every_parameter_has_gradient = false;
  }

  const Training& training_;
  at::Device device_;
  PointRecord& record_;
  StepRecord step_;
};

class MemoryListener final : public Watching {
 public:
  MemoryListener(Position& position, MemoryProbe& probe) : Watching(position), probe_(probe) {}

  void before_step() override {
    Watching::before_step();
    probe_.begin_step();
  }
  at::Tensor forward(const std::function<at::Tensor()>& loss) override {
    const MemoryProbe::Listening scopes(probe_);
    return loss();
  }
  void after_forward(const at::Tensor& loss) override {
    Watching::after_forward(loss);
    probe_.forward_done();
  }

 private:
  MemoryProbe& probe_;
};

// Times the parts of a step with nothing else attached.
class TimeListener final : public Watching {
 public:
  // `monitor` may be null; it is asked between steps.
  TimeListener(Position& position, at::Device device, const GpuMonitor* monitor)
      : Watching(position), device_(device), monitor_(monitor) {}

  void before_step() override {
    Watching::before_step();
    if (monitor_ != nullptr) readings.push_back(monitor_->read(GpuMonitor::OwnContext::kYes));
    start_ = now_on(device_);
  }
  void after_forward(const at::Tensor& loss) override {
    forward_ = now_on(device_);
    Watching::after_forward(loss);
  }
  void after_backward() override {
    backward_ = now_on(device_);
    Watching::after_backward();
  }
  void after_optimizer() override {
    const Clock::time_point end = now_on(device_);
    steps.push_back(end - start_);
    phases["forward"].push_back(count(forward_ - start_));
    phases["backward"].push_back(count(backward_ - forward_));
    phases["optimizer"].push_back(count(end - backward_));
  }

  std::vector<std::chrono::nanoseconds> steps;
  std::map<std::string, std::vector<double>> phases;
  std::vector<GpuReading> readings;

 private:
  static double count(Clock::duration duration) {
    return static_cast<double>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
  }

  at::Device device_;
  const GpuMonitor* monitor_;
  Clock::time_point start_;
  Clock::time_point forward_;
  Clock::time_point backward_;
};

void parity_pass(Training& training, at::Device device, int num_steps, Position& position,
                 PointRecord& record) {
  position = {"parity", -1, {}};
  record.parity.emplace();
  record.parity->reference = record.policy;  // nothing else to compare with in this process
  record.parity->every_parameter_has_gradient = true;
  ParityListener listener(position, training, device, record);
  for (int step = 0; step < num_steps; ++step) {
    const at::Tensor loss = training.step(step, listener);
    require_finite(loss.item<double>(), step);
  }
}

void warm_up(Training& training, std::int64_t first_step, int num_steps, Position& position) {
  position = {"warm-up", -1, {}};
  Watching listener(position);
  for (int step = 0; step < num_steps; ++step) training.step(first_step + step, listener);
}

void counting_pass(Training& training, std::int64_t first_step, int num_steps, Position& position,
                   PointRecord& record) {
  position = {"counting", -1, {}};
  OpCounter counter;
  Watching listener(position);
  {
    const OpObserverGuard observe(&counter);
    for (int step = 0; step < num_steps; ++step) training.step(first_step + step, listener);
  }
  record.counts = counter.record(num_steps);
}

void memory_pass(Training& training, at::Device device, std::int64_t step, Position& position,
                 PointRecord& record) {
  position = {"memory", -1, {}};
  MemoryProbe probe(device, training.parameter_tensors());
  probe.assign(training.optimizer().state(), MemoryTag::kOptimizer);
  {
    const OpObserverGuard observe(&probe);
    MemoryListener listener(position, probe);
    training.step(step, listener);
  }
  record.memory = probe.finish_step();
  if (device.is_meta()) record.memory->peak_transient.reset();  // no kernels, no insides
}

void exact_passes(const PointRequest& request, at::Device device, Training& training,
                  Position& position, PointRecord& record) {
  std::int64_t step = 0;
  if (!device.is_meta()) {
    parity_pass(training, device, request.num_steps, position, record);
    step = request.num_steps;
  }
  const int missing = kWarmUpSteps - static_cast<int>(step);
  if (missing > 0) {
    warm_up(training, step, missing, position);
    step += missing;
  }
  counting_pass(training, step, request.num_steps, position, record);
  memory_pass(training, device, step + request.num_steps, position, record);
  if (!device.is_cuda()) return;
  position = {"kernel", -1, {}};
  kernel_pass(training, device, step + request.num_steps + 1, request.num_steps, record);
}

// Allocations that succeeded only after the allocator had given its whole cache back.
std::int64_t num_allocator_retries(at::Device device) {
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  return c10::getDeviceAllocator(device.type())->getDeviceStats(index).num_alloc_retries;
}

void time_pass(const PointRequest& request, at::Device device, Training& training,
               Position& position, PointRecord& record) {
  warm_up(training, 0, kWarmUpSteps, position);
  position = {"time", -1, {}};
  const auto monitor = device.is_cuda() ? open_gpu_monitor() : nullptr;
  const std::int64_t retries_before = device.is_cuda() ? num_allocator_retries(device) : 0;
  TimeListener listener(position, device, monitor.get());
  at::Tensor loss;
  for (int step = 0; step < request.num_steps; ++step) {
    loss = training.step(kWarmUpSteps + step, listener);
  }
  require_finite(loss.item<double>(), kWarmUpSteps + request.num_steps - 1);
  record.time.emplace();
  record.time->samples = {listener.steps};
  for (const auto& [phase, samples] : listener.phases) {
    record.time->phases[phase] =
        std::chrono::nanoseconds(static_cast<std::int64_t>(median(samples)));
  }
  if (!device.is_cuda()) return;
  record.time->device_state = summarize_readings(listener.readings);
  record.time->device_state->allocator_retries = num_allocator_retries(device) - retries_before;
}

// One step after the timed ones, so that these are undisturbed, in the same process, so that both
// meet the same allocator and caches.
void class_time_pass(Training& training, std::int64_t step, Position& position,
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

void fail(PointRecord& record, PointStatus status, const std::string& reason) {
  record.status = status;
  record.reason = reason.substr(0, reason.find('\n'));
}

void fail_for_memory(PointRecord& record, const Position& position, const std::string& what,
                     std::optional<Bytes> requested) {
  fail(record, PointStatus::kOom, what + " (" + position.describe() + ")");
  record.failure.emplace();
  record.failure->requested = requested;
  if (position.step >= 0) record.failure->phase = position.phase;
  const bool is_known =
      record.device == "cuda" || (record.device == "cpu" && counting_allocators_installed());
  if (!is_known) return;
  if (!record.memory) record.memory.emplace();
  record.memory->peak_allocated = DeviceMemory(at::Device(record.device)).peak();
}

// LibTorch's own CPU allocator, which the time pass uses, has no error type of its own.
void fail_for_error(PointRecord& record, const Position& position, const std::string& what) {
  if (what.find("DefaultCPUAllocator") != std::string::npos) {
    fail_for_memory(record, position, "out of memory: " + what, requested_bytes(what));
  } else {
    fail(record, PointStatus::kCrash, what + " (" + position.describe() + ")");
  }
}

void measure(const PointRequest& request, Position& position, PointRecord& record) {
  const at::Device device(request.device);
  TrainingSettings settings;
  settings.model = spec_of(request);
  settings.data_file = request.data_file;
  settings.seed = request.identity.seed;
  settings.device = device;
  settings.optimizer = optimizer_from_string(request.identity.optimizer).value();
  Training training(settings);
  training.use_plan(request.plan, request.identity.schedule);
  if (request.pass == Pass::kExact) {
    exact_passes(request, device, training, position, record);
  } else if (request.pass == Pass::kParity) {
    parity_pass(training, device, request.num_steps, position, record);
  } else {
    time_pass(request, device, training, position, record);
    // On a GPU a call is over when its kernels are launched; the kernel pass times those.
    if (!device.is_cuda()) {
      class_time_pass(training, kWarmUpSteps + request.num_steps, position, record);
    }
  }
}

// Backward's listener does not hear of recompute; the engine knows what threw.
void run_watched(const PointRequest& request, Position& position, PointRecord& record) {
  try {
    measure(request, position, record);
  } catch (...) {
    if (take_recompute_failure()) position.phase = Phase::kRecompute;
    throw;
  }
}

}  // namespace

PointRecord run_passes(const PointRequest& request) {
  if (request.pass != Pass::kTime) {
    install_counting_allocators();
    reset_memory_peaks();
  }
  at::set_num_threads(request.identity.threads);
  use_attention_backend(attention_backend_from_string(request.identity.attention_backend).value());
  PointRecord record;
  record.identity = request.identity;
  record.policy = request.policy;
  record.device = request.device;
  Position position;
  take_recompute_failure();  // of a request before this one
  try {
    run_watched(request, position, record);
  } catch (const OutOfMemory& error) {
    fail_for_memory(record, position, error.what(), error.requested);
  } catch (const c10::OutOfMemoryError& error) {
    fail_for_memory(record, position, error.what_without_backtrace(),
                    requested_bytes(error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    fail_for_memory(record, position, "out of memory: the process got no more", std::nullopt);
  } catch (const LossNotFinite& error) {
    fail(record, PointStatus::kInvalid, error.what());
  } catch (const c10::Error& error) {
    fail_for_error(record, position, error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(record, PointStatus::kCrash, std::string(error.what()) + " (" + position.describe() + ")");
  }
  return record;
}

}  // namespace rematch
