#include "policies/search/pipeline/pipeline_front.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/catalogue/stages.h"
#include "policies/plan/stage_plans.h"
#include "policies/predict/pipeline/step_time.h"
#include "policies/predict/step/step.h"
#include "policies/search/driver/driver.h"
#include "policies/trace/accumulation.h"
#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kPassing{40};

// Makes a toy model a stage of a pipeline.
Trace stage_trace(std::int64_t index, std::int64_t num_stages, std::int64_t micro_batches,
                  int layers) {
  testing::ToySizes sizes;
  sizes.layers = layers;
  sizes.tokens = 32;
  Trace trace = testing::toy_llama(sizes);
  trace.dimensions["pp"] = num_stages;
  trace.stage = TracedStage{index, Bytes{700 + 100 * index}, {}, {}};
  return accumulating(std::move(trace), micro_batches);
}

Profile stage_profile(const Trace& trace, int slowness) {
  Profile profile;
  profile.model = trace.model;
  profile.dimensions = trace.dimensions;
  profile.dtype = trace.dtype;
  profile.trace_sha256 = trace_sha256(trace);
  for (const TracedOp& op : trace.ops) {
    profile.forward.emplace_back(op.is_view ? 0 : slowness * (op.flops > 0 ? 400 : 60));
  }
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) profile.backward.emplace_back(slowness * 90);
  }
  return profile;
}

// A pipeline of toy stages with different numbers of layers and speeds.
struct Toy {
  Toy(std::int64_t num_stages, std::int64_t micro_batches) {
    for (std::int64_t stage = 0; stage < num_stages; ++stage) {
      const int layers = 2 + static_cast<int>(stage % 2);
      traces.push_back(stage_trace(stage, num_stages, micro_batches, layers));
    }
    for (std::size_t stage = 0; stage < traces.size(); ++stage) {
      profiles.push_back(stage_profile(traces[stage], stage == 1 ? 3 : 2));
    }
  }

  std::vector<SearchedStage> stages() const {
    std::vector<SearchedStage> all;
    for (std::size_t stage = 0; stage < traces.size(); ++stage) {
      all.push_back({traces[stage], profiles[stage], resolve_none(traces[stage])});
    }
    return all;
  }
  std::vector<const Trace*> pointers() const {
    std::vector<const Trace*> all;
    for (const Trace& trace : traces) all.push_back(&trace);
    return all;
  }

  std::vector<Trace> traces;
  std::vector<Profile> profiles;
};

// Calls `visit` with every choice of one point for each stage.
void for_each_choice(const std::vector<Front>& fronts,
                     const std::function<void(const std::vector<const FrontPoint*>&)>& visit) {
  std::vector<const FrontPoint*> chosen;
  const std::function<void()> choose = [&] {
    if (chosen.size() == fronts.size()) return visit(chosen);
    for (const FrontPoint& point : fronts[chosen.size()].points) {
      chosen.push_back(&point);
      choose();
      chosen.pop_back();
    }
  };
  choose();
}

TEST_CASE("no choice of the stages' points beats the front of a pipeline") {
  for (const std::int64_t micro_batches : {2, 3, 5}) {
    CAPTURE(micro_batches);
    const Toy toy(3, micro_batches);
    const PipelineShape shape{3, micro_batches};
    SearchSpace space = usual_space(Schedule::kOnDemand, OptimizerKind::kAdamW);
    std::vector<Front> fronts;
    for (const SearchedStage& stage : toy.stages()) {
      FrontSearch search(stage.trace, stage.profile, space, stage.none);
      fronts.push_back(search.front(12, {}));
      CHECK(fronts.back().points.size() > 4);
    }
    PipelineSearch search(toy.stages(), space, kPassing);
    const Front front = search.front(100'000, {});
    CHECK(front.points.size() > 4);
    int num_choices = 0;
    int num_beaten = 0;
    for_each_choice(fronts, [&](const std::vector<const FrontPoint*>& chosen) {
      Bytes peak;
      std::vector<StageTime> times;
      for (std::size_t stage = 0; stage < chosen.size(); ++stage) {
        peak = std::max(peak, chosen[stage]->figures.peak);
        times.push_back(
            stage_time(toy.profiles[stage], chosen[stage]->figures.recompute, micro_batches));
      }
      const nanoseconds time = pipeline_time(shape, times, kPassing).step;
      ++num_choices;
      num_beaten += std::any_of(front.points.begin(), front.points.end(), [&](const auto& point) {
        return point.figures.peak <= peak && point.step_time <= time;
      });
    });
    CHECK(num_choices > 100);
    CHECK(num_beaten == num_choices);
  }
}

TEST_CASE("a point of a pipeline's front holds the simulated plans of all stages") {
  const Toy toy(3, 4);
  const SearchSpace space = usual_space(Schedule::kOnDemand, OptimizerKind::kAdamW);
  PipelineSearch search(toy.stages(), space, kPassing);
  const Front front = search.front(6, {});
  for (const FrontPoint& point : front.points) {
    const std::vector<Plan> plans = plans_of_shapes(point.plan);
    REQUIRE(plans.size() == 3);
    Bytes peak;
    for (std::size_t stage = 0; stage < plans.size(); ++stage) {
      StepSimulator simulator(toy.traces[stage]);
      peak = std::max(peak, simulator.simulate(plans[stage], Schedule::kOnDemand).peak_bytes());
    }
    CHECK(point.figures.peak == peak);
    CHECK(search.judge(point.plan).step_time == point.step_time);
    CHECK(point.step_time_bound <= point.step_time);
    CHECK(point.saves.starts_with("stage 0: "));
  }
}

TEST_CASE("every named policy is matched by a point of the pipeline's front") {
  const Toy toy(2, 4);
  const StageResolver resolver(toy.pointers());
  std::vector<Plan> baselines;
  for (const char* name : {"none", "full", "attn_only", "first_n(1)"}) {
    const Policy policy = std::get<Policy>(parse_policy(name));
    baselines.push_back(std::get<Plan>(resolver.resolve(policy, NoEffect::kAllow)));
  }
  PipelineSearch search(toy.stages(), usual_space(Schedule::kOnDemand, OptimizerKind::kAdamW),
                        kPassing);
  const Front front = search.front(10, baselines);
  REQUIRE(front.baselines.size() == baselines.size());
  for (const Baseline& baseline : front.baselines) {
    CAPTURE(baseline.point.plan.policy);
    CHECK(baseline.is_matched);
  }
  CHECK(front.hypervolume > front.baseline_hypervolume);
}

TEST_CASE("a budget and a slowdown limit the whole pipeline") {
  const Toy toy(3, 4);
  PipelineSearch search(toy.stages(), usual_space(Schedule::kOnDemand, OptimizerKind::kAdamW),
                        kPassing);
  const Front front = search.front(100, {});
  const Bytes lowest = search.lowest().figures.peak;
  CHECK(front.points.front().figures.peak == lowest);
  CHECK_FALSE(search.fastest_within(lowest - Bytes{1}).has_value());
  for (const FrontPoint& point : front.points) {
    const FrontPoint found = search.fastest_within(point.figures.peak).value();
    CHECK(found.figures.peak <= point.figures.peak);
    CHECK(found.step_time <= point.step_time);
  }
  const auto least = static_cast<double>(front.nothing_recomputed.step_time.count());
  const FrontPoint slower = search.lowest_within_slowdown(0.1);
  CHECK(static_cast<double>(slower.step_time.count()) <= least * 1.1 + 1);
  CHECK(slower.figures.peak < front.nothing_recomputed.figures.peak);
}

}  // namespace
}  // namespace rematch
