#include <array>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <string_view>

#include "harness/cli/commands.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/files/profile_card.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/libtorch/measure_front.h"
#include "harness/cli/libtorch/parts.h"
#include "harness/cli/libtorch/predict_model.h"
#include "harness/cli/libtorch/profile_here.h"
#include "harness/cli/predicted_steps.h"
#include "harness/cli/search/logits_choice.h"
#include "harness/cli/search/search_advice.h"
#include "harness/cli/search/search_answers.h"
#include "harness/cli/search/search_limits.h"
#include "harness/cli/search/search_maximize.h"
#include "harness/cli/search/trainer_modes.h"
#include "harness/measure/source_state.h"
#include "harness/process/interrupt.h"
#include "harness/progress/progress.h"
#include "harness/sweep/job_script.h"
#include "models/preset/parallel.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/catalogue/stages.h"
#include "policies/planners/planners.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/pipeline/step_time.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/search/driver/driver.h"
#include "policies/search/driver/joined_front.h"
#include "policies/search/front/front_json.h"
#include "policies/search/front/front_search.h"
#include "policies/search/front/measured_front.h"
#include "policies/search/pipeline/pipeline_front.h"
#include "policies/search/region/spans.h"
#include "policies/search/simple/simple_point.h"
#include "policies/trace/trace_check.h"
#include "reports/render/tables/front_table.h"

