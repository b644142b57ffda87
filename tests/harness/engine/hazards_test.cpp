// Trains every hazard under every family of plans, with both schedules and every value of Backward.
// Loss, gradients, buffers, generators and memory must be the same as without the engine, or the
// engine must fail with the message that the hazard expects.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/hazards/plan_families.h"
#include "tests/support/hazards/trial.h"
#include "tests/support/networks.h"
#include "tests/support/schedules.h"
#include "tests/support/step_meter.h"
#include "tests/support/strict.h"

namespace rematch::testing::hazards {
namespace {

// A plan that was tried, with its verdict. Several families often make the same plan, which is then
// run only once.
struct Tried {
  Plan plan;
  Schedule schedule;
  std::string verdict;
};

bool same_work(const Plan& a, const Plan& b) {
  const auto same_type = [](const RegionType& x, const RegionType& y) {
    return x.early_stop == y.early_stop && x.by_demand == y.by_demand &&
           x.whole_on_demand == y.whole_on_demand && x.demand_steps == y.demand_steps &&
           std::equal(
               x.ops.begin(), x.ops.end(), y.ops.begin(), y.ops.end(),
               [](const PlannedOp& p, const PlannedOp& q) { return p.treatment == q.treatment; });
  };
  return std::equal(a.regions.begin(), a.regions.end(), b.regions.begin(), b.regions.end(),
                    [&](const PlannedRegion& x, const PlannedRegion& y) {
                      return x.first_scope == y.first_scope && x.last_scope == y.last_scope &&
                             same_type(a.types[static_cast<std::size_t>(x.type)],
                                       b.types[static_cast<std::size_t>(y.type)]);
                    });
}

// Runs a hazard under plans, and compares the results with a run without a plan.
class Examination {
 public:
  Examination(const Hazard& hazard, Backward backward, int steps)
      : hazard_(hazard),
        backward_(backward),
        steps_(steps),
        plain_(try_to_train(hazard, nullptr, backward, steps)) {}

  const Trial& plain() const { return plain_; }

  // Returns a description of the fault, or an empty string.
  std::string verdict(const Plan& plan, Schedule schedule) {
    for (const Tried& tried : tried_) {
      if (tried.schedule == schedule && same_work(tried.plan, plan)) return tried.verdict;
    }
    const std::int64_t before = cpu_bytes();
    const Checkpoint checkpoint = strict(plan, schedule);
    std::string verdict = verdict_on(plain_, try_to_train(hazard_, &checkpoint, backward_, steps_));
    // If the run without a plan fails, memory is not checked, because autograd's queue then holds
    // the nodes that did not run.
    const bool is_clean = !plain_.facts.has_value() || cpu_bytes() <= before;
    if (verdict.empty() && !is_clean) verdict = "memory is left";
    tried_.push_back({plan, schedule, verdict});
    return verdict;
  }
  std::size_t num_tried() const { return tried_.size(); }

