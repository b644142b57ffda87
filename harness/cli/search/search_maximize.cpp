#include "harness/cli/search/search_maximize.h"

#include <cstdio>
#include <map>
#include <string>

#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/profile_here.h"
#include "harness/cli/search/search_budget.h"
#include "harness/sweep/interrupt.h"
#include "models/preset/parallel.h"
#include "policies/base/json.h"
#include "policies/predict/device/roofline.h"
#include "policies/search/front/front.h"
#include "policies/search/front/largest_load.h"
#include "reports/render/format.h"
#include "reports/render/tables/load_table.h"

namespace rematch {
namespace {

void require_maximizable(const SearchFlags& flags) {
  if (flags.maximize != "tokens_per_second") {
    throw UsageError("--maximize '" + flags.maximize + "' is unknown; tokens_per_second is known");
  }
  if (!flags.model.range()) {
    throw UsageError("--maximize needs a range of loads; give --batch 1:64 or --tokens 1024:16384");
  }
  if (!flags.trace_file.empty()) {
    throw UsageError("--maximize tries several shapes, and a trace is of one; give --model");
  }
  if (!flags.profile_file.empty() || is_measured_device(flags.device)) {
    throw UsageError(
        "--maximize needs the times of every load that it tries, and a measured profile is of one: "
        "an op's time does not grow in step with the load; give a data sheet's times with "
        "--device h100");
  }
  if (flags.num_measured != 0 || !flags.max_slowdown.empty() || flags.fail_behind_baselines) {
    throw UsageError(
        "--maximize goes without --measure, --max-slowdown and --fail-behind-baselines");
  }
}

std::int64_t tokens_of(const ModelSpec& spec) {
  return spec.at("tokens") * (spec.option("batch") > 0 ? spec.option("batch") : 1);
}

LoadQuestion question_of(const SearchFlags& flags, Bytes budget) {
  const DimensionRange& range = *flags.model.range();
  const ModelSpec spec = flags.model.spec_at(range.least);
  return {flags.model.model(),
          flags.device,
          budget,
          static_cast<int>(world_size(spec)),
          static_cast<int>(data_ranks(spec)),
          range.name,
          range.most};
}

// Nothing if no plan fits.
std::optional<LoadAnswer> best_plan(const SearchFlags& flags, SearchSpace space, Bytes budget,
                                    std::int64_t load) {
  const ModelSpec spec = flags.model.spec_at(load);
  const Trace trace = record_trace(spec);
  const Profile profile = roofline_profile(trace, *find_device_sheet(flags.device));
  add_host_link(flags, profile.device, space);
  FrontSearch search(trace, profile, space);
  std::optional<FrontPoint> fastest = search.fastest_within(budget);
  if (!fastest) return std::nullopt;
  const double seconds = std::chrono::duration<double>(fastest->step_time).count();
  return LoadAnswer{static_cast<double>(tokens_of(spec)) / seconds, fastest->step_time,
                    fastest->figures.peak, fastest->figures.num_recomputed,
                    std::move(fastest->saves)};
}

using Answers = std::map<std::int64_t, LoadAnswer>;

Json to_json(const SearchFlags& flags, const LoadQuestion& question, const LargestLoad& found,
             const Answers& answers) {
  Json tried = Json::array();
  for (const TriedLoad& load : found.tried) {
    Json entry = {{"load", load.load},
                  {"predicted_tokens_per_second", nullptr},
                  {"predicted_tokens_per_second_all_ranks", nullptr},
                  {"predicted_step_time_ns", nullptr},
                  {"predicted_peak_allocated_bytes", nullptr},
                  {"saves", nullptr}};
    if (load.tokens_per_second) {
      const LoadAnswer& answer = answers.at(load.load);
      entry["predicted_tokens_per_second"] = answer.tokens_per_second;
      entry["predicted_tokens_per_second_all_ranks"] =
          answer.tokens_per_second * question.num_batches;
      entry["predicted_step_time_ns"] = answer.step_time.count();
      entry["predicted_peak_allocated_bytes"] = answer.peak.count;
      entry["saves"] = answer.saves;
    }
    tried.push_back(std::move(entry));
  }
  const auto or_null = [](const std::optional<std::int64_t>& load) {
    return load ? Json(*load) : Json(nullptr);
  };
  return {{"maximized", flags.maximize},
          {"complete", found.is_complete},
          {"model", flags.model.model()},
          {"device", flags.device},
          {"time_source", "roofline"},
          {"world", question.world},
          {"budget_bytes", question.budget.count},
          {"dimension", question.dimension},
          {"largest_that_fits", or_null(found.largest)},
          {"best", or_null(found.best)},
          {"tried", std::move(tried)}};
}

// Progress: a load is a search of its own, seconds long on a large model.
void say_tried(const std::string& dimension, std::int64_t load,
               const std::optional<LoadAnswer>& answer) {
  const std::string outcome = !answer ? "no plan fits"
                                      : format_fixed(answer->tokens_per_second, 0) +
                                            " tokens/s, peak " + format_bytes(answer->peak);
  std::fprintf(stderr, "rematch: %s %lld: %s\n", dimension.c_str(), static_cast<long long>(load),
               outcome.c_str());
}

}  // namespace

ExitCode maximize(const SearchFlags& flags, const SearchSpace& space,
                  std::optional<Bytes> measured_memory) {
  require_maximizable(flags);
  const Bytes memory = measured_memory.value_or(find_device_sheet(flags.device)->memory);
  const Bytes budget = flags.budget.empty() ? memory : parse_bytes(flags.budget);
  const DimensionRange range = *flags.model.range();
  Answers answers;
  const InterruptGuard guard;
  const bool tries_grids = range.name == "tokens";
  if (!tries_grids) flags.model.say_grid(flags.model.spec_at(range.least));
  const LargestLoad found = find_largest_load(
      range.least, range.most,
      [&](std::int64_t load) -> std::optional<double> {
        if (tries_grids) flags.model.say_grid(flags.model.spec_at(load));
        std::optional<LoadAnswer> answer = best_plan(flags, space, budget, load);
        if (!InterruptGuard::signal()) say_tried(range.name, load, answer);
        if (!answer) return std::nullopt;
        const double rate = answer->tokens_per_second;
        answers.emplace(load, std::move(*answer));
        return rate;
      },
      space.stop);
  const LoadQuestion question = question_of(flags, budget);
  const Json json = to_json(flags, question, found, answers);
  if (!flags.output.empty()) write_output(flags.output, json);
  print(flags.json
            ? json.dump(2) + "\n"
            : loads_to_text(question, found, answers, TableFormat::kText, terminal_columns()));
  if (!found.is_complete) {
    throw Interrupted(InterruptGuard::signal().value(), found.largest
                                                            ? "the loads above were tried by then"
                                                            : "no load was known to fit by then");
  }
  if (found.largest) return ExitCode::kOk;
  std::fprintf(stderr, "rematch: not even %s %lld fits %s; give more memory, or a smaller %s\n",
               range.name.c_str(), static_cast<long long>(range.least),
               format_bytes(budget).c_str(), range.name.c_str());
  return ExitCode::kGateFailed;
}

}  // namespace rematch
