#include "policies/search/driver/driver.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/planners/planners.h"
#include "policies/search/simple/simple_point.h"

namespace rematch {
namespace {

constexpr std::string_view kUsualPolicies =
    "none,full,nth_first(2),nth_first(3),nth_first(4),first_n(1),first_n(2),first_n(4),first_n(8),"
    "first_n(16),segments(2),segments(3),segments(4),segments(6),segments(8),attn_only,save_mm,"
    "save_compute,sac_titan";

// Returns the best plan within the user's budget or slowdown. Returns nullopt if no plan is within
// this limit, or if the user gave neither.
template <class Search>
std::optional<FrontPoint> answer_of(Search& search, const FrontRecord& record) {
  if (record.budget) return search.fastest_within(*record.budget);
  if (record.max_slowdown_ratio) return search.lowest_within_slowdown(*record.max_slowdown_ratio);
  return std::nullopt;
}

// Returns the plan that the front must include so that other commands can refer to it by number.
// This is the answer to the user's limit or, without a limit, the fastest plan within the device's
// memory.
template <class Search>
std::vector<FrontPoint> worth_showing(Search& search, const FrontRecord& record) {
  std::optional<FrontPoint> point = answer_of(search, record);
  const bool is_asked = record.budget || record.max_slowdown_ratio;
  const std::optional<Bytes> memory = record.memory_for_tensors();
  if (!is_asked && memory) point = search.fastest_within(*memory);
  return point ? std::vector<FrontPoint>{*std::move(point)} : std::vector<FrontPoint>{};
}

// Returns whether the simple plan is faster than every plan of the search with at most the same
// peak. This can happen, because simple plans may be outside the search space.
bool is_new(const FrontPoint& simple, FrontSearch& search) {
  const std::optional<FrontPoint> found = search.fastest_within(simple.figures.peak);
  return !found || simple.step_time < found->step_time;
}

}  // namespace

std::string_view usual_policies() { return kUsualPolicies; }

SearchSpace usual_space(Schedule schedule, OptimizerKind optimizer) {
  SearchSpace space;
  space.schedule = schedule;
  space.optimizer = optimizer;
  // Under on_demand there are few options, so all of them are kept. Under whole_region, a search
  // over a model of 80 layers with all options would take over 10 s.
  if (schedule == Schedule::kOnDemand) space.resolution_ratio = 0;
  return space;
}

std::vector<Plan> usual_baselines(const Trace& trace, const Profile& profile,
                                  const std::function<bool()>& stop) {
  std::vector<Plan> plans;
  const Resolver resolver(trace);
  const auto policies = std::get<std::vector<Policy>>(parse_policies(kUsualPolicies));
  for (const Policy& policy : policies) {
    if (stop && stop()) return plans;
    auto plan = resolver.resolve(policy, NoEffect::kAllow);
    if (auto* const resolved = std::get_if<Plan>(&plan)) plans.push_back(std::move(*resolved));
  }
  if (stop && stop()) return plans;
  for (Plan& plan : planner_baselines(trace, profile)) plans.push_back(std::move(plan));
  return plans;
}

std::optional<Bytes> answer_question(const Trace& trace, const Profile& profile,
                                     const SearchSpace& space, const Shown& shown,
                                     FrontSearch& search, FrontRecord& record) {
  // An answer must not be a baseline. The answers are therefore found before front() adds the
  // baselines to the search.
  std::vector<FrontPoint> answers = worth_showing(search, record);
  const auto fill = [&] {
    record.front = search.front(shown.num_points, shown.baselines, answers);
    record.answer = answer_of(search, record);
  };
  fill();
  if (space.is_stopped()) return std::nullopt;
  if (shown.simple) record.simple = find_simple(trace, profile, space, record, search);
  if (record.simple) {
    FrontPoint simple = search.judge(record.simple->point.plan);
    if (is_new(simple, search)) {
      answers.push_back(std::move(simple));
      fill();
    }
  }
  const std::optional<Bytes> limit = limit_of(record);
  const Bytes lowest = search.lowest().figures.peak;
  if (limit && lowest > *limit) return lowest;
  return std::nullopt;
}

std::optional<Bytes> answer_pipeline(const std::vector<SearchedStage>& stages,
                                     const SearchSpace& space, const Shown& shown,
                                     PipelineSearch& search, FrontRecord& record) {
  record.front = search.front(shown.num_points, shown.baselines, worth_showing(search, record));
  record.answer = answer_of(search, record);
  if (space.is_stopped()) return std::nullopt;
  if (shown.simple) record.simple = find_simple(stages, space, record, search);
  const std::optional<Bytes> limit = limit_of(record);
  const Bytes lowest = search.lowest().figures.peak;
  if (limit && lowest > *limit) return lowest;
  return std::nullopt;
}

}  // namespace rematch
