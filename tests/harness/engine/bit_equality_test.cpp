#include <catch2/catch.hpp>
#include <random>

#include "tests/support/networks.h"
#include "tests/support/schedules.h"
#include "tests/support/seeds.h"

namespace rematch::testing {
namespace {

// Keeps a random half of the ops. The same seed gives the same ops in the engine and in
// run_closures().
std::function<bool(int, int)> random_mask(std::uint32_t seed) {
  return [seed](int layer, int op) {
    std::mt19937 bits(seed * 7919U + static_cast<std::uint32_t>(layer * 131 + op));
    return (bits() & 1U) != 0;
  };
}

TEST_CASE("networks under full recompute are bitwise equal to the plain run") {
  for (const NamedNetwork& network : hazard_networks()) {
    const Outcome plain = run_plain(network);
    const Trace trace = trace_of(network);
    for (const bool early_stop : {true, false}) {
      const Plan plan = plan_of_blocks(
          trace, [](int, int) { return false; }, early_stop);
      for (const Schedule schedule : kSchedules) {
        CAPTURE(network.name, to_string(schedule), early_stop);
        CHECK(first_difference(plain, run_engine(network, plan, schedule)) == "");
      }
    }
  }
}

TEST_CASE("networks that keep a random half of the ops are bitwise equal to the plain run") {
  for (const NamedNetwork& network : hazard_networks()) {
    const Outcome plain = run_plain(network);
    const Trace trace = trace_of(network);
    for (std::uint32_t seed = 0; seed < num_seeds(12); ++seed) {
      const Plan plan = plan_of_blocks(trace, random_mask(seed), seed % 2 == 0);
      for (const Schedule schedule : kSchedules) {
        CAPTURE(network.name, to_string(schedule), seed);
        CHECK(first_difference(plain, run_engine(network, plan, schedule)) == "");
      }
    }
  }
}

// Checks the independent implementation with which other tests compare the engine.
TEST_CASE("an independent implementation is bitwise equal to the plain run") {
  for (const NamedNetwork& network : hazard_networks()) {
    CAPTURE(network.name);
    const Outcome plain = run_plain(network);
    CHECK(first_difference(plain, run_closures(network, {})) == "");
    CHECK(first_difference(plain, run_closures(network, {.early_stop = false})) == "");
  }
}

}  // namespace
}  // namespace rematch::testing
