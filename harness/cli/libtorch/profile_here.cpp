#include "harness/cli/libtorch/profile_here.h"

#include <ATen/Parallel.h>

#include "harness/cli/flags/require.h"
#include "harness/cli/flags/run_request.h"
#include "harness/cli/libtorch/run_setup.h"
#include "harness/profile/device_profile.h"
#include "harness/run/prediction/memory_fit.h"
#include "harness/run/run_settings.h"
#include "harness/training/device.h"
#include "kernels/attention/backend.h"
#include "models/preset/parallel.h"
#include "policies/base/format.h"
#include "policies/predict/step/step.h"

namespace rematch {

void require_measured_device(const std::string& device, const std::string& command) {
  require(usable_device(device));
  if (!computes_values(device)) {
    throw UsageError(command +
                     ": the dry device has no times; rematch profile --device h100 computes times "
                     "from the card's data sheet");
  }
}

namespace {

// A profile runs steps that keep all activations. The predicted peak of such a step is a lower
// bound of the memory needed.
void require_memory(const ProfileSettings& settings, const OptimizerChoice& optimizer,
                    const Trace& trace) {
  const std::optional<AvailableMemory> limit = usual_memory_of(settings.device);
  if (settings.force || !limit) return;
  const Bytes peak = StepSimulator(trace, optimizer.kind)
                         .simulate(std::vector<LocatedRegion>{}, Schedule::kOnDemand)
                         .peak_bytes();
  if (peak <= limit->bytes) return;
  throw UsageError("profile runs steps that keep all activations, so the predicted peak is " +
                   format_bytes(peak) + "; " + limit->what + ": " + format_bytes(limit->bytes) +
                   "; run fewer layers (rematch profile --measure-layers 3), use a data sheet's "
                   "times (--device h100), or run it anyway with --force");
}

// Uses the same kernels as the timed steps of `rematch run`, because times of other kernels would
// not predict those steps.
void use_attention_of_run(const ProfileSettings& settings) {
  const auto attention =
      require(choose_attention(settings.attention, settings.device, settings.model.dtype));
  use_attention_backend(attention_backend_from_string(attention.backend).value());
  if (attention.libtorch_chooses) use_attention_of_libtorch();
}

}  // namespace

Profile profile_here(const ProfileSettings& settings, const Trace& trace) {
  if (world_size(settings.model) > 1) {
    throw UsageError(
        "op times are measured in a single process, but the model is sharded over " +
        std::to_string(world_size(settings.model)) +
        " ranks; leave --parallel out, or use a data sheet's times with --device h100");
  }
  TrainingSettings training;
  training.model = settings.model;
  training.optimizer = parse_optimizer(settings.optimizer);
  require_memory(settings, training.optimizer, trace);
  training.device = device_named(settings.device);
  // This sets environment variables, so it must run before CUDA's libraries read them.
  prepare_children();
  if (settings.num_threads > 0) at::set_num_threads(settings.num_threads);
  use_attention_of_run(settings);
  if (!settings.deterministic_times) training.determinism = Determinism::kFastest;
  return profile_on_device(trace, training, settings.num_steps);
}

}  // namespace rematch
