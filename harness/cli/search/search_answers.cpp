#include "harness/cli/search/search_answers.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "harness/cli/exit_code.h"
#include "harness/cli/search/trainer_modes.h"
#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/export/torch_file.h"
#include "policies/search/simple/simple_form.h"

namespace rematch {
namespace {

FrontPoint best_simple(SimpleSearch& search, const FrontRecord& record) {
  const Front& front = record.front;
  std::optional<FrontPoint> found;
  if (record.max_slowdown_ratio) {
    const auto least = static_cast<double>(front.nothing_recomputed.step_time.count());
    found = search.lowest_within(std::chrono::nanoseconds(
        static_cast<std::int64_t>(least * (1 + *record.max_slowdown_ratio))));
  } else {
    const Bytes knee = front.points[front.knee].figures.peak;
    found = search.fastest_within(limit_of(record).value_or(knee));
  }
  return found ? *std::move(found) : search.lowest();
}

}  // namespace

std::optional<Bytes> limit_of(const FrontRecord& record) {
  if (record.budget) return record.budget;
  if (record.max_slowdown_ratio) return std::nullopt;
  return record.memory_for_tensors();
}

std::optional<SimplePoint> find_simple(const Trace& trace, const Profile& profile,
                                       const SearchSpace& space, const FrontRecord& record,
                                       FrontSearch& exact) {
  SearchSpace as_trainers = space;
  as_trainers.schedule = Schedule::kWholeRegion;
  SimpleSearch search(trace, profile, as_trainers);
  if (space.is_stopped()) return std::nullopt;
  SimplePoint simple{best_simple(search, record), {}, {}};
  FrontPoint& point = simple.point;
  point.step_time_bound = exact.step_time_bound(point.figures.peak);
  const auto least = static_cast<double>(record.front.nothing_recomputed.step_time.count());
  const double slowdown = static_cast<double>(point.step_time.count()) / least - 1;
  const FrontPoint lower = exact.lowest_within_slowdown(std::max(slowdown, 0.0));
  simple.more_peak = std::max(point.figures.peak - lower.figures.peak, Bytes{});
  if (const auto faster = exact.fastest_within(point.figures.peak)) {
    simple.more_time = std::max(point.step_time - faster->step_time, std::chrono::nanoseconds{});
  }
  return simple;
}

bool is_for_torch(const SearchFlags& flags) {
  if (flags.target.empty()) return false;
  if (flags.target != "torch") {
    if (trainer_named(flags.target) != nullptr) return false;
    std::vector<std::string_view> known = {"torch"};
    for (const TrainingSystem& system : training_systems()) {
      if (!system.target.empty()) known.push_back(system.target);
    }
    throw UsageError("--for has no trainer " + in_quotes(flags.target) +
                     did_you_mean(flags.target, known));
  }
  if (flags.schedule_option->count() != 0 && flags.schedule != "whole_region") {
    throw UsageError("torch recomputes whole regions; leave out --schedule or --for");
  }
  return true;
}

void keep_to_torch(SearchSpace& space) {
  space.whole_modules = true;
  space.most_in_segment = 1;
}

std::vector<Plan> runnable_by_torch(const Trace& trace, std::vector<Plan> baselines) {
  std::erase_if(baselines, [&](const Plan& plan) {
    return std::holds_alternative<Rejected>(torch_regions(trace, plan, Schedule::kWholeRegion));
  });
  return baselines;
}

}  // namespace rematch
