#include <cstdio>

#include "harness/cli/commands.h"
#include "harness/cli/flag_values.h"
#include "harness/cli/model_flags.h"
#include "harness/cli/output.h"
#include "harness/cli/require.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/roofline.h"
#include "policies/search/front.h"
#include "policies/search/front_json.h"
#include "policies/trace/profile_json.h"
#include "reports/render/format.h"
#include "reports/render/grid.h"

namespace rematch {
namespace {

constexpr int kMostPoints = 10'000;
constexpr const char* kKnownPolicies =
    "none,full,nth_first(2),nth_first(3),nth_first(4),first_n(1),first_n(2),first_n(4),first_n(8),"
    "first_n(16),attn_only,save_mm,save_compute,sac_titan";

struct Flags {
  explicit Flags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
    app.add_option("--trace", trace_file, "A stored trace instead of --model");
    app.add_option("--profile", profile_file, "Times of the trace's ops, from rematch profile");
    app.add_option("--device", device,
                   "Without --profile: times by the data sheet of h100, h200, l40s or a100");
    app.add_option("--schedule", schedule, "on_demand or whole_region");
    app.add_option("--optimizer", optimizer, "adamw or none: its state is part of every peak");
    app.add_option("--budget", budget, "The fastest plan whose peak is at most this: 24GiB");
    app.add_option("--max-slowdown", max_slowdown,
                   "The lowest peak for at most so much more step time: 5%");
    app.add_option("--points", num_points, "Points to show, of all that are found")
        ->check(CLI::Range(2, kMostPoints));
    app.add_option("--baselines", baselines,
                   "Policies that the front is held against, separated by commas");
    app.add_flag("--hull", hull, "Only options on the convex hull of a block's: sooner done");
    app.add_option("-o,--output", output, "Front to write");
    app.add_flag("--json", json, "The front on stdout instead of the table");
  }
  ModelFlags model;
  std::string trace_file;
  std::string profile_file;
  std::string device;
  std::string schedule = "on_demand";
  std::string optimizer = "adamw";
  std::string budget;
  std::string max_slowdown;
  int num_points = 16;
  std::string baselines;
  bool hull = false;
  std::string output;
  bool json = false;
};

Profile obtain_profile(const Flags& flags, const Trace& trace) {
  if (!flags.profile_file.empty()) {
    Profile profile = profile_from_json(require_json_file(flags.profile_file));
    if (const auto problem = profile_problem(profile, trace)) throw UsageError(*problem);
    return profile;
  }
  const DeviceSheet* sheet = find_device_sheet(flags.device);
  if (sheet == nullptr) throw UsageError(unknown_device(flags.device).message);
  return roofline_profile(trace, *sheet);
}

SearchSpace space_of(const Flags& flags) {
  const std::vector<Schedule> schedules = parse_schedules(flags.schedule);
  if (schedules.size() != 1) {
    throw UsageError("a search is for one schedule; give --schedule on_demand or whole_region");
  }
  if (flags.optimizer != "adamw" && flags.optimizer != "none") {
    throw UsageError("unknown optimizer '" + flags.optimizer + "'; allowed are adamw, none");
  }
  SearchSpace space;
  space.schedule = schedules.front();
  space.optimizer = flags.optimizer == "adamw" ? OptimizerModel::kAdamW : OptimizerModel::kNothing;
  if (flags.hull) space.reach = Reach::kHull;
  return space;
}

// Those that the model can have; of those that the user named, all.
std::vector<Plan> baseline_plans(const Flags& flags, const Trace& trace) {
  const bool is_named = !flags.baselines.empty();
  const auto policies = require(parse_policies(is_named ? flags.baselines : kKnownPolicies));
  std::vector<Plan> plans;
  for (const Policy& policy : policies) {
    auto plan = resolve(policy, trace, NoEffect::kAllow);
    if (is_named) {
      plans.push_back(require(std::move(plan)));
    } else if (auto* resolved = std::get_if<Plan>(&plan)) {
      plans.push_back(std::move(*resolved));
    }
  }
  return plans;
}

// What the user asks for.
void add_question(const Flags& flags, FrontRecord& record) {
  if (!flags.budget.empty()) record.budget = parse_bytes(flags.budget);
  if (!flags.max_slowdown.empty()) record.max_slowdown_ratio = parse_percent(flags.max_slowdown);
  if (record.budget && record.max_slowdown_ratio) {
    throw UsageError(
        "--budget asks for the fastest plan and --max-slowdown for the smallest; give one of them");
  }
}

std::string place_of(const PlanFigures& figures) {
  const std::string phase(to_string(figures.peak_phase));
  return figures.peak_place.empty() ? phase : phase + " " + figures.peak_place;
}

Row row_of(const std::string& name, const FrontPoint& point, const FrontPoint& nothing,
           const std::string& detail) {
  const auto change = [](std::int64_t now, std::int64_t before) {
    return before == 0
               ? std::string(kNotMeasured)
               : format_change(static_cast<double>(now - before) / static_cast<double>(before));
  };
  return {
      {name, format_bytes(point.figures.peak), place_of(point.figures),
       change(point.figures.peak.count, nothing.figures.peak.count),
       format_duration(point.step_time), change(point.step_time.count(), nothing.step_time.count()),
       std::to_string(point.figures.num_recomputed)},
      detail};
}

Grid grid_of(const std::string& name, const FrontRecord& record) {
  const std::string step = "step (" + std::string(to_string(record.time_source)) + ")";
  return {{{name, Alignment::kLeft},
           {"peak"},
           {"peak is in", Alignment::kLeft, 2},
           {"vs none"},
           {step},
           {"vs none"},
           {"recomputed ops", Alignment::kRight, 1}},
          "keeps",
          {}};
}

std::string exactness_of(const Front& front) {
  std::string gaps;
  if (front.time_gap.count() > 0) gaps += " be faster by up to " + format_duration(front.time_gap);
  if (front.transient_gap.count > 0) {
    gaps += (gaps.empty() ? "" : " or") + std::string(" need up to ") +
            format_bytes(front.transient_gap) + " less";
  }
  return gaps.empty() ? "no save set, cut or mix of layers was left out"
                      : "a plan that was not found may" + gaps;
}

Grid points_grid(const FrontRecord& record) {
  Grid grid = grid_of("point", record);
  for (std::size_t index = 0; index < record.front.points.size(); ++index) {
    const bool is_knee = index == record.front.knee;
    grid.rows.push_back(row_of(std::to_string(index), record.front.points[index],
                               record.front.nothing_recomputed,
                               is_knee ? "the knee: behind it more bytes buy little time" : ""));
  }
  return grid;
}

Grid baselines_grid(const FrontRecord& record) {
  Grid grid = grid_of("baseline", record);
  for (const Baseline& baseline : record.front.baselines) {
    grid.rows.push_back(row_of(baseline.point.plan.policy, baseline.point,
                               record.front.nothing_recomputed,
                               baseline.is_matched ? "" : "no point of the front is as good"));
  }
  return grid;
}

std::string in_words(const FrontPoint& point) {
  return "peak " + format_bytes(point.figures.peak) + ", step " + format_duration(point.step_time) +
         ": " + point.saves;
}

std::string to_text(const FrontRecord& record) {
  const Front& front = record.front;
  const std::size_t width = terminal_columns();
  const auto line = [&](const std::string& text) {
    return format_line(text, TableFormat::kText, width);
  };
  std::string text =
      line(record.model + " on " + record.device + ", " + std::string(to_string(front.schedule)) +
           ": " + std::to_string(front.points.size()) + " of " +
           std::to_string(front.num_plans_found) + " plans worth having; " + exactness_of(front));
  text += "\n" + format_grid(points_grid(record), TableFormat::kText, width) + "\n";
  if (!front.baselines.empty()) {
    text += format_grid(baselines_grid(record), TableFormat::kText, width) + "\n";
  }
  text += line("Hypervolume " + format_fixed(front.hypervolume, 4) +
               ", of all baselines together " + format_fixed(front.baseline_hypervolume, 4));
  text += line("Verdict: " + front.verdict);
  text += line("The knee, point " + std::to_string(front.knee) + ": " +
               in_words(front.points[front.knee]));
  if (record.answer) text += line("The answer: " + in_words(*record.answer));
  return text;
}

// Nothing if there is no plan for it, or nothing was asked.
std::optional<FrontPoint> answer_of(FrontSearch& search, const FrontRecord& record) {
  if (record.budget) return search.fastest_within(*record.budget);
  if (record.max_slowdown_ratio) return search.lowest_within_slowdown(*record.max_slowdown_ratio);
  return std::nullopt;
}

ExitCode search(const Flags& flags) {
  if (flags.profile_file.empty() == flags.device.empty()) {
    throw UsageError(
        "a search needs times: give --profile FILE (see rematch profile), or a data "
        "sheet's with --device h100");
  }
  require_writable(flags.output);
  const SearchSpace space = space_of(flags);
  FrontRecord asked;
  add_question(flags, asked);
  const Trace trace = obtain_trace(flags.model, flags.trace_file);
  const Profile profile = obtain_profile(flags, trace);
  const std::vector<Plan> baselines = baseline_plans(flags, trace);
  FrontSearch found(trace, profile, space);
  FrontRecord record = make_front_record(trace, profile, space.optimizer);
  record.budget = asked.budget;
  record.max_slowdown_ratio = asked.max_slowdown_ratio;
  record.front = found.front(static_cast<std::size_t>(flags.num_points), baselines);
  record.answer = answer_of(found, record);
  if (!flags.output.empty()) write_output(flags.output, front_to_json(record));
  print(flags.json ? front_to_json(record).dump(2) + "\n" : to_text(record));
  if (record.budget && !record.answer) {
    std::fprintf(stderr, "rematch: no plan fits %s; the lowest peak is %s\n",
                 format_bytes(*record.budget).c_str(),
                 format_bytes(found.lowest().figures.peak).c_str());
    return ExitCode::kGateFailed;
  }
  return ExitCode::kOk;
}

}  // namespace

void add_search(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "search", "Every plan worth having between keeping everything and nothing, predicted");
  auto flags = std::make_shared<Flags>(*command);
  command->footer(
      "Examples:\n"
      "  rematch search --model llama3_8b --tokens 8192 --dtype bfloat16 --device h100\n"
      "  rematch search --model wan_small --profile wan.profile.json --budget 24MiB -o front.json\n"
      "  rematch run --model wan_small --plan front.json#3");
  command->callback([&action, flags] { action = [flags] { return search(*flags); }; });
}

}  // namespace rematch