 private:
  const Hazard& hazard_;
  const Backward backward_;
  const int steps_;
  const Trial plain_;
  std::vector<Tried> tried_;
};

void check_under_every_family(const Hazard& hazard) {
  CAPTURE(hazard.name);
  Examination examination(hazard, Backward::kOnce, kSteps);
  const Trial& plain = examination.plain();
  REQUIRE(plain.error == "");
  CHECK(verdict_on(plain, try_to_train(hazard, nullptr)) == "");
  CHECK(plain.facts->has_gradient);
  CHECK(plain.facts->is_finite);
  const Trace trace = trace_of(hazard);
  const Resolver resolver(trace);
  int num_refused = 0;
  for (const PlanFamily& family : plan_families()) {
    const std::optional<Plan> plan = family.make(trace, resolver);
    if (!plan.has_value()) continue;
    for (const Schedule schedule : kSchedules) {
      CAPTURE(family.name, to_string(schedule));
      const std::string verdict = examination.verdict(*plan, schedule);
      if (verdict.empty() || hazard.refusal.empty()) {
        CHECK(verdict == "");
        continue;
      }
      ++num_refused;
      CHECK_THAT(verdict, Catch::StartsWith("throws: region ") && Catch::Contains(hazard.refusal));
    }
  }
  CHECK(examination.num_tried() >= 12);
  CHECK((num_refused > 0) == !hazard.refusal.empty());
}

void check(const std::vector<Hazard>& theme) {
  prepare_process();
  CHECK(theme.size() >= 7);
  for (const Hazard& hazard : theme) check_under_every_family(hazard);
}

TEST_CASE("hazards of attention") { check(attention_hazards()); }
TEST_CASE("hazards of convolutions") { check(convolution_hazards()); }
TEST_CASE("hazards of data-dependent models") { check(data_dependent_hazards()); }
TEST_CASE("hazards of dtypes and autocast") { check(dtype_hazards()); }
TEST_CASE("hazards of custom functions") { check(function_hazards()); }
TEST_CASE("hazards of ops that replay cannot repeat") { check(held_hazards()); }
TEST_CASE("hazards of hooks") { check(hook_hazards()); }
TEST_CASE("hazards of in-place writes") { check(in_place_hazards()); }
TEST_CASE("hazards of indexing") { check(indexing_hazards()); }
TEST_CASE("hazards of modes") { check(mode_hazards()); }
TEST_CASE("hazards of ops with several outputs") { check(multi_output_hazards()); }
TEST_CASE("hazards of norms") { check(norm_hazards()); }
TEST_CASE("hazards of optimizers") { check(optimizer_hazards()); }
TEST_CASE("hazards of random numbers") { check(random_hazards()); }
TEST_CASE("hazards of recurrent models") { check(recurrent_hazards()); }
TEST_CASE("hazards of shared tensors") { check(sharing_hazards()); }
TEST_CASE("hazards of views") { check(view_hazards()); }

// Some families of plans select ops by name, so few hazards match. If none matched, the family
// would not be tested.
TEST_CASE("each family of plans applies to some hazards") {
  prepare_process();
  CHECK(all_hazards().size() >= 250);
  std::map<std::string, int> num_plans;
  for (const Hazard& hazard : all_hazards()) {
    const Trace trace = trace_of(hazard);
    const Resolver resolver(trace);
    for (const PlanFamily& family : plan_families()) {
      num_plans[family.name] += static_cast<int>(family.make(trace, resolver).has_value());
    }
  }
  for (const PlanFamily& family : plan_families()) {
    CAPTURE(family.name);
    CHECK(num_plans[family.name] >= 5);
  }
}

TEST_CASE("hash checks of tensors from outside a region cause no false alarm") {
  prepare_process();
  for (const Hazard& hazard : all_hazards()) {
    if (!hazard.refusal.empty()) continue;
    const Trial plain = try_to_train(hazard, nullptr);
    const Plan plan = plan_of_blocks(trace_of(hazard), [](int, int) { return false; });
    for (const Schedule schedule : kSchedules) {
      CAPTURE(hazard.name, to_string(schedule));
      const Checkpoint checkpoint = strict(plan, schedule, OutsideCheck::kHashes);
      CHECK(verdict_on(plain, try_to_train(hazard, &checkpoint)) == "");
    }
  }
}

// Where plain autograd fails, for example because a second derivative is missing, the engine must
// fail too.
void check_other_form(Backward backward, int fewest_plain) {
  prepare_process();
  int num_plain = 0;
  for (const Hazard& hazard : all_hazards()) {
    if (!hazard.refusal.empty()) continue;
    CAPTURE(hazard.name);
    Examination examination(hazard, backward, /*steps=*/1);
    num_plain += static_cast<int>(examination.plain().facts.has_value());
    const Trace trace = trace_of(hazard);
    const Resolver resolver(trace);
    for (const PlanFamily& family : plan_families()) {
      if (!family.for_every_backward) continue;
      const std::optional<Plan> plan = family.make(trace, resolver);
      if (!plan.has_value()) continue;
      for (const Schedule schedule : kSchedules) {
        CAPTURE(family.name, to_string(schedule));
        CHECK(examination.verdict(*plan, schedule) == "");
      }
    }
  }
  CHECK(num_plain >= fewest_plain);
}

TEST_CASE("a hazard under a plan has the bits of its plain run if backward runs twice") {
  check_other_form(Backward::kTwice, 250);
}
TEST_CASE("a hazard under a plan has the bits of its plain run in double backward") {
  check_other_form(Backward::kOfGradients, 200);
}
TEST_CASE("a hazard under a plan has the bits of its plain run if backward runs in parts") {
  check_other_form(Backward::kInParts, 250);
}
TEST_CASE(
    "a hazard under a plan has the bits of its plain run if backward runs on another thread") {
  check_other_form(Backward::kElsewhere, 250);
}
TEST_CASE("no hazard leaves anything behind if backward never runs") {
  check_other_form(Backward::kNever, 250);
}

}  // namespace
}  // namespace rematch::testing::hazards
