// Tests random layers under random plans. If a test fails, its message contains the seed.
#include "tests/support/catch.h"
#include "tests/support/hazards/random_program.h"
#include "tests/support/hazards/trial.h"
#include "tests/support/networks.h"
#include "tests/support/random_plan.h"
#include "tests/support/schedules.h"
#include "tests/support/seeds.h"
#include "tests/support/step_meter.h"
#include "tests/support/strict.h"

namespace rematch::testing::hazards {
namespace {

constexpr std::uint32_t kPrograms = 100;

std::vector<Plan> plans_of(const Trace& trace, std::uint32_t seed) {
  std::vector<Plan> plans = {plan_of_blocks(trace, [](int, int) { return false; }),
                             plan_of_blocks(trace, [](int, int op) { return op % 2 == 0; })};
  for (std::uint32_t i = 0; i < 3; ++i) plans.push_back(random_plan(trace, seed * 3 + i));
  return plans;
}

// Returns the bytes that autograd leaks without the engine. Autograd leaves a reference cycle if an
// op writes a result in place into a value from which the result was computed.
std::int64_t left_by_plain(const Hazard& hazard) {
  const std::int64_t before = cpu_bytes();
  try_to_train(hazard, nullptr);
  return cpu_bytes() - before;
}

TEST_CASE("random layers under random plans are bitwise equal to the plain run", "[property]") {
  prepare_process();
  const std::uint32_t seeds = num_seeds(kPrograms);
  std::uint32_t num_plain = 0;
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    const Hazard hazard = random_program(seed);
    const Trial plain = try_to_train(hazard, nullptr);
    // Skipped, because the program overwrote a tensor that autograd saved.
    if (!plain.facts.has_value()) continue;
    ++num_plain;
    const std::int64_t left = left_by_plain(hazard);
    const std::vector<Plan> plans = plans_of(trace_of(hazard), seed);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      for (const Schedule schedule : kSchedules) {
        CAPTURE(seed, i, to_string(schedule));
        const std::int64_t before = cpu_bytes();
        const Checkpoint checkpoint = strict(plans[i], schedule);
        CHECK(verdict_on(plain, try_to_train(hazard, &checkpoint)) == "");
        CHECK(cpu_bytes() - before <= left);
      }
    }
  }
  CHECK(num_plain > seeds / 3);
}

}  // namespace
}  // namespace rematch::testing::hazards
