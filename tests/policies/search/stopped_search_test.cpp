// Tests that a search gives a front of valid plans even if it is stopped at any moment.
#include <algorithm>

#include "policies/search/front/front_search.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

constexpr std::size_t kMaxPoints = 12;

SearchSpace whole_regions() {
  SearchSpace space;
  space.schedule = Schedule::kWholeRegion;
  space.resolution_ratio = 0.05;
  return space;
}

// Returns a space whose `stop` returns false `patience` times, and then true. `asked` counts the
// calls.
SearchSpace impatient(SearchSpace space, int patience, int* asked) {
  space.stop = [patience, asked] { return (*asked)++ >= patience; };
  return space;
}

// Stops one search at its first poll, and further searches at every `step`-th poll. Checks each
// front.
void check_stopped(const SearchSpace& space, int step) {
  const Trace trace = testing::toy_llama({.layers = 5, .tokens = 64});
  const Profile profile = testing::made_up_profile(trace, 1);
  int asked = 0;
  const SearchSpace never = impatient(space, 1'000'000, &asked);
  const Front whole = FrontSearch(trace, profile, never).front(kMaxPoints, {});
  REQUIRE(whole.is_complete);
  const int times_asked = asked;
  REQUIRE(times_asked > 50);
  StepSimulator simulator(trace);
  for (int patience = 0; patience < times_asked; patience += step) {
    CAPTURE(patience);
    asked = 0;
    const Front front =
        FrontSearch(trace, profile, impatient(space, patience, &asked)).front(kMaxPoints, {});
    CHECK_FALSE(front.is_complete);
    REQUIRE(front.points.size() >= 2);
    for (std::size_t i = 0; i < front.points.size(); ++i) {
      const FrontPoint& point = front.points[i];
      CHECK(simulator.simulate(point.plan, front.schedule).peak_bytes() == point.figures.peak);
      if (i > 0) CHECK(point.figures.peak > front.points[i - 1].figures.peak);
      if (i > 0) CHECK(point.step_time < front.points[i - 1].step_time);
    }
    // The last point recomputes nothing, and the first point has a lower peak.
    CHECK(front.points.back().figures.recompute.count() == 0);
    CHECK(front.points.front().figures.peak < front.points.back().figures.peak);
    CHECK(front.points.front().figures.peak >= whole.points.front().figures.peak);
  }
}

TEST_CASE("under whole_region, a stopped search returns a front marked as stopped") {
  check_stopped(whole_regions(), 3);
}

TEST_CASE("under on_demand, a stopped search returns a front marked as stopped") {
  check_stopped(SearchSpace{}, 13);
}

}  // namespace
}  // namespace rematch