namespace rematch {
namespace {

Profile obtain_profile(const SearchFlags& flags, const Trace& trace) {
  if (!flags.profile_file.empty()) {
    Profile profile = require_profile(flags.profile_file, trace);
    if (!flags.any_card) {
      require_card(profile, flags.profile_file, {flags.device, doctor_card(flags), cards_here()});
    }
    return profile;
  }
  if (!is_measured_device(flags.device)) return sheet_times(flags, trace);
  require_measured_device(flags.device, "search --device " + flags.device);
  return profile_here({flags.model.spec(), flags.device, flags.optimizer, flags.num_threads,
                       flags.num_steps, flags.force, flags.attention, flags.deterministic_times},
                      trace);
}

// A plan found with the times of one attention kernel must not be measured with another kernel.
void require_attention_of(const SearchFlags& flags, const Profile& profile) {
  if (flags.attention.empty() || profile.attention_backend.empty()) return;
  if (flags.attention == profile.attention_backend) return;
  throw UsageError("the profile has times of attention " + profile.attention_backend +
                   ", but --attention is " + flags.attention +
                   "; make a profile with rematch profile --attention " + flags.attention);
}

void require_times_of_this_device(const SearchFlags& flags, const Profile& profile) {
  if (is_measured_device(profile.device) && profile.source == ProfileSource::kMeasured) {
    require_attention_of(flags, profile);
    return require_measured_device(profile.device, "search --measure");
  }
  throw UsageError(
      "the profile has times of " + profile.device + " (" + std::string(to_string(profile.source)) +
      "), but --measure runs on this machine's cpu or cuda; make a profile with rematch "
      "profile --device cpu");
}

// Prints how far a measured profile is from the data sheet's times, if there is a sheet.
void say_roofline_error(const Trace& trace, const Profile& profile) {
  const DeviceSheet* sheet = sheet_of(profile);
  if (sheet == nullptr || profile.source != ProfileSource::kMeasured) return;
  const RooflineError error = roofline_error(roofline_profile(trace, *sheet), profile);
  say("the profile, measured on " + (profile.card.empty() ? profile.device : profile.card) +
      ", against its roofline: the step takes " + format_fixed(error.step_time_ratio, 2) +
      " times as long, the median op of forward " + format_fixed(error.median_op_ratio, 2) +
      " times as long");
}

// Returns today's date, such as "2026-11-28".
std::string day_in_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

SearchSpace space_of(const SearchFlags& flags) {
  const bool for_torch = is_for_torch(flags);
  const std::vector<Schedule> schedules =
      parse_schedules(for_torch ? "whole_region" : flags.schedule);
  if (schedules.size() != 1) {
    throw UsageError("search takes one schedule; give --schedule on_demand or whole_region");
  }
  SearchSpace space = usual_space(schedules.front(), parse_optimizer_kind(flags.optimizer));
  space.world = flags.model.ranks_of_trace(flags.trace_file).value_or(1);
  if (flags.hull) space.reach = Reach::kHull;
  if (for_torch) keep_to_torch(space);
  return space;
}

// Resolves the baselines that the user named. This runs before the search, so that a wrong name is
// reported at once. Warns about each baseline that does not apply to the model, and sets
// `is_any_refused` if there is one.
std::vector<Plan> named_baselines(const SearchFlags& flags, const Trace& trace,
                                  const Profile& profile, bool& is_any_refused) {
  if (flags.baselines.empty()) return {};
  std::vector<RefusedPolicy> refused;
  std::vector<Plan> plans = require(resolve_baselines(flags.baselines, trace, profile, refused));
  for (const RefusedPolicy& policy : refused) {
    print_warnings({"baseline " + policy.name + " is left out: " + policy.reason});
  }
  is_any_refused = !refused.empty();
  return plans;
}

// Writes the user's budget or maximum slowdown to the record.
void add_question(const SearchFlags& flags, FrontRecord& record) {
  if (!flags.budget.empty()) record.budget = parse_bytes(flags.budget);
  if (!flags.max_slowdown.empty()) {
    record.max_slowdown_ratio = parse_percent_or_zero(flags.max_slowdown);
  }
}

void write_front(const SearchFlags& flags, const FrontRecord& record) {
  if (!flags.output.empty()) write_output(flags.output, front_to_json(record));
}

ExitCode verdict_of(const SearchFlags& flags, const Front& front) {
  if (!flags.fail_behind_baselines) return ExitCode::kOk;
  const FrontMeasurement weighed = front.measurement ? *front.measurement : weigh_prediction(front);
  const char* where = weighed.is_behind_in_prediction() ? "in prediction"
                      : weighed.is_behind_when_measured()
                          ? "when measured, by more than the A/A interval"
                          : nullptr;
  if (where == nullptr) return ExitCode::kOk;
  return end_with(ExitCode::kGateFailed,
                  std::string("a baseline has more hypervolume than the front ") + where);
}

void print_front(const SearchFlags& flags, const FrontRecord& record) {
  const std::size_t columns = terminal_columns();
  const FrontFiles files{flags.output, is_preset(record.model) ? "" : flags.trace_file};
  print(flags.json ? front_to_json(record).dump(2) + "\n"
        : flags.simple && record.simple
            ? simple_to_text(record, columns, files)
            : front_to_text(record, TableFormat::kText, columns, files));
}

// Prints and writes the front found before a signal, then passes the signal on to main(). `of_runs`
// says which measured runs are kept, and is added to the message.
[[noreturn]] void end_early(const SearchFlags& flags, FrontRecord& record, int signal,
                            const std::string& of_runs = "") {
  record.front.is_complete = false;
  write_front(flags, record);
  print_front(flags, record);
  std::string remains = flags.output.empty() ? "the front above shows what was found"
                                             : "the front found so far is in " + flags.output;
  if (!of_runs.empty()) remains += "; runs: " + of_runs;
  throw Interrupted(signal, std::move(remains));
}

// Until all points are measured, the file holds the predicted front, marked as incomplete.
ExitCode measure(const SearchFlags& flags, FrontRecord& record) {
  record.front.is_complete = false;
  write_front(flags, record);
  try {
    const ExitCode code = measure_front(flags, record);
    record.front.is_complete = true;
    return code;
  } catch (const Interrupted& error) {
    end_early(flags, record, error.signal, error.what_remains);
  }
}

// Throws UsageError if the trace has no blocks, because the search then has nothing to choose.
void require_choices(const Trace& trace) {
  if (const auto dependence = data_dependence(trace)) {
    throw UsageError("the trace of " + trace.model + " cannot be searched: " + *dependence);
  }
  if (!trace.blocks.empty()) return;
  throw UsageError(
      "the trace of " + trace.model +
      " has no blocks, so there is nothing to choose; search needs a model whose layers "
      "open indexed scopes, such as blocks.0");
}

// Reports blocks that run several times in a step. `search --for torch` leaves these blocks to
// autograd: see Repeats.
void say_repeated_blocks(const Trace& trace) {
  const std::map<std::string_view, int> openings = times_opened(trace);
  std::vector<std::string> repeated;
  for (const TracedBlock& block : trace.blocks) {
    const std::string& path = trace.scopes[block.scope].path;
    if (openings.at(path) > 1) add_once(repeated, path);
  }
  if (repeated.empty()) return;
  say("--for torch checkpoints no block that runs several times in a step: " + listed(repeated, 3) +
      "; torch.utils.checkpoint would treat all runs alike, but the search chooses for each run. "
      "--simple uses one rule for all runs of a block");
}

void require_times(const SearchFlags& flags) {
  if (flags.profile_file.empty() && flags.device.empty()) {
    throw UsageError(
        "a search needs times: give --profile FILE (see rematch profile), or use the data "
        "sheet of a card with --device h100");
  }
  if (!flags.profile_file.empty() && is_measured_device(flags.device)) {
    throw UsageError("--profile already contains the times that --device " + flags.device +
                     " would measure; give only one of the two flags");
  }
  if (flags.profile_file.empty() && flags.any_card) {
    throw UsageError("--any-card requires --profile FILE");
  }
  const bool runs_steps = flags.num_measured != 0 || is_measured_device(flags.device);
  if (!runs_steps && (!flags.attention.empty() || flags.deterministic_times)) {
    throw UsageError(
        "--attention and --deterministic-times choose kernels that are measured; give --device "
        "cpu or cuda, or --measure");
  }
  if (flags.device.empty() || is_measured_device(flags.device)) return;
  if (find_device_sheet(flags.device) == nullptr) {
    throw UsageError(unknown_device(flags.device).message);
  }
}

// The record of a search that has ended or was interrupted.
struct Searched {
  FrontRecord record;
  // Tells the user that no plan fits the budget or device. Empty if a plan fits.
  std::string fits_nothing;
  // With --for TRAINER: the trainer's modes, and the best plan of the front within the same limit.
  std::vector<TrainerMode> modes;
  std::optional<FrontPoint> exact;
  bool is_baseline_refused = false;
  SearchQuestions ask = {};
};

// A search and everything that it refers to.
struct SearchOfTrace {
  SearchOfTrace(Trace its_trace, Profile its_profile, SearchSpace its_space)
      : trace(std::move(its_trace)),
        profile(std::move(its_profile)),
        space(std::move(its_space)),
        search(trace, profile, space, resolve_none(trace)) {}

