#include "harness/run/passes/passes.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <new>
#include <optional>
#include <string>

#include "harness/measure/cuda_device.h"
#include "harness/measure/device_memory.h"
#include "harness/measure/memory.h"
#include "harness/measure/op_counter.h"
#include "harness/profile/allocator_snapshot.h"
#include "harness/ranks/collective_log.h"
#include "harness/run/children/out_of_memory.h"
#include "harness/run/children/rank_records.h"
#include "harness/training/device.h"
#include "kernels/attention/backend.h"
#include "policies/base/file.h"

namespace rematch {
namespace {

// On several ranks each step's collectives are held against the others'.
RanksRecord::Counts counting_pass(Training& training, Job& job, std::int64_t first_step,
                                  int num_steps, PassPosition& position, PointRecord& record) {
  position = {"counting", -1, {}};
  OpCounter counter;
  CollectiveLog log;
  OpObservers both({&log, &counter});
  Watching listener(position);
  {
    OpObserver* const whole = &both;
    const OpObserverGuard observe(job.is_alone() ? &counter : whole);
    for (int step = 0; step < num_steps; ++step) {
      log.begin_step();
      training.step(first_step + step, listener);
      job.compare(log);
    }
  }
  record.counts = counter.record(num_steps);
  return log.totals().bytes;
}

void exact_passes(const PointRequest& request, Job& job, Training& training, PassPosition& position,
                  PointRecord& record) {
  const at::Device device = job.device();
  record.warm_up_steps = kWarmUpSteps;
  std::int64_t step = 0;
  if (computes_values(request.device) && !job.is_pretended()) {
    parity_pass(training, job, request.num_steps, position, record);
    step = request.num_steps;
  }
  const int missing = kWarmUpSteps - static_cast<int>(step);
  if (missing > 0) {
    warm_up(training, step, missing, position);
    step += missing;
  }
  const RanksRecord::Counts collective_bytes =
      counting_pass(training, job, step, request.num_steps, position, record);
  record.memory = memory_pass(training, device, step + request.num_steps, position);
  if (!job.is_alone()) note_rank(job.rank(), collective_bytes, record);
  step += request.num_steps + 1;
  if (record.memory->host && computes_values(request.device)) {
    copy_time_pass(training, device, step, request.num_steps, position, *record.memory->host);
  }
  if (!device.is_cuda()) return;
  position = {"kernel", -1, {}};
  kernel_pass(training, device, step, request.num_steps, record);
  if (request.snapshot_file.empty()) return;
  snapshot_pass(training, step - 1, request.snapshot_file, position);
}

// Writes down why a point ended early.
class EarlyEnd {
 public:
  EarlyEnd(PointRecord& record, const PassPosition& position, at::Device device)
      : record_(record), position_(position), device_(device) {}

  void is(PointStatus status, const std::string& reason) {
    record_.status = status;
    record_.reason = reason.substr(0, reason.find('\n'));
  }

  void is_crash(const std::string& what) {
    is(PointStatus::kCrash, what + " (" + position_.describe() + ")");
  }

  void is_out_of_memory(const std::string& what, std::optional<Bytes> requested) {
    is(PointStatus::kOom, without_advice(what) + " (" + position_.describe() + ")");
    record_.failure.emplace();
    record_.failure->requested = requested;
    if (position_.step >= 0) record_.failure->phase = position_.phase;
    if (!device_.is_cuda() && !(device_.is_cpu() && counting_allocators_installed())) return;
    if (!record_.memory) record_.memory.emplace();
    record_.memory->peak_allocated = DeviceMemory(device_).peak();
  }

  // Allocators and libraries of a device that have no error type of their own for it.
  void is_error(const std::string& what) {
    if (speaks_of_memory(what)) {
      is_out_of_memory("out of memory: " + what, requested_bytes(what));
    } else {
      is_crash(first_line_of(what));
    }
  }

 private:
  static std::string first_line_of(const std::string& text) {
    return text.substr(0, text.find('\n'));
  }

  PointRecord& record_;
  const PassPosition& position_;
  at::Device device_;
};

void measure(const PointRequest& request, PassPosition& position, PointRecord& record) {
  Job job(request);
  const at::Device device = job.device();
  if (!request.snapshot_file.empty()) record_allocations();  // what leads to running out of memory
  TrainingSettings settings;
  settings.model = job.spec();
  settings.data_file = request.data_file;
  settings.seed = request.identity.seed;
  settings.device = device;
  settings.optimizer = optimizer_from_string(request.identity.optimizer).value();
  settings.begin_step = [&job](std::int64_t step) { job.begin_step(step); };
  if (request.pass == Pass::kTime) settings.determinism = request.timed_as;
  Training training(settings);
  training.use_plan(request.plan, request.identity.schedule);
  if (request.pass == Pass::kExact) {
    exact_passes(request, job, training, position, record);
  } else if (request.pass == Pass::kParity) {
    parity_pass(training, job, request.num_steps, position, record);
  } else {
    time_pass(training, job, request.num_steps, position, record);
    if (device.is_cuda()) {
      record.time->repeatable_bits = request.timed_as == Determinism::kRepeatableBits;
    }
  }
}

// Backward's listener does not hear of recompute; the engine knows what threw.
void run_watched(const PointRequest& request, PassPosition& position, PointRecord& record) {
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
  if (request.libtorch_chooses_attention) let_libtorch_choose_attention();
  PointRecord record;
  record.identity = request.identity;
  record.policy = request.policy;
  record.device = device_kind(request.device);
  PassPosition position;
  EarlyEnd end(record, position, device_named(request.device));
  take_recompute_failure();  // of a request before this one
  try {
    run_watched(request, position, record);
  } catch (const OutOfMemory& error) {
    end.is_out_of_memory(error.what(), error.requested);
  } catch (const c10::OutOfMemoryError& error) {
    end.is_out_of_memory(error.what_without_backtrace(),
                         requested_bytes(error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    end.is_out_of_memory("out of memory: the process got no more", std::nullopt);
  } catch (const LossNotFinite& error) {
    end.is(PointStatus::kInvalid, error.what());
  } catch (const c10::Error& error) {
    end.is_error(error.what_without_backtrace());
  } catch (const std::exception& error) {
    end.is_crash(error.what());
  }
  if (record.status == PointStatus::kOom && !request.snapshot_file.empty()) {
    write_file_atomically(request.snapshot_file, take_allocator_snapshot());
  }
  return record;
}

}  // namespace rematch
