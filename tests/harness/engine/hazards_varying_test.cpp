// Tests plans under which a step runs different ops from the traced step. See Note [Leaving the
// plan].
#include "tests/support/catch.h"
#include "tests/support/hazards/plan_families.h"
#include "tests/support/hazards/random_program.h"
#include "tests/support/hazards/trial.h"
#include "tests/support/networks.h"
#include "tests/support/random_plan.h"
#include "tests/support/schedules.h"
#include "tests/support/seeds.h"
#include "tests/support/step_meter.h"

namespace rematch::testing::hazards {
namespace {

constexpr int kVaryingSteps = 12;
constexpr std::uint32_t kStrangers = 60;

Checkpoint following(const Plan& plan, Schedule schedule) {
  return {plan, schedule, Checkpoint::Options{.on_mismatch = OnMismatch::kFollowQuietly}};
}

std::int64_t passes_left(const Checkpoint& checkpoint) {
  std::int64_t left = 0;
  for (const Departures& type : checkpoint.departures()) left += type.left;
  return left;
}

// Runs the steps of `hazard` under a plan that was made for other ops. Returns how many forward
// passes left the plan. `left_by_plain` is the number of bytes that autograd leaks even without the
// engine.
std::int64_t check_follows(const Hazard& hazard, const Trial& plain, const Plan& plan, int steps,
                           std::int64_t left_by_plain = 0) {
  std::int64_t left = 0;
  for (const Schedule schedule : kSchedules) {
    CAPTURE(to_string(schedule));
    const std::int64_t before = cpu_bytes();
    const Checkpoint checkpoint = following(plan, schedule);
    CHECK(verdict_on(plain, try_to_train(hazard, &checkpoint, Backward::kOnce, steps)) == "");
    CHECK(cpu_bytes() <= before + left_by_plain);
    left += passes_left(checkpoint);
  }
  return left;
}

TEST_CASE("under every family of plans, steps whose ops vary are bitwise equal to the plain run") {
  prepare_process();
  const std::vector<Hazard> hazards = varying_hazards();
  int num_left = 0;
  for (const Hazard& hazard : hazards) {
    CAPTURE(hazard.name);
    const Trial plain = try_to_train(hazard, nullptr, Backward::kOnce, kVaryingSteps);
    REQUIRE(plain.error == "");
    const Trace trace = trace_of(hazard);
    const Resolver resolver(trace);
    std::int64_t left = 0;
    std::size_t number = 0;
    for (const PlanFamily& family : plan_families()) {
      // In tests that are not deep, each hazard runs under every fifth family of plans.
      const bool is_turn = ++number % 5 == hazard.name.size() % 5;
      if (!is_deep() && !family.for_every_backward && !is_turn) continue;
      const std::optional<Plan> plan = family.make(trace, resolver);
      if (!plan.has_value()) continue;
      CAPTURE(family.name);
      left += check_follows(hazard, plain, *plan, kVaryingSteps);
    }
    // With some hazards, every pass follows the plan, because only sizes or the order of whole
    // regions vary.
    num_left += left > 0 ? 1 : 0;
  }
  CHECK(num_left >= 60);
}

TEST_CASE(
    "a random program that follows the plan of another program is bitwise equal to the plain run",
    "[property]") {
  prepare_process();
  std::uint32_t num_plain = 0;
  std::int64_t left = 0;
  for (std::uint32_t seed = 0; seed < num_seeds(kStrangers); ++seed) {
    const Hazard hazard = random_program(seed);
    const Trial plain = try_to_train(hazard, nullptr);
    // Skipped, because the program overwrote a tensor that autograd saved.
    if (!plain.facts.has_value()) continue;
    ++num_plain;
    const std::int64_t before = cpu_bytes();
    try_to_train(hazard, nullptr);
    const std::int64_t left_by_plain = cpu_bytes() - before;
    for (std::uint32_t other = seed + 1; other <= seed + 4; ++other) {
      CAPTURE(seed, other);
      const Hazard stranger = random_program(other);
      if (!try_to_train(stranger, nullptr).facts.has_value()) continue;
      const Plan plan = random_plan(trace_of(stranger), other);
      left += check_follows(hazard, plain, plan, kSteps, left_by_plain);
    }
  }
  CHECK(num_plain > num_seeds(kStrangers) / 3);
  CHECK(left > 0);
}

}  // namespace
}  // namespace rematch::testing::hazards
