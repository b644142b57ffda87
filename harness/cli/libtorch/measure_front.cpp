#include "harness/cli/libtorch/measure_front.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/run_request.h"
#include "harness/cli/libtorch/profile_here.h"
#include "harness/cli/libtorch/run_setup.h"
#include "harness/measure/memory.h"
#include "harness/run/comparison.h"
#include "harness/run/prediction/memory_fit.h"
#include "harness/training/device.h"
#include "models/preset/parallel.h"
#include "policies/catalogue/catalogue.h"
#include "policies/search/front/front_json.h"
#include "policies/search/front/measured_front.h"

namespace rematch {
namespace {

PlanePoint predicted(const FrontPoint& point) {
  return {point.figures.peak.count, point.step_time.count()};
}

std::vector<PlanePoint> predicted(const Front& front) {
  std::vector<PlanePoint> plane;
  for (const FrontPoint& point : front.points) plane.push_back(predicted(point));
  return plane;
}

// Lists each plan once. Plans without regions are left out, because the reference is already such a
// plan.
std::vector<GivenPlan> plans_to_run(const Front& front, const std::vector<std::size_t>& chosen) {
  std::vector<GivenPlan> plans;
  std::set<std::string> known;
  const auto add = [&](const Plan& plan) {
    if (plan.regions.empty() || !known.insert(plan_sha256(plan)).second) return;
    plans.push_back({plan, front.schedule});
  };
  for (const std::size_t index : chosen) add(front.points[index].plan);
  for (const Baseline& baseline : front.baselines) add(baseline.point.plan);
  return plans;
}

}  // namespace

RunRequest request_of(const SearchFlags& flags, const std::string& device, const Front& front,
                      const std::vector<std::size_t>& chosen) {
  RunRequest request;
  request.device = device;
  request.model = flags.model.spec();
  set_kernels(flags, request);
  request.policies = {none_policy()};
  request.reference = request.policies.front().name;
  request.plans = plans_to_run(front, chosen);
  request.schedules = {front.schedule};
  request.optimizer = parse_optimizer(flags.optimizer);
  set_measurement(flags, request);
  if (request.rounds.most == 0) {
    throw UsageError(
        "--rounds 0 measures no times, and a measured front needs them; give 2 or more");
  }
  return request;
}

namespace {

MeasuredFigures figures_of(const PointRecord& point) {
  MeasuredFigures figures;
  figures.status = to_string(point.status);
  figures.reason = point.reason;
  if (point.status != PointStatus::kOk) return figures;
  if (point.memory) figures.peak = peak_of_tensors(*point.memory);
  if (point.time) {
    figures.step_time = point.time->step_median;
    figures.step_interval = point.time->step_interval;
  }
  return figures;
}

// Adds the measured figures of the points that were run: the chosen points and every baseline.
void add_figures(const Report& report, const std::vector<std::size_t>& chosen, Front& front) {
  std::map<std::string, MeasuredFigures> by_plan;
  for (const PointRecord& point : report.points) {
    by_plan[point.identity.plan_sha256] = figures_of(point);
  }
  const MeasuredFigures reference = figures_of(report.points.front());
  const auto add = [&](FrontPoint& point) {
    point.measured = point.plan.regions.empty() ? reference : by_plan.at(plan_sha256(point.plan));
  };
  for (const std::size_t index : chosen) add(front.points[index]);
  for (Baseline& baseline : front.baselines) add(baseline.point);
}

// Returns the largest workspace in the report's points. Predictions do not include the workspaces
// of libraries.
std::optional<Bytes> workspace_of(const Report& report) {
  std::optional<Bytes> most;
  for (const PointRecord& point : report.points) {
    if (point.memory) most = std::max(most, point.memory->workspace);
  }
  return most;
}

// Returns the attention kernel of the timed steps.
std::string timed_attention(const PointRecord& point) {
  const bool is_chosen = point.time && !point.time->attention_backend.empty();
  return is_chosen ? point.time->attention_backend : point.identity.attention_backend;
}

// Warns if the points were timed with a different attention kernel from that of the front's
// profile. Such a measurement does not test the front's prediction.
void warn_of_other_attention(const FrontRecord& record, const Report& report) {
  const std::string timed = timed_attention(report.points.front());
  if (record.attention_backend.empty() || record.attention_backend == timed) return;
  print_warnings({"the front's times were measured with attention " + record.attention_backend +
                  ", but its points were timed with " + timed + "; make the profile again with " +
                  "--attention " + timed});
}

// Returns the A/A interval of the reference's point.
std::optional<std::array<double, 2>> control_interval(const Report& report) {
  for (const PointRecord& point : report.points) {
    if (point.time && point.time->control) return point.time->control->interval;
  }
  return std::nullopt;
}

}  // namespace

void require_measurable(const SearchFlags& flags) {
  if (!flags.trace_file.empty()) {
    throw UsageError("--measure runs the model, which a trace does not contain; give --model");
  }
  if (!flags.device.empty() && !is_measured_device(flags.device)) {
    throw UsageError("--measure runs on this machine's cpu or cuda, not on " + flags.device +
                     "; give --device cpu, or --profile FILE from rematch profile");
  }
  if (flags.device.starts_with("cuda")) {
    throw UsageError(
        "--measure --device cuda would share the GPU with the process that times the ops; give "
        "--profile FILE from rematch profile --device cuda");
  }
  const ModelSpec spec = flags.model.spec();
  if (world_size(spec) > 1) {
    throw UsageError("--measure runs a single process, but " + layout_text(spec.dimensions) +
                     " is a prediction for " + std::to_string(world_size(spec)) +
                     "; leave out --measure or the layout");
  }
}

ExitCode measure_front(const SearchFlags& flags, FrontRecord& record) {
  prepare_children();
  const std::vector<PlanePoint> plane = predicted(record.front);
  const std::vector<std::size_t> chosen =
      choose_measured(plane, static_cast<std::size_t>(flags.num_measured));
  RunSettings settings =
      require(settings_here(request_of(flags, record.device, record.front, chosen)));
  const RunRequest& request = settings.request;
  if (request.num_threads > 0) at::set_num_threads(request.num_threads);
  settings.threads = at::get_num_threads();
  if (request.device == "cpu" && !request.force) {
    settings.limit = available_memory_of(request.device);
  }
  settings.points_folder = points_folder_of(flags.output);
  const bool on_cuda = names_cuda(request.device);
  use_allocator(settings.allocator);
  const std::vector<Variant> variants = require(make_variants(settings));
  if (!request.force) {
    const std::string why = why_none_fits(variants, available_memory_of(request.device));
    if (!why.empty()) {
      throw UsageError("no point can be run; the smallest, " + why +
                       "; choose a smaller model, or run it anyway with --force");
    }
  }
  const Provenance provenance =
      make_provenance(flags.command, request.device, settings.allocator, request.seed);
  record.device_memory =
      on_cuda ? provenance.environment.device_memory : provenance.environment.host_memory;
  if (on_cuda && !record.reserve && record.device_memory) {
    record.reserve = usual_reserve(nullptr, *record.device_memory, /*num_communicators=*/0);
  }
  const Report report = run_comparison(settings, variants, provenance);
  warn_of_other_attention(record, report);
  add_figures(report, chosen, record.front);
  weigh_measurement(record.front, choose_anchors(plane), control_interval(report));
  record.front.measurement->workspace = workspace_of(report);
  return exit_code_of(report);
}

}  // namespace rematch
