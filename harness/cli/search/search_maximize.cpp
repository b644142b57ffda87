#include "harness/cli/search/search_maximize.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/libtorch/predict_model.h"
#include "harness/cli/libtorch/profile_here.h"
#include "harness/cli/predicted_steps.h"
#include "harness/cli/search/logits_choice.h"
#include "harness/cli/search/search_limits.h"
#include "harness/measure/source_state.h"
#include "harness/process/interrupt.h"
#include "models/preset/parallel.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/catalogue/resolve.h"
#include "policies/search/front/front_search.h"
#include "policies/search/loads/loads.h"
#include "policies/search/pipeline/pipeline_front.h"
#include "reports/render/tables/front_table.h"
#include "reports/render/tables/load_table.h"

namespace rematch {
namespace {

void require_maximizable(const SearchFlags& flags) {
  if (flags.maximize != "tokens_per_second") {
    throw UsageError("--maximize '" + flags.maximize +
                     "' is unknown; allowed is tokens_per_second");
  }
  if (!flags.model.range()) {
    throw UsageError("--maximize needs a range of sizes; give --batch 1:64 or --tokens 1024:16384");
  }
  if (!flags.trace_file.empty()) {
    throw UsageError("--maximize tries several shapes, but a trace has one shape; give --model");
  }
  if (!flags.profile_file.empty() || is_measured_device(flags.device)) {
    throw UsageError(
        "--maximize needs op times at every batch size or token count that it tries, but a "
        "measured "
        "profile contains the times of one size, and op times do not scale with the size; give a "
        "data sheet's times with --device h100");
  }
  if (flags.num_measured != 0 || !flags.max_slowdown.empty() || flags.fail_behind_baselines) {
    throw UsageError(
        "--maximize cannot be combined with --measure, --max-slowdown or --fail-behind-baselines");
  }
}

std::int64_t tokens_in_step(const ModelSpec& spec) {
  const std::int64_t batch = spec.option("batch") > 0 ? spec.option("batch") : 1;
  return spec.at("tokens") * batch * micro_batches(spec);
}

LoadsRecord record_of(const SearchFlags& flags, const SearchSpace& space, Bytes budget) {
  const DimensionRange& range = *flags.model.range();
  const ModelSpec spec = flags.model.spec_at(range.least);
  LoadsRecord record;
  record.model = spec.preset;
  record.dimensions = spec.dimensions;
  record.dtype = spec.dtype;
  record.device = flags.device;
  if (!flags.links_file.empty()) record.links = read_links(flags.links_file).name;
  if (!flags.ceilings_file.empty()) record.ceilings = read_ceilings(flags.ceilings_file).name;
  record.optimizer = space.optimizer;
  record.schedule = space.schedule;
  record.world = static_cast<int>(world_size(spec));
  record.num_batches = static_cast<int>(data_ranks(spec));
  record.budget = budget;
  record.dimension = range.name;
  record.least = range.least;
  record.most = range.most;
  note_source_state(record);
  return record;
}

// These functions return nothing if no plan fits.
std::optional<FrontPoint> fastest_of_stages(const SearchFlags& flags, const SearchSpace& space,
                                            const ModelSpec& spec, Bytes budget) {
  const TracedModel model = trace_for_prediction(spec, space.optimizer, Sizes::kExact);
  const std::vector<const Trace*> traces = traces_of_stages(model);
  std::vector<Profile> profiles;
  for (const Trace* trace : traces) profiles.push_back(sheet_times(flags, *trace));
  std::vector<SearchedStage> stages;
  for (std::size_t stage = 0; stage < traces.size(); ++stage) {
    stages.push_back({*traces[stage], profiles[stage], resolve_none(*traces[stage])});
  }
  const Profile::Duration passing = passing_between(*traces.at(1), find_device_sheet(flags.device));
  return PipelineSearch(stages, space, passing).fastest_within(budget);
}

std::optional<FrontPoint> fastest_of_form(const SearchFlags& flags, SearchSpace space,
                                          const ModelSpec& spec, Bytes budget) {
  if (num_stages(spec.dimensions) > 1) return fastest_of_stages(flags, space, spec, budget);
  const Trace trace = record_trace(spec);
  const Profile profile = sheet_times(flags, trace);
  add_host_link(flags, trace, profile, space);
  return FrontSearch(trace, profile, space, resolve_none(trace)).fastest_within(budget);
}

// Tries both treatments of the logits, if the search has this choice.
std::optional<FrontPoint> fastest_plan(const SearchFlags& flags, const SearchSpace& space,
                                       std::int64_t load, Bytes budget) {
  std::optional<FrontPoint> fastest =
      fastest_of_form(flags, space, flags.model.spec_at(load), budget);
  const std::optional<SearchFlags> kept_flags = with_kept_logits(flags);
  if (!kept_flags || space.is_stopped()) return fastest;
  std::optional<FrontPoint> kept =
      fastest_of_form(*kept_flags, space, kept_flags->model.spec_at(load), budget);
  if (!kept || (fastest && fastest->step_time <= kept->step_time)) return fastest;
  kept->saves = std::string(kKeepsLogits) + (kept->saves.empty() ? "" : "; ") + kept->saves;
  return kept;
}

std::optional<LoadPlan> best_plan(const SearchFlags& flags, const SearchSpace& space,
                                  const LoadsRecord& record, std::int64_t load) {
  const ModelSpec spec = flags.model.spec_at(load);
  std::optional<FrontPoint> fastest = fastest_plan(flags, space, load, record.budget);
  if (!fastest) return std::nullopt;
  const double rate = static_cast<double>(tokens_in_step(spec)) /
                      std::chrono::duration<double>(fastest->step_time).count();
  return LoadPlan{load,
                  rate,
                  rate * record.num_batches,
                  fastest->step_time,
                  fastest->figures.peak,
                  fastest->figures.num_recomputed,
                  std::move(fastest->saves)};
}

// Prints progress, because each batch size or token count needs a search of its own, which takes
// seconds on a large model.
void say_tried(const std::string& dimension, std::int64_t load,
               const std::optional<LoadPlan>& plan) {
  const std::string outcome = !plan ? "no plan fits"
                                    : format_fixed(*plan->tokens_per_second, 0) +
                                          " tokens/s, peak " + format_bytes(*plan->peak);
  say(dimension + " " + std::to_string(load) + ": " + outcome);
}

// Returns --budget or the device's memory, minus the reserve. Prints the subtraction to stderr.
Bytes budget_for_loads(const SearchFlags& flags, std::optional<Bytes> measured_memory) {
  const DeviceSheet& sheet = *find_device_sheet(flags.device);
  const std::optional<Bytes> asked = parse_reserve(flags.reserve);
  if (!flags.budget.empty() && !asked) return parse_bytes(flags.budget);
  const Bytes memory =
      flags.budget.empty() ? measured_memory.value_or(sheet.memory) : parse_bytes(flags.budget);
  const ModelSpec spec = flags.model.spec_at(flags.model.range()->least);
  const MemoryReserve reserve =
      asked ? MemoryReserve{{}, {}, {}, *asked}
            : usual_reserve(&sheet, memory, static_cast<int>(rank_groups(spec).size()));
  const Bytes budget = memory_less_reserve(memory, reserve.total());
  say("tensors may take " + format_bytes(budget) + ": " + format_bytes(memory) + " less " +
      reserve_words(reserve));
  return budget;
}

}  // namespace

ExitCode maximize(const SearchFlags& flags, const SearchSpace& space,
                  std::optional<Bytes> measured_memory) {
  require_maximizable(flags);
  const Bytes budget = budget_for_loads(flags, measured_memory);
  const DimensionRange range = *flags.model.range();
  LoadsRecord record = record_of(flags, space, budget);
  const bool tries_grids = range.name == "tokens";
  if (!tries_grids) flags.model.say_grid(flags.model.spec_at(range.least));
  const auto plan_of = [&](std::int64_t load) {
    if (tries_grids) flags.model.say_grid(flags.model.spec_at(load));
    std::optional<LoadPlan> plan = best_plan(flags, space, record, load);
    if (!InterruptGuard::signal()) say_tried(range.name, load, plan);
    return plan;
  };
  try_loads(plan_of, space.stop, record);
  show(
      flags.output, flags.json, [&] { return loads_to_json(record); },
      [&] { return loads_to_text(record, TableFormat::kText, terminal_columns()); });
  if (!record.is_complete) {
    throw Interrupted(InterruptGuard::signal().value(), record.largest
                                                            ? "the sizes above were tried"
                                                            : "no size was found that fits");
  }
  if (record.largest) return ExitCode::kOk;
  return end_with(ExitCode::kGateFailed,
                  "not even " + range.name + " " + std::to_string(range.least) + " fits " +
                      format_bytes(budget) + "; give more memory, or a smaller " + range.name);
}

}  // namespace rematch
