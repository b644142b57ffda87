#include "policies/search/pipeline/pipeline_front.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
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
Trace stage_trace(std::int64_t index, const PipelineShape& shape, int layers) {
  testing::ToySizes sizes;
  sizes.layers = layers;
  sizes.tokens = 32;
  Trace trace = testing::toy_llama(sizes);
  trace.dimensions["pp"] = shape.num_ranks;
  if (shape.stages_per_rank > 1) trace.dimensions["interleave"] = shape.stages_per_rank;
  if (shape.splits_backward) trace.dimensions["zb"] = 1;
  trace.stage = TracedStage{index, Bytes{700 + 100 * index}, {}, {}};
  return accumulating(std::move(trace), shape.micro_batches);
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
  Toy(std::int64_t num_stages, std::int64_t micro_batches)
      : Toy(PipelineShape{num_stages, micro_batches}) {}
  explicit Toy(const PipelineShape& shape) {
    for (std::int64_t stage = 0; stage < shape.num_stages(); ++stage) {
      traces.push_back(stage_trace(stage, shape, 2 + static_cast<int>(stage % 2)));
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

// Returns by how much a point is better than the best point of a front, in peak and in step time.
double win_over(const Front& front, const FrontPoint& point) {
  double least = std::numeric_limits<double>::infinity();
  for (const FrontPoint& own : front.points) {
    const double peak =
        static_cast<double>(own.figures.peak.count) / static_cast<double>(point.figures.peak.count);
    const double time =
        static_cast<double>(own.step_time.count()) / static_cast<double>(point.step_time.count());
    least = std::min(least, std::max(peak, time) - 1);
  }
  return std::max(least, 0.0);
}

// Tries every choice of plans from the fronts of single stages. Judges each choice as a whole,
// because the stages of a rank share its memory. No choice may be better by more than `most_win`.
void check_no_choice_wins(const PipelineShape& shape, std::size_t num_points, double most_win) {
  CAPTURE(shape.num_ranks, shape.micro_batches, shape.stages_per_rank);
  const Toy toy(shape);
  const SearchSpace space = usual_space(Schedule::kOnDemand, OptimizerKind::kAdamW);
  std::vector<Front> fronts;
  for (const SearchedStage& stage : toy.stages()) {
    FrontSearch search(stage.trace, stage.profile, space, stage.none);
    fronts.push_back(search.front(num_points, {}));
  }
  PipelineSearch search(toy.stages(), space, kPassing);
  const Front front = search.front(100'000, {});
  CHECK(front.points.size() > 4);
  int num_choices = 0;
  double win = 0;
  for_each_choice(fronts, [&](const std::vector<const FrontPoint*>& chosen) {
    std::vector<Plan> plans;
    for (const FrontPoint* point : chosen) plans.push_back(point->plan);
    ++num_choices;
    win = std::max(win, win_over(front, search.judge(plan_of_stages(plans))));
  });
  CHECK(num_choices > 100);
  CHECK(win <= most_win);
}

TEST_CASE("no choice of plans beats the front under ZB-H1") {
  check_no_choice_wins({3, 3, 1, true}, 8, /*most_win=*/0);
  check_no_choice_wins({2, 5, 1, true}, 12, /*most_win=*/0);
}

// A rank's plans are exact in the sum of its recompute times. How the sum is divided among its
// stages also changes the step time, but little.
TEST_CASE("no choice of plans beats the front of interleaved stages by much") {
  constexpr double kMostWin = 0.005;
  check_no_choice_wins({2, 2, 2}, 8, kMostWin);
  check_no_choice_wins({2, 4, 2}, 8, kMostWin);
  check_no_choice_wins({1, 3, 3}, 8, kMostWin);
}

TEST_CASE(
    "a point of interleaved stages has a plan for each stage and the peak of its worst rank") {
  const Toy toy(PipelineShape{2, 4, 2});
  const SearchSpace space = usual_space(Schedule::kOnDemand, OptimizerKind::kAdamW);
  PipelineSearch search(toy.stages(), space, kPassing);
  for (const FrontPoint& point : search.front(6, {}).points) {
    const std::vector<Plan> plans = plans_of_shapes(point.plan);
    REQUIRE(plans.size() == 4);
    for (std::size_t stage = 0; stage < plans.size(); ++stage) {
      CHECK(plans[stage].trace_sha256 == trace_sha256(toy.traces[stage]));
    }
    CHECK(search.judge(point.plan).figures.peak == point.figures.peak);
    CHECK(search.judge(point.plan).step_time == point.step_time);
    CHECK(point.step_time_bound <= point.step_time);
    CHECK(point.figures.peak_place.starts_with("stage "));
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