  const Trace trace;
  const Profile profile;
  const SearchSpace space;
  FrontSearch search;
};

// Prints the trainer's fastest mode before the search for the front begins. This mode is known
// after seconds, whereas the search may take a minute.
void say_fastest(const TrainingSystem& trainer, const FrontRecord& record,
                 const std::vector<TrainerMode>& modes, ElapsedProgress& progress) {
  const std::string words = fastest_words(trainer, record, modes, limit_of(record));
  if (words.empty() || InterruptGuard::signal()) return;
  progress.clear();
  say(words + "; comparing it with the exact front");
}

Searched search_trace(const SearchFlags& flags, SearchSpace space, const FrontRecord& asked,
                      const OutputFile& output, ElapsedProgress& progress) {
  const Trace trace = obtain_trace(flags.model, flags.trace_file);
  output.require_model(trace.model);
  if (!flags.target.empty()) reject_compiled_graph(trace.dimensions, flags.target);
  require_choices(trace);
  if (is_for_torch(flags) && !flags.simple) say_repeated_blocks(trace);
  const Profile profile = obtain_profile(flags, trace);
  say_roofline_error(trace, profile);
  add_host_link(flags, trace, profile, space);
  if (flags.num_measured != 0) require_times_of_this_device(flags, profile);
  bool is_baseline_refused = false;
  std::vector<Plan> baselines = named_baselines(flags, trace, profile, is_baseline_refused);
  FrontRecord record = make_front_record(trace, profile, space.optimizer);
  record.world = space.world * static_cast<int>(world_size(trace.dimensions));
  record.layout = layout_text(trace.dimensions);
  record.host_link = space.offload;
  note_source_state(record);
  record.date = day_in_utc();
  record.reproduce = shell_line(flags.command);
  if (const DeviceSheet* sheet = find_device_sheet(flags.device)) {
    // The memory of the card that will run the plans, even if the times are from another card.
    record.device_memory = sheet->memory;
  }
  if (asked.device_memory) record.device_memory = asked.device_memory;
  record.budget = asked.budget;
  take_free_memory(flags, space, trace, record);
  take_reserve(flags, trace, record);
  record.max_slowdown_ratio = asked.max_slowdown_ratio;
  const TrainingSystem* trainer = system_of_target(flags.target);
  std::vector<TrainerMode> modes;
  if (trainer != nullptr) {
    modes = judge_modes(*trainer, trace, profile, space, sheet_link(flags));
    say_fastest(*trainer, record, modes, progress);
  }
  const auto of_trace = std::make_shared<SearchOfTrace>(trace, profile, space);
  FrontSearch& found = of_trace->search;
  // The answer for a trainer shows only the best plan of the front. The output file holds the whole
  // front.
  constexpr std::size_t kLeastPoints = 2;
  const bool needs_front = trainer == nullptr || !flags.output.empty();
  if (flags.baselines.empty() && needs_front) {
    baselines = usual_baselines(trace, profile, space.stop);
  }
  if (space.whole_modules) baselines = runnable_by_torch(trace, std::move(baselines));
  const Shown shown{needs_front ? static_cast<std::size_t>(flags.num_points) : kLeastPoints,
                    std::move(baselines), needs_front};
  const std::optional<Bytes> lowest = answer_question(trace, profile, space, shown, found, record);
  if (space.is_stopped()) return {std::move(record), "", {}, {}, is_baseline_refused};
  const std::optional<Bytes> limit = limit_of(record);
  // The questions keep the whole of `of_trace` alive.
  SearchQuestions ask = questions_to(std::shared_ptr<FrontSearch>(of_trace, &found));
  if (lowest) {
    std::string line = no_plan_fits(flags, trace, record, *limit, *lowest);
    return {std::move(record), std::move(line), {}, {}, is_baseline_refused, std::move(ask)};
  }
  Searched searched{std::move(record), "", {}, {}, is_baseline_refused, std::move(ask)};
  if (trainer != nullptr) {
    searched.modes = std::move(modes);
    for (TrainerMode& each : searched.modes) {
      each.point.step_time_bound = found.step_time_bound(each.point.figures.peak);
    }
    if (limit) searched.exact = found.fastest_within(*limit);
  }
  return searched;
}

bool has_stages(const ModelFlags& model) {
  const ModelSpec spec = model.range() ? model.spec_at(model.range()->least) : model.spec();
  return num_stages(spec.dimensions) > 1;
}

// Rejects flags that need the trace of a whole model.
void require_pipeline_flags(const SearchFlags& flags) {
  const std::pair<bool, const char*> refused[] = {
      {!flags.target.empty(), "--for"},
      {flags.offload, "--offload"},
      {flags.num_measured != 0, "--measure"},
      {!flags.free.empty(), "--free"},
      {!flags.activation_budget.empty(), "--activation-budget"},
      {is_measured_device(flags.device), "--device cpu or cuda"}};
  for (const auto& [is_given, flag] : refused) {
    if (!is_given) continue;
    throw UsageError(std::string(flag) +
                     " needs one trace, but each stage of a pipeline has its own; leave it out. A "
                     "search for stages takes --device h100, --profile, --budget, "
                     "--max-slowdown, --maximize and --simple");
  }
  if (flags.simple && flags.model.spec().option(std::string(kInterleave)) > 1) {
    throw UsageError(
        "--simple finds a rule for each rank's trace, but with interleave a rank has several; "
        "leave out one of the two");
  }
}

// A search for a pipeline and everything that it refers to.
struct SearchOfStages {
  TracedModel model;
  std::vector<Profile> profiles = {};
  std::vector<SearchedStage> stages = {};
  std::optional<PipelineSearch> search = {};
};

// Returns the policies that the front is compared with, resolved for every stage.
std::vector<Plan> pipeline_baselines(const SearchFlags& flags, const StageResolver& resolver,
                                     bool& is_any_refused) {
  const bool is_named = !flags.baselines.empty();
  std::vector<RefusedPolicy> refused;
  std::vector<Plan> plans;
  for (const Policy& policy : require(
           parse_policies(is_named ? flags.baselines : std::string(usual_policies()), refused))) {
    auto plan = resolver.resolve(policy, NoEffect::kAllow);
    if (auto* const resolved = std::get_if<Plan>(&plan)) {
      plans.push_back(std::move(*resolved));
    } else if (is_named) {
      refused.push_back({policy.name, std::get<Rejected>(plan).message});
    }
  }
  for (const RefusedPolicy& policy : refused) {
    print_warnings({"baseline " + policy.name + " is left out: " + policy.reason});
  }
  is_any_refused = !refused.empty();
  return plans;
}

// Returns the profiles of the stages.
std::vector<Profile> times_of_stages(const SearchFlags& flags,
                                     const std::vector<const Trace*>& traces) {
  std::vector<Profile> profiles;
  if (flags.profile_file.empty()) {
    for (const Trace* trace : traces) profiles.push_back(sheet_times(flags, *trace));
    return profiles;
  }
  profiles = profiles_of_stages(flags.profile_file, flags.model.spec(), traces);
  if (!flags.any_card) {
    require_card(profiles.front(), flags.profile_file,
                 {flags.device, doctor_card(flags), cards_here()});
  }
  return profiles;
}

Searched search_pipeline(const SearchFlags& flags, const SearchSpace& space,
                         const FrontRecord& asked, const OutputFile& output) {
  const auto of_stages = std::make_shared<SearchOfStages>(
      trace_for_prediction(flags.model.spec(), space.optimizer, Sizes::kExact));
  const TracedModel& model = of_stages->model;
  output.require_model(model.trace.model);
  const std::vector<const Trace*> traces = traces_of_stages(model);
  of_stages->profiles = times_of_stages(flags, traces);
  const std::vector<Profile>& profiles = of_stages->profiles;
  std::vector<SearchedStage>& stages = of_stages->stages;
  for (std::size_t stage = 0; stage < traces.size(); ++stage) {
    stages.push_back({*traces[stage], profiles[stage], resolve_none(*traces[stage])});
  }
  bool is_baseline_refused = false;
  const std::vector<Plan> baselines =
      pipeline_baselines(flags, StageResolver(traces), is_baseline_refused);
  FrontRecord record = make_front_record(model.trace, profiles.front(), space.optimizer);
  record.world = static_cast<int>(world_size(model.trace.dimensions));
  record.layout = layout_text(model.trace.dimensions);
  note_source_state(record);
  record.date = day_in_utc();
  record.reproduce = shell_line(flags.command);
  const DeviceSheet* sheet = find_device_sheet(flags.device);
  if (sheet != nullptr) record.device_memory = sheet->memory;
  if (asked.device_memory) record.device_memory = asked.device_memory;
  if (sheet == nullptr) sheet = sheet_of(profiles.front());
  record.budget = asked.budget;
  take_reserve(flags, model.trace, record);
  record.max_slowdown_ratio = asked.max_slowdown_ratio;
  PipelineSearch& found =
      of_stages->search.emplace(stages, space, passing_between(*traces.at(1), sheet));
  const std::optional<Bytes> lowest = answer_pipeline(
      stages, space, {static_cast<std::size_t>(flags.num_points), baselines, flags.simple}, found,
      record);
  Searched searched{std::move(record),
                    "",
                    {},
                    {},
                    is_baseline_refused,
                    questions_to(std::shared_ptr<PipelineSearch>(of_stages, &found))};
  if (lowest && !space.is_stopped()) {
    searched.fits_nothing = "no plan fits " + format_bytes(*limit_of(searched.record)) +
                            ": some stage needs " + format_bytes(*lowest) +
                            "; give more stages, or a smaller --batch";
  }
  return searched;
}

// Prints the answer for a trainer. Returns kGateFailed if no mode fits.
ExitCode show_modes(const SearchFlags& flags, const TrainingSystem& trainer,
                    const Searched& searched) {
  if (searched.modes.empty()) {
    throw UsageError("no mode of " + std::string(trainer.target) + " applies to " +
                     searched.record.model + "; rematch list --systems shows its modes");
  }
  const std::optional<Bytes> limit = limit_of(searched.record);
  const auto best = fastest_mode(searched.modes, limit);
  print(flags.json ? trainer_to_json(trainer, searched.modes, limit, searched.exact).dump(2) + "\n"
                   : trainer_to_text(trainer, searched.record, searched.modes, limit,
                                     searched.exact, terminal_columns()));
  if (!best) return ExitCode::kGateFailed;
  const SystemEntry& entry = *searched.modes[*best].mode.entry;
  if (!entry.pitfall.text.empty() && entry.pitfall.shown == PitfallShown::kWhenUsed) {
    print_warnings({searched.modes[*best].mode.spelling + ": " + std::string(entry.pitfall.text)});
  }
  return ExitCode::kOk;
}

OutputRequest front_request(const SearchFlags& flags) {
  std::vector<std::string> inputs = policy_files(flags.baselines);
  for (const std::string& file : {flags.trace_file, flags.profile_file, flags.doctor_file,
                                  flags.links_file, flags.ceilings_file}) {
    inputs.push_back(file);
  }
  return flags.request({flags.maximize.empty() ? file_kind::kFront : file_kind::kLoads},
                       std::move(inputs));
}

ExitCode search(const SearchFlags& flags) {
  const InterruptGuard guard;
  require_times(flags);
  require_offload_flags(flags);
  require_link_flags(flags);
  require_ceilings_flag(flags);
  const bool is_measured = flags.num_measured != 0;
  if (is_measured) require_measurable(flags);
  if (flags.device.starts_with("cuda"))
    require_measured_device(flags.device, "search --device cuda");
  if (system_of_target(flags.target) != nullptr && (is_measured || !flags.maximize.empty())) {
    throw UsageError("--for " + flags.target +
                     " chooses among the trainer's modes; leave out --measure and --maximize");
  }
  const OutputFile output(front_request(flags));
  FrontRecord asked;
  asked.device_memory = memory_by_doctor(flags);
  SearchSpace space = space_of(flags);
  ElapsedProgress progress("searching", "Ctrl-C ends the search and keeps the best front so far");
  space.stop = [&progress] {
    progress.poll();
    return InterruptGuard::signal().has_value();
  };
  space.on_layer = [&progress](int done, int total) { progress.advance(done, total); };
  require_one_budget(flags);
  const bool is_pipeline = flags.trace_file.empty() && has_stages(flags.model);
  if (is_pipeline) require_pipeline_flags(flags);
  if (!flags.maximize.empty()) return maximize(flags, space, asked.device_memory);
  add_question(flags, asked);
  const auto find = [&](const SearchFlags& used) {
    return is_pipeline ? search_pipeline(used, space, asked, output)
                       : search_trace(used, space, asked, output, progress);
  };
  Searched searched = find(flags);
  std::vector<std::string> of_logits;
  if (const auto kept_flags = with_kept_logits(flags); kept_flags && !InterruptGuard::signal()) {
    const Searched kept = find(*kept_flags);
    if (!InterruptGuard::signal() && has_choice(kept.record, searched.record)) {
      searched.record = join_fronts({searched.record, "", searched.ask},
                                    {kept.record, std::string(kKeepsLogits), kept.ask});
      if (kept.fits_nothing.empty()) searched.fits_nothing.clear();
      of_logits = {words_of_logits(searched.record)};
    }
  }
  FrontRecord& record = searched.record;
  const std::string& fits_nothing = searched.fits_nothing;
  progress.clear();
  if (const auto signal = InterruptGuard::signal()) end_early(flags, record, *signal);
  if (!fits_nothing.empty()) {
    write_front(flags, record);
    if (flags.json) print_front(flags, record);
    return end_with(ExitCode::kGateFailed, fits_nothing);
  }
  if (const TrainingSystem* trainer = system_of_target(flags.target)) {
    write_front(flags, record);
    return show_modes(flags, *trainer, searched);
  }
  const ExitCode measured = is_measured ? measure(flags, record) : ExitCode::kOk;
  write_front(flags, record);
  print_front(flags, record);
  print_hints(of_logits);
  if (!is_pipeline) print_hints(search_hints(flags, record));
  if (measured != ExitCode::kOk) return measured;
  const ExitCode verdict = verdict_of(flags, record.front);
  const bool is_incomplete = verdict == ExitCode::kOk && searched.is_baseline_refused;
  return is_incomplete ? ExitCode::kSomePointsFailed : verdict;
}

}  // namespace

void add_search(CLI::App& app, Action& action, const std::vector<std::string>& command) {
  const auto flags = add_command<SearchFlags>(
      app, action, "search", "Finds the best plans between keeping everything and keeping nothing",
      search,
      "Examples:\n"
      "  rematch search --model llama3_8b --tokens 8k --dtype bf16 --device h100 --world 8\n"
      "  rematch search --model wan_small --profile wan.profile.json --budget 24MiB -o front.json\n"
      "  rematch search --model llama3_8b --dtype bfloat16 --device h100 --world 8 --free 16GiB "
      "\\\n"
      "      --simple\n"
      "  rematch search --model wan_small --profile wan.profile.json --measure 8 -o front.json\n"
      "  rematch search --trace model.trace.json --device h100 --for torch -o front.json\n"
      "  rematch search --model llama3_8b --dtype bf16 --device h100 --offload --link-rate 50GB/s\n"
      "  rematch search --model llama3_8b --dtype bf16 --parallel fsdp=8 --device h100 \\\n"
      "      --links node.links.json\n"
      "  rematch search --model llama3_8b --dtype bfloat16 --device h100 --world 8 \\\n"
      "      --maximize tokens_per_second --batch 1:64 --budget 70GiB\n"
      "  rematch run --model wan_small --plan front.json#3\n"
      "Ctrl-C prints and writes the best front so far, marked as incomplete. Finished runs\n"
      "of --measure are kept in a folder beside the file of -o; rerun the command to resume.");
  flags->command = command;
}

}  // namespace rematch
