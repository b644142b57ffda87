#include "policies/search/driver/joined_front.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "policies/catalogue/resolve.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/roofline.h"
#include "policies/search/driver/driver.h"
#include "policies/search/front/front_search.h"
#include "tests/support/catch.h"
#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// Everything that a search refers to.
struct HeldSearch {
  explicit HeldSearch(Trace its_trace)
      : trace(std::move(its_trace)),
        profile(roofline_profile(trace, *find_device_sheet("h100"))),
        space(usual_space(Schedule::kOnDemand, OptimizerKind::kAdamW)),
        search(trace, profile, space, resolve_none(trace)) {}

  Trace trace;
  Profile profile;
  SearchSpace space;
  FrontSearch search;
};

struct Question {
  std::optional<Bytes> budget = {};
  std::optional<double> max_slowdown_ratio = {};
};

FormOfModel form(std::uint32_t seed, const Question& question, std::string words) {
  testing::RandomTraceOptions options;
  options.layers = 3;
  options.ops_per_block = 8;
  const auto held = std::make_shared<HeldSearch>(testing::random_trace(seed, options));
  FormOfModel made;
  made.record = make_front_record(held->trace, held->profile, held->space.optimizer);
  made.record.budget = question.budget;
  made.record.max_slowdown_ratio = question.max_slowdown_ratio;
  const Shown shown{4, usual_baselines(held->trace, held->profile, {})};
  answer_question(held->trace, held->profile, held->space, shown, held->search, made.record);
  made.words = std::move(words);
  made.ask = questions_to(std::shared_ptr<FrontSearch>(held, &held->search));
  return made;
}

std::vector<FrontPoint> points_of_both(const FormOfModel& usual, const FormOfModel& other) {
  std::vector<FrontPoint> points = usual.record.front.points;
  const std::vector<FrontPoint>& others = other.record.front.points;
  points.insert(points.end(), others.begin(), others.end());
  return points;
}

bool has_words(const FrontPoint& point) {
  return point.saves.find("second form") != std::string::npos;
}

void check_front(const FrontRecord& joined, const FormOfModel& usual, const FormOfModel& other) {
  const std::vector<FrontPoint>& points = joined.front.points;
  for (const FrontPoint& point : points_of_both(usual, other)) {
    CHECK(std::any_of(points.begin(), points.end(),
                      [&](const FrontPoint& own) { return is_no_worse(own, point); }));
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i > 0) {
      CHECK(points[i].figures.peak > points[i - 1].figures.peak);
      CHECK(points[i].step_time < points[i - 1].step_time);
    }
    const bool is_other = points[i].plan.trace_sha256 == other.record.trace_sha256;
    CHECK(has_words(points[i]) == is_other);
    const Bytes peak = points[i].figures.peak;
    CHECK(points[i].step_time_bound <=
          std::min(usual.ask.step_time_bound(peak), other.ask.step_time_bound(peak)));
  }
  CHECK(joined.dimensions == usual.record.dimensions);
  CHECK(joined.front.baselines.size() == usual.record.front.baselines.size());
  CHECK(joined.front.num_plans_found ==
        usual.record.front.num_plans_found + other.record.front.num_plans_found);
  CHECK(joined.front.nothing_recomputed.step_time ==
        std::min(usual.record.front.nothing_recomputed.step_time,
                 other.record.front.nothing_recomputed.step_time));
}

TEST_CASE("a joined front has the points of both forms that no point of either is better than") {
  std::set<std::size_t> forms_in_front;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(20); ++seed) {
    CAPTURE(seed);
    const FormOfModel usual = form(2 * seed, {}, "");
    const FormOfModel other = form(2 * seed + 1, {}, "second form");
    const FrontRecord joined = join_fronts(usual, other);
    check_front(joined, usual, other);
    CHECK_FALSE(joined.answer);
    REQUIRE(joined.simple);
    CHECK(joined.simple->more_peak >= Bytes{});
    const auto num_others = static_cast<std::size_t>(
        std::count_if(joined.front.points.begin(), joined.front.points.end(), has_words));
    const bool is_mixed = num_others > 0 && num_others < joined.front.points.size();
    forms_in_front.insert(is_mixed ? 2 : num_others == 0 ? 0 : 1);
  }
  CHECK(forms_in_front.size() == 3);  // fronts of either form, and of both
}

TEST_CASE("within a budget, the joined answer is the faster answer of the two forms") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(20); ++seed) {
    CAPTURE(seed);
    const Front free = form(2 * seed, {}, "").record.front;
    const Question question{.budget = free.points[free.points.size() / 2].figures.peak};
    const FormOfModel usual = form(2 * seed, question, "");
    const FormOfModel other = form(2 * seed + 1, question, "second form");
    const FrontRecord joined = join_fronts(usual, other);
    check_front(joined, usual, other);
    REQUIRE(joined.answer);
    CHECK(joined.answer->figures.peak <= *question.budget);
    for (const FormOfModel* each : {&usual, &other}) {
      if (each->record.answer) CHECK(joined.answer->step_time <= each->record.answer->step_time);
    }
    REQUIRE(joined.simple);
    const nanoseconds most = joined.simple->point.step_time - joined.simple->more_time;
    CHECK(most <= joined.simple->point.step_time);
    if (const auto fastest = other.ask.fastest_within(joined.simple->point.figures.peak)) {
      CHECK(most <= fastest->step_time);
    }
  }
}

// The slower form may use only what is left above its own step without recompute.
TEST_CASE("a largest slowdown counts from the faster of both steps without recompute") {
  constexpr double kSlowdown = 0.1;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(20); ++seed) {
    CAPTURE(seed);
    const Question question{.max_slowdown_ratio = kSlowdown};
    const FormOfModel usual = form(2 * seed, question, "");
    const FormOfModel other = form(2 * seed + 1, question, "second form");
    const FrontRecord joined = join_fronts(usual, other);
    check_front(joined, usual, other);
    const double most =
        static_cast<double>(joined.front.nothing_recomputed.step_time.count()) * (1 + kSlowdown);
    REQUIRE(joined.answer);
    CHECK(static_cast<double>(joined.answer->step_time.count()) <= most);
    for (const FrontPoint& point : points_of_both(usual, other)) {
      if (static_cast<double>(point.step_time.count()) > most - 1) continue;
      CHECK(joined.answer->figures.peak <= point.figures.peak);
    }
  }
}

}  // namespace
}  // namespace rematch
