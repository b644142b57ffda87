#include "policies/search/loads/loads.h"

#include <cmath>
#include <set>

#include "tests/support/catch.h"

namespace rematch {
namespace {

// Makes a device on which loads up to `limit` fit. `rate` returns the tokens per second of a load.
// Records the loads that are tried.
PlanOfLoad device(std::int64_t limit, double (*rate)(std::int64_t),
                  std::multiset<std::int64_t>* asked) {
  return [=](std::int64_t load) -> std::optional<LoadPlan> {
    asked->insert(load);
    if (load > limit) return std::nullopt;
    LoadPlan plan;
    plan.tokens_per_second = rate(load);
    return plan;
  };
}

LoadsRecord find_largest_load(
    std::int64_t least, std::int64_t most, const PlanOfLoad& plan_of,
    const std::function<bool()>& is_stopped = [] { return false; }) {
  LoadsRecord record;
  record.least = least;
  record.most = most;
  try_loads(plan_of, is_stopped, record);
  return record;
}

double rising(std::int64_t load) {
  return static_cast<double>(load) / (1.0 + static_cast<double>(load));
}
double hill(std::int64_t load) { return 100 - std::abs(static_cast<double>(load) - 37); }
double level(std::int64_t) { return 5; }

TEST_CASE("the search finds the largest load and the best load for any limit") {
  for (std::int64_t limit = 1; limit <= 80; ++limit) {
    CAPTURE(limit);
    std::multiset<std::int64_t> asked;
    const LoadsRecord found = find_largest_load(1, 64, device(limit, hill, &asked));
    const std::int64_t largest = std::min<std::int64_t>(limit, 64);
    CHECK(found.largest == largest);
    CHECK(found.best == std::min<std::int64_t>(largest, 37));
    for (const std::int64_t load : asked) CHECK(asked.count(load) == 1);
    CHECK(asked.size() <= 45);
  }
}

TEST_CASE(
    "the best load is the largest if the rate rises with the load, and the smallest if the rate is "
    "constant") {
  std::multiset<std::int64_t> asked;
  CHECK(find_largest_load(1, 1000, device(777, rising, &asked)).best == 777);
  CHECK(find_largest_load(3, 1000, device(777, level, &asked)).best == 3);
}

TEST_CASE("every load of a range is tried if the range has at most sixteen loads") {
  std::multiset<std::int64_t> asked;
  const LoadsRecord found = find_largest_load(5, 20, device(99, hill, &asked));
  CHECK(found.tried.size() == 16);
  CHECK(found.tried.front().load == 5);
  CHECK(found.tried.back().load == 20);
}

TEST_CASE("if the smallest load does not fit, no other load is tried") {
  std::multiset<std::int64_t> asked;
  const LoadsRecord found = find_largest_load(4, 64, device(3, hill, &asked));
  CHECK_FALSE(found.largest.has_value());
  CHECK_FALSE(found.best.has_value());
  CHECK(found.tried.size() == 1);
  CHECK(asked.size() == 1);
}

TEST_CASE("a stopped search keeps finished answers and drops the interrupted answer") {
  for (std::size_t answered = 0; answered < 12; ++answered) {
    CAPTURE(answered);
    std::multiset<std::int64_t> asked;
    const PlanOfLoad ask = device(777, rising, &asked);
    const LoadsRecord found =
        find_largest_load(1, 1000, ask, [&] { return asked.size() > answered; });
    CHECK_FALSE(found.is_complete);
    CHECK(asked.size() == answered + 1);
    CHECK(found.tried.size() == answered);
    std::optional<std::int64_t> largest;
    for (const LoadPlan& load : found.tried) {
      CHECK(load.tokens_per_second.has_value() == (load.load <= 777));
      if (load.tokens_per_second) largest = load.load;
    }
    CHECK(found.largest == largest);
    CHECK(found.best == largest);  // the rate grows with the load
  }
}

TEST_CASE("a range of one load gives that load") {
  std::multiset<std::int64_t> asked;
  const LoadsRecord found = find_largest_load(7, 7, device(9, hill, &asked));
  CHECK(found.largest == 7);
  CHECK(found.best == 7);
  CHECK(asked.size() == 1);
}

}  // namespace
}  // namespace rematch
