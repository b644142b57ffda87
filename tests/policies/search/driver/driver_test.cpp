#include "policies/search/driver/driver.h"

#include <algorithm>
#include <iterator>

#include "policies/catalogue/resolve.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/roofline.h"
#include "policies/search/simple/simple_point.h"
#include "tests/support/catch.h"
#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

struct Asked {
  FrontRecord record;
  std::optional<Bytes> lowest;  // the result of answer_question()
};

Profile h100_profile(const Trace& trace) {
  return roofline_profile(trace, *find_device_sheet("h100"));
}

SearchSpace space_of(Schedule schedule, Reach reach) {
  SearchSpace space = usual_space(schedule, OptimizerKind::kAdamW);
  space.reach = reach;
  return space;
}

// Returns a budget between the lowest peak (share 0) and the highest peak (share 1) of a front.
Bytes budget_at(double share, const Trace& trace, const SearchSpace& space) {
  const Profile profile = h100_profile(trace);
  const Front front = FrontSearch(trace, profile, space, resolve_none(trace)).front(16, {});
  const std::int64_t low = front.points.front().figures.peak.count;
  const std::int64_t high = front.points.back().figures.peak.count;
  return Bytes{low + static_cast<std::int64_t>(share * static_cast<double>(high - low))};
}

// Asks for the fastest plan within a budget.
Asked ask(const Trace& trace, const SearchSpace& space, Bytes budget) {
  Asked asked;
  const Profile profile = h100_profile(trace);
  asked.record = make_front_record(trace, profile, space.optimizer);
  asked.record.budget = budget;
  FrontSearch search(trace, profile, space, resolve_none(trace));
  const Shown shown{4, usual_baselines(trace, profile, {})};
  asked.lowest = answer_question(trace, profile, space, shown, search, asked.record);
  return asked;
}

// Returns every row of the front: points, baselines and the simple plan.
std::vector<FrontPoint> rows_of(const Asked& asked) {
  std::vector<FrontPoint> rows = asked.record.front.points;
  for (const Baseline& baseline : asked.record.front.baselines) rows.push_back(baseline.point);
  if (asked.record.simple) rows.push_back(asked.record.simple->point);
  return rows;
}

void check_that_no_row_is_better(const Asked& asked) {
  REQUIRE(asked.record.answer);
  const FrontPoint& answer = *asked.record.answer;
  CHECK(answer.figures.peak <= *asked.record.budget);
  for (const FrontPoint& row : rows_of(asked)) {
    CAPTURE(row.plan.policy);
    const bool fits = row.figures.peak <= *asked.record.budget;
    CHECK_FALSE((fits && row.step_time < answer.step_time));
    CHECK_FALSE((row.figures.peak < answer.figures.peak && row.step_time <= answer.step_time));
  }
}

TEST_CASE("no other row of the search's table is better than the answer") {
  const double shares[] = {0, 0.1, 0.35, 0.6, 0.9};
  for (std::uint32_t seed = 0; seed < testing::num_seeds(50); ++seed) {
    CAPTURE(seed);
    testing::RandomTraceOptions options;
    options.layers = 2 + static_cast<int>(seed % 3);
    options.ops_per_block = 8;
    const Schedule schedule = seed % 2 == 0 ? Schedule::kOnDemand : Schedule::kWholeRegion;
    const Trace trace = testing::random_trace(seed, options);
    const double share = shares[seed % std::size(shares)];
    const SearchSpace space = space_of(schedule, seed % 4 < 2 ? Reach::kHull : Reach::kAll);
    const Asked asked = ask(trace, space, budget_at(share, trace, space));
    CHECK_FALSE(asked.lowest);
    check_that_no_row_is_better(asked);
  }
}

TEST_CASE("if no plan fits the budget, the answer gives the lowest peak") {
  const Asked asked = ask(testing::toy_llama({.layers = 4}), {}, Bytes{1});
  REQUIRE(asked.lowest);
  CHECK_FALSE(asked.record.answer);
  CHECK(*asked.lowest > *asked.record.budget);
  CHECK(*asked.lowest == asked.record.front.points.front().figures.peak);
}

TEST_CASE("default baselines are not computed after the search is stopped") {
  const Trace trace = testing::toy_llama({.layers = 4});
  const Profile profile = h100_profile(trace);
  CHECK(usual_baselines(trace, profile, {}).size() > 10);
  CHECK(usual_baselines(trace, profile, [] { return true; }).empty());
}

}  // namespace
}  // namespace rematch
