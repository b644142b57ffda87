#include "harness/cli/search_maximize.h"

#include <cstdio>
#include <map>
#include <string>

#include "harness/cli/flag_values.h"
#include "harness/cli/output.h"
#include "harness/cli/profile_here.h"
#include "harness/sweep/interrupt.h"
#include "policies/predict/roofline.h"
#include "policies/search/front.h"
#include "policies/search/largest_load.h"
#include "policies/trace/json.h"
#include "reports/render/format.h"
#include "reports/render/grid.h"

namespace rematch {
namespace {

// Of one load.
struct Answer {
  FrontPoint fastest;
  double tokens_per_second = 0;
};

void require_maximizable(const SearchFlags& flags) {
  if (flags.maximize != "tokens_per_second") {
    throw UsageError("--maximize '" + flags.maximize + "' is unknown; tokens_per_second is known");
  }
  if (!flags.model.range()) {
    throw UsageError("--maximize needs a range of loads; give --batch 1:64 or --tokens 1024:16384");
  }
  if (!flags.profile_file.empty() || !flags.trace_file.empty() ||
      is_measured_device(flags.device)) {
    throw UsageError(
        "--maximize tries several shapes, and a trace or measured profile is of one; give --model "
        "and a data sheet's times with --device h100");
  }
  if (flags.num_measured != 0 || !flags.max_slowdown.empty() || flags.fail_behind_baselines) {
    throw UsageError(
        "--maximize goes without --measure, --max-slowdown and --fail-behind-baselines");
  }
}

std::int64_t tokens_of(const ModelSpec& spec) {
  return spec.at("tokens") * (spec.option("batch") > 0 ? spec.option("batch") : 1);
}

// Nothing if no plan fits, or the search was interrupted.
std::optional<Answer> best_plan(const SearchFlags& flags, const SearchSpace& space, Bytes budget,
                                std::int64_t load) {
  if (InterruptGuard::signal()) return std::nullopt;
  const ModelSpec spec = flags.model.spec_at(load);
  const Trace trace = record_trace(spec);
  const Profile profile = roofline_profile(trace, *find_device_sheet(flags.device));
  FrontSearch search(trace, profile, space);
  std::optional<FrontPoint> fastest = search.fastest_within(budget);
  if (!fastest) return std::nullopt;
  const double seconds = std::chrono::duration<double>(fastest->step_time).count();
  return Answer{std::move(*fastest), static_cast<double>(tokens_of(spec)) / seconds};
}

using Answers = std::map<std::int64_t, Answer>;

Json to_json(const SearchFlags& flags, Bytes budget, const LargestLoad& found,
             const Answers& answers) {
  Json tried = Json::array();
  for (const TriedLoad& load : found.tried) {
    const auto answer = answers.find(load.load);
    Json entry = {{"load", load.load},
                  {"predicted_tokens_per_second", nullptr},
                  {"predicted_step_time_ns", nullptr},
                  {"predicted_peak_allocated_bytes", nullptr},
                  {"saves", nullptr}};
    if (answer != answers.end()) {
      entry["predicted_tokens_per_second"] = answer->second.tokens_per_second;
      entry["predicted_step_time_ns"] = answer->second.fastest.step_time.count();
      entry["predicted_peak_allocated_bytes"] = answer->second.fastest.figures.peak.count;
      entry["saves"] = answer->second.fastest.saves;
    }
    tried.push_back(std::move(entry));
  }
  const auto or_null = [](const std::optional<std::int64_t>& load) {
    return load ? Json(*load) : Json(nullptr);
  };
  return {{"maximized", flags.maximize},
          {"complete", !InterruptGuard::signal().has_value()},
          {"model", flags.model.model()},
          {"device", flags.device},
          {"time_source", "roofline"},
          {"world", flags.world},
          {"budget_bytes", budget.count},
          {"dimension", flags.model.range()->name},
          {"largest_that_fits", or_null(found.largest)},
          {"best", or_null(found.best)},
          {"tried", std::move(tried)}};
}

std::string to_text(const SearchFlags& flags, Bytes budget, const LargestLoad& found,
                    const Answers& answers) {
  const std::string& dimension = flags.model.range()->name;
  Grid grid{
      {{dimension}, {"tokens/s (roofline)"}, {"step"}, {"peak"}, {"recomputed ops"}}, "keeps", {}};
  for (const auto& [load, answer] : answers) {
    grid.rows.push_back(
        {{std::to_string(load), format_fixed(answer.tokens_per_second, 0),
          format_duration(answer.fastest.step_time), format_bytes(answer.fastest.figures.peak),
          std::to_string(answer.fastest.figures.num_recomputed)},
         load == found.best ? "the most: " + answer.fastest.saves : ""});
  }
  const std::size_t width = terminal_columns();
  const std::string summary =
      flags.model.model() + " on " + flags.device + " within " + format_bytes(budget) +
      ": the largest " + dimension + " that fits is " + std::to_string(*found.largest) +
      (*found.largest == flags.model.range()->most ? ", the most that was asked for" : "") +
      "; the most tokens a second are made with " + std::to_string(*found.best) +
      ". Bytes and times are predicted, times by the data sheet's peak rates.";
  return format_grid(grid, TableFormat::kText, width) + "\n" +
         format_line(summary, TableFormat::kText, width);
}

}  // namespace

ExitCode maximize(const SearchFlags& flags, const SearchSpace& space) {
  require_maximizable(flags);
  const Bytes budget =
      flags.budget.empty() ? find_device_sheet(flags.device)->memory : parse_bytes(flags.budget);
  const DimensionRange range = *flags.model.range();
  Answers answers;
  const InterruptGuard guard;
  const LargestLoad found =
      find_largest_load(range.least, range.most, [&](std::int64_t load) -> std::optional<double> {
        std::optional<Answer> answer = best_plan(flags, space, budget, load);
        if (!answer) return std::nullopt;
        const double rate = answer->tokens_per_second;
        answers.emplace(load, std::move(*answer));
        return rate;
      });
  const Json json = to_json(flags, budget, found, answers);
  if (!flags.output.empty()) write_output(flags.output, json);
  if (flags.json) {
    print(json.dump(2) + "\n");
  } else if (found.largest) {
    print(to_text(flags, budget, found, answers));
  }
  if (const auto signal = InterruptGuard::signal()) throw Interrupted(*signal);
  if (found.largest) return ExitCode::kOk;
  std::fprintf(stderr, "rematch: not even %s %lld fits %s; give more memory, or a smaller %s\n",
               range.name.c_str(), static_cast<long long>(range.least),
               format_bytes(budget).c_str(), range.name.c_str());
  return ExitCode::kGateFailed;
}

}  // namespace rematch
