#include "harness/cli/flags/predict_flags.h"

#include "harness/cli/files/links_file.h"
#include "harness/cli/files/profile_file.h"

namespace rematch {

PredictFlags::PredictFlags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
  app.add_option("--trace", trace_file, "Stored trace to use instead of --model");
  add_policy_flags(app);
  schedule_option = app.add_option("--schedule", schedule,
                                   "whole_region, on_demand or both (default: the schedule of "
                                   "the front that --plan names, else on_demand)");
  optimizer_option =
      app.add_option("--optimizer", optimizer,
                     "adamw, adamw(state=bfloat16), adamw8bit, muon, sgd, sgd(momentum=0.9) or "
                     "none (default: the optimizer of the front that --plan names, else adamw)");
  model.add_world(app);
  app.add_flag("--round-512", round_512, "Round sizes as CUDA's caching allocator does");
  app.add_option("--device", device,
                 "Also predict how long steps take, from the card's data sheet: h100, h200, "
                 "l40s, a100 or b200");
  app.add_option("--links", links_file,
                 "With --device: times of collectives from rematch profile --links, in place of "
                 "the data sheet's link");
  app.add_option("--profile", profile_file,
                 "The same from a profile's times; with --round-512 also what kernels allocate "
                 "themselves, if it was measured on a GPU");
  app.add_flag("--json", json, "Print JSON instead of the table");
}

std::optional<Profile> profile_of(const PredictFlags& flags, const Trace& trace) {
  if (!flags.profile_file.empty()) return require_profile(flags.profile_file, trace);
  if (flags.device.empty()) return std::nullopt;
  return sheet_profile(trace, flags.device, flags.links_file);
}

}  // namespace rematch
