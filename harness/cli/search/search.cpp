#include <cstdio>

#include "harness/cli/commands.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/profile_here.h"
#include "harness/cli/search/search_answers.h"
#include "harness/cli/search/search_fit.h"
#include "harness/cli/search/search_limits.h"
#include "harness/cli/search/search_maximize.h"
#include "harness/cli/search/search_measure.h"
#include "harness/measure/source_state.h"
#include "harness/progress/progress.h"
#include "harness/sweep/interrupt.h"
#include "models/preset/parallel.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/planners/planners.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/search/front/front.h"
#include "policies/search/front/front_json.h"
#include "policies/search/front/measured_front.h"
#include "policies/trace/trace_check.h"
#include "reports/render/format.h"
#include "reports/render/tables/front_table.h"
#include "reports/render/tables/simple_table.h"

namespace rematch {
namespace {

constexpr int kMostPoints = 10'000;
constexpr const char* kKnownPolicies =
    "none,full,nth_first(2),nth_first(3),nth_first(4),first_n(1),first_n(2),first_n(4),first_n(8),"
    "first_n(16),segments(2),segments(3),segments(4),segments(6),segments(8),attn_only,save_mm,"
    "save_compute,sac_titan";

Profile obtain_profile(const SearchFlags& flags, const Trace& trace) {
  if (!flags.profile_file.empty()) return require_profile(flags.profile_file, trace);
  if (is_measured_device(flags.device)) return measure_profile(flags, trace);
  return sheet_times(flags, trace);
}

// Says how far a measured profile is from the data sheet's times, if there is a sheet.
void say_roofline_error(const Trace& trace, const Profile& profile) {
  const DeviceSheet* sheet = find_device_sheet(profile.device);
  if (sheet == nullptr || profile.source != ProfileSource::kMeasured) return;
  const RooflineError error = roofline_error(roofline_profile(trace, *sheet), profile);
  std::fprintf(stderr,
               "rematch: the profile, measured on %s, against its roofline: the step takes %s "
               "times as long, an op of forward in the median %s times\n",
               profile.device.c_str(), format_fixed(error.step_time_ratio, 2).c_str(),
               format_fixed(error.median_op_ratio, 2).c_str());
}

SearchSpace space_of(const SearchFlags& flags) {
  const bool for_torch = is_for_torch(flags);
  const std::vector<Schedule> schedules =
      parse_schedules(for_torch ? "whole_region" : flags.schedule);
  if (schedules.size() != 1) {
    throw UsageError("a search is for one schedule; give --schedule on_demand or whole_region");
  }
  SearchSpace space;
  space.schedule = schedules.front();
  space.optimizer = parse_optimizer_model(flags.optimizer);
  space.world = flags.model.ranks_of_trace(flags.trace_file).value_or(1);
  // On demand they are few enough for all; under whole_region 80 layers take over 10 s.
  if (space.schedule == Schedule::kOnDemand) space.resolution_ratio = 0;
  if (flags.hull) space.reach = Reach::kHull;
  if (for_torch) keep_to_torch(space);
  return space;
}

// Those that the model can have. Of an interrupted search, those that there was time for.
std::vector<Plan> known_baselines(const Trace& trace, const Profile& profile) {
  std::vector<Plan> plans;
  for (const Policy& policy : require(parse_policies(kKnownPolicies))) {
    if (InterruptGuard::signal()) return plans;
    auto plan = resolve(policy, trace, NoEffect::kAllow);
    if (auto* resolved = std::get_if<Plan>(&plan)) plans.push_back(std::move(*resolved));
  }
  if (InterruptGuard::signal()) return plans;
  for (Plan& plan : planner_baselines(trace, profile)) plans.push_back(std::move(plan));
  return plans;
}

// All that the user named, before the search: a wrong name is not to be said after it.
std::vector<Plan> named_baselines(const SearchFlags& flags, const Trace& trace,
                                  const Profile& profile) {
  if (flags.baselines.empty()) return {};
  return require(resolve_baselines(flags.baselines, trace, profile));
}

// The user's question.
void add_question(const SearchFlags& flags, FrontRecord& record) {
  if (!flags.budget.empty()) record.budget = parse_bytes(flags.budget);
  if (!flags.max_slowdown.empty()) {
    record.max_slowdown_ratio = parse_percent_or_zero(flags.max_slowdown);
  }
}

// Nothing if there is no plan for it, or nothing was asked.
std::optional<FrontPoint> answer_of(FrontSearch& search, const FrontRecord& record) {
  if (record.budget) return search.fastest_within(*record.budget);
  if (record.max_slowdown_ratio) return search.lowest_within_slowdown(*record.max_slowdown_ratio);
  return std::nullopt;
}

// The search's own answer, or if nothing was asked the fastest within the device's memory: as
// points of the front they have numbers that other commands take.
std::vector<FrontPoint> worth_showing(FrontSearch& search, const FrontRecord& record) {
  std::optional<FrontPoint> point = answer_of(search, record);
  const bool is_asked = record.budget || record.max_slowdown_ratio;
  if (!is_asked && record.device_memory) point = search.fastest_within(*record.device_memory);
  return point ? std::vector<FrontPoint>{*std::move(point)} : std::vector<FrontPoint>{};
}

void write_front(const SearchFlags& flags, const FrontRecord& record) {
  if (!flags.output.empty()) write_output(flags.output, front_to_json(record));
}

ExitCode verdict_of(const SearchFlags& flags, const Front& front) {
  if (!flags.fail_behind_baselines) return ExitCode::kOk;
  const FrontMeasurement weighed = front.measurement ? *front.measurement : weigh_prediction(front);
  const char* where = weighed.is_behind_in_prediction()   ? "in prediction"
                      : weighed.is_behind_when_measured() ? "when measured, beyond the A/A interval"
                                                          : nullptr;
  if (where == nullptr) return ExitCode::kOk;
  std::fprintf(stderr, "rematch: a baseline has more hypervolume than the front %s\n", where);
  return ExitCode::kGateFailed;
}

void print_front(const SearchFlags& flags, const FrontRecord& record) {
  const std::size_t columns = terminal_columns();
  const FrontFiles files{flags.output, is_preset(record.model) ? "" : flags.trace_file};
  print(flags.json ? front_to_json(record).dump(2) + "\n"
        : flags.simple && record.simple
            ? simple_to_text(record, columns, files)
            : front_to_text(record, TableFormat::kText, columns, files));
}

// The front that a signal left, printed and written; the signal goes on to main. `of_runs`: what
// remains of those that had begun.
[[noreturn]] void end_early(const SearchFlags& flags, FrontRecord& record, int signal,
                            const std::string& of_runs = "") {
  record.front.is_complete = false;
  write_front(flags, record);
  print_front(flags, record);
  std::string remains = flags.output.empty() ? "the front above is what was found by then"
                                             : "what was found by then is in " + flags.output;
  if (!of_runs.empty()) remains += "; of its runs: " + of_runs;
  throw Interrupted(signal, std::move(remains));
}

// Until all is measured the file holds the predicted front, marked as not complete.
ExitCode measure(const SearchFlags& flags, const std::vector<std::string>& command,
                 FrontRecord& record) {
  record.front.is_complete = false;
  write_front(flags, record);
  try {
    const ExitCode code = measure_front(flags, command, record);
    record.front.is_complete = true;
    return code;
  } catch (const Interrupted& error) {
    end_early(flags, record, error.signal, error.what_remains);
  }
}

// A trace without blocks leaves the search nothing to choose.
void require_choices(const Trace& trace) {
  if (const auto dependence = data_dependence(trace)) {
    throw UsageError("the trace of " + trace.model + " cannot be searched: " + *dependence);
  }
  if (!trace.blocks.empty()) return;
  throw UsageError(
      "the trace of " + trace.model +
      " has no blocks, so there is nothing to choose; search takes models whose layers "
      "open scopes with an index");
}

void require_times(const SearchFlags& flags) {
  if (flags.profile_file.empty() == flags.device.empty()) {
    throw UsageError(
        "a search needs times: give --profile FILE (see rematch profile), or a data "
        "sheet's with --device h100");
  }
  if (flags.device.empty() || is_measured_device(flags.device)) return;
  if (find_device_sheet(flags.device) == nullptr) {
    throw UsageError(unknown_device(flags.device).message);
  }
}

// The record and its search, played to the end or to a signal.
struct Searched {
  FrontRecord record;
  std::string fits_nothing;  // if no plan fits budget or device: the line that says so
};

Searched search_trace(const SearchFlags& flags, SearchSpace space, const FrontRecord& asked) {
  const Trace trace = obtain_trace(flags.model, flags.trace_file);
  require_choices(trace);
  const Profile profile = obtain_profile(flags, trace);
  say_roofline_error(trace, profile);
  add_host_link(flags, profile.device, space);
  if (flags.num_measured != 0) require_times_of_this_device(profile);
  std::vector<Plan> baselines = named_baselines(flags, trace, profile);
  FrontRecord record = make_front_record(trace, profile, space.optimizer);
  record.world = space.world * static_cast<int>(world_size(trace.dimensions));
  record.layout = layout_text(trace.dimensions);
  record.host_link = space.offload;
  if (const std::optional<SourceState> source = source_state()) {
    record.git_commit = source->commit;
    record.git_dirty = source->dirty;
  }
  if (asked.device_memory) record.device_memory = asked.device_memory;
  record.budget = asked.budget;
  take_free_memory(flags, space, trace, record);
  record.max_slowdown_ratio = asked.max_slowdown_ratio;
  FrontSearch found(trace, profile, space, resolve_none(trace));
  if (flags.baselines.empty()) baselines = known_baselines(trace, profile);
  if (space.whole_modules) baselines = runnable_by_torch(trace, std::move(baselines));
  // Before the baselines are known: none of them is to stand among the front's own points.
  const std::vector<FrontPoint> shown = worth_showing(found, record);
  record.front = found.front(static_cast<std::size_t>(flags.num_points), baselines, shown);
  record.answer = answer_of(found, record);
  if (space.is_stopped()) return {std::move(record), ""};
  const Bytes lowest = found.lowest().figures.peak;
  const std::optional<Bytes> limit = limit_of(record);
  if (limit && lowest > *limit) {
    std::string line = no_plan_fits(flags, trace, record, *limit, lowest);
    return {std::move(record), std::move(line)};
  }
  record.simple = find_simple(trace, profile, space, record, found);
  return {std::move(record), ""};
}

ExitCode search(const SearchFlags& flags, const std::vector<std::string>& command) {
  require_times(flags);
  require_offload_flags(flags);
  require_link_flags(flags);
  const bool is_measured = flags.num_measured != 0;
  if (is_measured) require_measurable(flags);
  if (flags.device.starts_with("cuda"))
    require_measured_device(flags.device, "search --device cuda");
  require_writable(flags.output);
  FrontRecord asked;
  asked.device_memory = memory_by_doctor(flags);
  SearchSpace space = space_of(flags);
  ElapsedProgress progress("searching", "Ctrl-C ends it with the best front so far");
  space.stop = [&progress] {
    progress.poll();
    return InterruptGuard::signal().has_value();
  };
  require_one_budget(flags);
  if (!flags.maximize.empty()) return maximize(flags, space, asked.device_memory);
  add_question(flags, asked);
  auto guard = std::make_unique<InterruptGuard>();
  auto [record, fits_nothing] = search_trace(flags, space, asked);
  progress.clear();
  if (const auto signal = InterruptGuard::signal()) end_early(flags, record, *signal);
  if (!fits_nothing.empty()) {
    write_front(flags, record);
    if (flags.json) print_front(flags, record);
    std::fprintf(stderr, "rematch: %s\n", fits_nothing.c_str());
    return ExitCode::kGateFailed;
  }
  if (is_measured) guard.reset();  // the runs have their own
  const ExitCode measured = is_measured ? measure(flags, command, record) : ExitCode::kOk;
  write_front(flags, record);
  print_front(flags, record);
  print_hints(search_hints(flags, record));
  if (measured != ExitCode::kOk) return measured;
  return verdict_of(flags, record.front);
}

}  // namespace

SearchFlags::SearchFlags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
  app.add_option("--trace", trace_file, "Stored trace to use instead of --model");
  app.add_option("--profile", profile_file,
                 "Profile with the times of the ops, from rematch profile");
  app.add_option("--device", device,
                 "Without --profile: cpu or cuda: times are measured here; h100, h200, l40s, a100 "
                 "or b200: times are computed from the card's data sheet");
  app.add_option("--doctor", doctor_file,
                 "Output of rematch doctor --json on the GPU's machine; its measured memory "
                 "replaces the data sheet's");
  schedule_option = app.add_option("--schedule", schedule, "on_demand or whole_region");
  app.add_option("--for", target,
                 "torch: only plans that rematch export --to torch can write: whole modules as "
                 "regions, schedule whole_region");
  app.add_option("--optimizer", optimizer,
                 "Optimizer whose state is part of every peak: adamw, adamw(state=bfloat16), "
                 "adamw8bit, muon, sgd, sgd(momentum=0.9) or none");
  model.add_world(app);
  app.add_option("--budget", budget, "Print the fastest plan whose peak is at most this: 24GiB");
  app.add_option("--free", free,
                 "Print the fastest plan that fits into this beside parameters and optimizer "
                 "state: 16GiB; gradients are part of it");
  app.add_option("--activation-budget", activation_budget,
                 "Print the fastest plan that fits into this beside parameters, gradients and "
                 "optimizer state: 16GiB");
  app.add_option(
      "--max-slowdown", max_slowdown,
      "Print the plan with the lowest peak at no more than this over the fastest step time: 5%");
  app.add_option("--maximize", maximize,
                 "tokens_per_second: find the load of a range, --batch 1:64 or --tokens "
                 "1024:16384, that maximizes it within --budget, or else the device's memory, "
                 "and the largest load that fits");
  app.add_option("--points", num_points, "Number of points to print, of all that are found")
      ->check(CLI::Range(2, kMostPoints));
  app.add_option("--baselines", baselines,
                 "Policies that the front is compared with, separated by commas; also PyTorch's "
                 "planners: pytorch_dp(0.5), pytorch_ilp(0.5), sac_ilp(0.8) (default: known "
                 "policies of every kind, and the planners)")
      ->check([](const std::string& list) {
        return std::string(list.empty() ? "the list is empty; name policies, or leave the flag out "
                                          "for the known ones"
                                        : "");
      });
  app.add_flag("--simple", simple,
               "Print only the best plan of the form that every trainer can express: whole blocks "
               "or modules, one save list for all layers or two groups of layers");
  app.add_flag("--hull", hull,
               "Search only options on the convex hull of each block's: faster, with fewer plans");
  app.add_option("--links", links_file,
                 "From rematch profile --links: with --device h100 the times of collectives, with "
                 "--offload the rates of copies, in place of the data sheet's link");
  app.add_flag("--offload", offload,
               "Search plans too that leave to the host what blocks hold for backward: region "
               "inputs, and what regions keep; step times count the copies as if none were hidden");
  app.add_option("--link-rate", link_rate,
                 "With --offload: rate of copies in each direction, 50GB/s (default: as --links "
                 "measured, else PCIe by the device's data sheet)");
  app.add_option("--measure", num_measured,
                 "Number of points of the front to run, as rematch run does, beside the baselines: "
                 "both ends and the knee, which calibrate the step times, then the points whose "
                 "measurement tells most")
      ->default_str("")
      ->check(CLI::Range(kLeastMeasured, kMostPoints));
  add_measure_flags(app, "With --measure: ");
  app.add_flag("--fail-behind-baselines", fail_behind_baselines,
               "Exit with 3 if a baseline has more hypervolume than the front: predicted, or "
               "measured by more than the A/A interval");
  app.add_option("-o,--output", output, "Front to write");
  app.add_flag("--json", json, "Print the front instead of the table");
}

void add_search(CLI::App& app, Action& action, const std::vector<std::string>& command) {
  CLI::App* search_command = app.add_subcommand(
      "search", "Every plan worth having between keeping everything and nothing");
  auto flags = std::make_shared<SearchFlags>(*search_command);
  search_command->footer(
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
      "Ctrl-C prints and writes the best front so far, marked as not complete; runs of --measure\n"
      "that have ended are kept beside the front of -o; rerun the command to resume.");
  search_command->callback(
      [&action, flags, command] { action = [flags, command] { return search(*flags, command); }; });
}

}  // namespace rematch
