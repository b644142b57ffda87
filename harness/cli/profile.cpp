#include <cstdio>
#include <optional>

#include "harness/cli/commands.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/model_flags.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/libtorch/profile_here.h"
#include "harness/cli/libtorch/profile_links.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/predict/device/project_profile.h"
#include "policies/predict/device/roofline.h"
#include "policies/trace/profile_json.h"

namespace rematch {
namespace {

constexpr int kMaxLayers = 10'000;

struct ProfileFlags : KernelFlags, OutputFlags {
  explicit ProfileFlags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
    app.add_option(
        "--trace", trace_file,
        "Stored trace to profile instead of --model; --device must then name a data sheet");
    app.add_option("--device", device,
                   "cpu or cuda: measured here; h100, h200, l40s, a100 or b200: computed from the "
                   "card's data sheet");
    add_ceilings(app, ceilings_file);
    add_kernel_flags(app);
    app.add_option("--steps", num_steps,
                   "Number of steps over which medians are taken; with --links, number of calls")
        ->check(CLI::Range(1, kMaxSteps));
    app.add_option(
           "--measure-layers", measured_layers,
           "Number of layers to measure; every other layer gets the times of a measured layer of "
           "its kind, so each kind must be among the measured layers (default: all layers)")
        ->check(CLI::Range(1, kMaxLayers));
    app.add_option("--optimizer", optimizer, "adamw, adamw(learning_rate=3e-4) or none");
    add_threads(app, num_threads);
    app.add_flag("--links", links,
                 "Measure links instead of a model's ops: times collectives between the ranks of "
                 "--parallel and copies to the host, for a range of sizes. predict --links and "
                 "search --links read the file");
    app.add_option("--against", measured_file,
                   "Measured profile of the same trace, to which the roofline is compared");
    add_force(app, force);
    add_output_flags(app, "File to write (default: stdout)");
  }
  ModelFlags model;
  std::string trace_file;
  std::string device = "cpu";
  int num_steps = 10;
  int measured_layers = 0;  // number of layers to measure; all if 0
  std::string optimizer = "adamw";
  int num_threads = 0;
  std::string measured_file;
  std::string ceilings_file;
  bool links = false;
  bool force = false;
};

std::string device_in_words(const Profile& profile) {
  return profile.card.empty() ? profile.device : profile.card;
}

std::string measured_in_words(const Profile& profile) {
  std::string words = "measured";
  if (profile.measured_layers) {
    words += " on " + std::to_string(*profile.measured_layers) +
             " layers; the other layers reuse these times";
  }
  words += ", medians over " + std::to_string(profile.num_steps) + " steps";
  if (!profile.attention_backend.empty()) words += ", attention " + profile.attention_backend;
  return words;
}

std::string source_in_words(const Profile& profile) {
  if (profile.source == ProfileSource::kMeasured) return measured_in_words(profile);
  if (!profile.ceilings.empty()) return "by measured ceilings (" + profile.ceilings + ")";
  return "roofline: the data sheet's peak rates, a lower bound";
}

void say_times(const Profile& profile) {
  say(profile.model + ", " + device_in_words(profile) + ": step " +
      format_duration(profile.step_time()) + " = forward " +
      format_duration(profile.forward_time()) + " + backward " +
      format_duration(profile.backward_time()) + " + optimizer " +
      format_duration(profile.optimizer) + "; " + source_in_words(profile));
  if (const auto most = most_temporary(profile)) {
    say("kernels allocate at most " + format_bytes(*most) +
        " in addition to the tensors at op boundaries");
  } else if (profile.device != "cpu") {
    say(std::string(kTemporariesNotMeasured));
  }
}

void say_error(const Profile& roofline, const Profile& measured) {
  const RooflineError error = roofline_error(roofline, measured);
  say("measured on " + device_in_words(measured) + ": the step takes " +
      format_fixed(error.step_time_ratio, 2) +
      " times the roofline; the median op of forward takes " +
      format_fixed(error.median_op_ratio, 2) + " times its roofline");
}

Profile measure(const ProfileFlags& flags, const Trace& trace) {
  ProfileSettings settings{
      flags.model.spec(), flags.device, flags.optimizer, flags.num_threads,
      flags.num_steps,    flags.force,  flags.attention, flags.deterministic_times};
  if (flags.measured_layers == 0) return profile_here(settings, trace);
  settings.model = flags.model.spec_with_layers(flags.measured_layers);
  const Trace few = record_trace(settings.model);
  return require(project_profile(profile_here(settings, few), few, trace, flags.measured_layers));
}

Profile make_profile(const ProfileFlags& flags, const Trace& trace) {
  if (is_measured_device(flags.device)) return measure(flags, trace);
  return sheet_profile(trace, flags.device, {.links = "", .ceilings = flags.ceilings_file});
}

// Reads the measured times to which the roofline is compared. Throws UsageError for times of
// another device, because the comparison would mean nothing.
Profile measured_profile(const ProfileFlags& flags, const Trace& trace) {
  Profile measured = require_profile(flags.measured_file, trace);
  if (measured.source != ProfileSource::kMeasured) {
    throw UsageError("'" + flags.measured_file +
                     "' is a roofline itself; --against takes a "
                     "measured profile");
  }
  const DeviceSheet* sheet = sheet_of(measured);
  if (sheet == nullptr || sheet->name != flags.device) {
    throw UsageError("'" + flags.measured_file + "' has times of " + device_in_words(measured) +
                     ", but the roofline is computed for " + flags.device +
                     "; give a profile that was measured on " + flags.device);
  }
  return measured;
}

ExitCode measure_links(const ProfileFlags& flags) {
  if (!is_measured_device(flags.device)) {
    throw UsageError("--links measures this machine, but " + flags.device +
                     " is a data sheet; give --device cpu or cuda");
  }
  if (!flags.trace_file.empty() || !flags.measured_file.empty() || flags.measured_layers > 0 ||
      !flags.ceilings_file.empty() || !flags.attention.empty() || flags.deterministic_times) {
    throw UsageError(
        "--links measures no model; leave out --trace, --against, --measure-layers, --ceilings, "
        "--attention and --deterministic-times");
  }
  const auto layout = flags.model.layout_alone();
  require_measured_device(flags.device, "profile --links --device " + flags.device);
  return profile_links(layout, flags.device, flags.num_steps, flags.request({file_kind::kLinks}));
}

ExitCode profile(const ProfileFlags& flags) {
  if (flags.links) return measure_links(flags);
  const bool is_measured = is_measured_device(flags.device);
  if (!is_measured && find_device_sheet(flags.device) == nullptr) {
    throw UsageError(unknown_device(flags.device).message);
  }
  if (is_measured && !flags.trace_file.empty()) {
    throw UsageError(
        "--trace cannot be measured, because a measurement runs the model; give --model, or "
        "--device h100 for a roofline");
  }
  if (!is_measured && flags.measured_layers > 0) {
    throw UsageError("--measure-layers requires a measured device; a roofline covers all layers");
  }
  if (is_measured && !flags.measured_file.empty()) {
    throw UsageError("--against compares a roofline with a measured profile; give --device h100");
  }
  if (!is_measured && (!flags.attention.empty() || flags.deterministic_times)) {
    throw UsageError("--attention and --deterministic-times choose kernels to measure, but " +
                     flags.device + " is a data sheet; give --device cpu or cuda");
  }
  if (!flags.ceilings_file.empty()) {
    require_ceilings(flags.ceilings_file, flags.device, /*has_profile=*/false);
  }
  if (is_measured) require_measured_device(flags.device, "profile --device " + flags.device);
  const OutputFile output(flags.request(
      {file_kind::kProfile}, {flags.trace_file, flags.measured_file, flags.ceilings_file}));
  const Trace trace = obtain_trace(flags.model, flags.trace_file);
  output.require_model(trace.model);
  std::optional<Profile> measured;
  if (!flags.measured_file.empty()) measured = measured_profile(flags, trace);
  const Profile made = make_profile(flags, trace);
  say_times(made);
  if (measured) say_error(made, *measured);
  write_output(flags.output, profile_to_json(made, trace));
  return ExitCode::kOk;
}

}  // namespace

void add_profile(CLI::App& app, Action& action) {
  add_command<ProfileFlags>(
      app, action, "profile",
      "Gives the time of each op in a model's trace, measured here or computed from a data sheet",
      profile,
      "Examples:\n"
      "  rematch profile --model llama_small --steps 20 -o llama.profile.json\n"
      "  rematch profile --model llama3_1b --tokens 256 --measure-layers 3 -o 1b.profile.json\n"
      "  rematch profile --model llama3_1b --dtype bfloat16 --device cuda -o gpu.profile.json\n"
      "  rematch profile --model llama3_8b --tokens 8192 --device h100 -o h100.profile.json\n"
      "  rematch profile --model llama3_1b --device h200 --ceilings ceilings.json -o h200.json\n"
      "  rematch profile --trace llama.trace.json --device l40s --against measured.profile.json\n"
      "  rematch profile --links --parallel tp=2 -o cpu.links.json\n"
      "  rematch profile --links --parallel fsdp=8 --device cuda -o node.links.json");
}

}  // namespace rematch
