#include "policies/search/pipeline/pipeline_front.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "policies/plan/stage_plans.h"
#include "policies/predict/pipeline/schedule.h"
#include "policies/predict/pipeline/step_time.h"
#include "policies/search/front/hypervolume.h"
#include "policies/search/words/saves_text.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

}  // namespace

struct PipelineSearch::Stage {
  Stage(SearchedStage of, const SearchSpace& space)
      : searched(std::move(of)),
        search(searched.trace, searched.profile, space, searched.none),
        estimates(search.estimates()) {}

  SearchedStage searched;
  FrontSearch search;
  std::vector<FrontSearch::Estimate> estimates;  // by ascending peak
};

PipelineSearch::PipelineSearch(std::vector<SearchedStage> stages, const SearchSpace& space,
                               nanoseconds passing)
    : space_(space), passing_(passing) {
  std::vector<FrontPoint> kept;
  std::vector<FrontPoint> none;
  for (SearchedStage& stage : stages) {
    stages_.push_back(std::make_unique<Stage>(std::move(stage), space));
    constexpr std::size_t kEnds = 2;
    Front front = stages_.back()->search.front(kEnds, {});
    num_plans_found_ += front.num_plans_found;
    time_gap_ = std::max(time_gap_, front.time_gap);
    transient_gap_ = std::max(transient_gap_, front.transient_gap);
    if (front.none) none.push_back(*front.none);
    kept.push_back(std::move(front.nothing_recomputed));
  }
  nothing_recomputed_ = compose(kept);
  if (none.size() == stages_.size()) none_ = compose(none);
  limits_ = estimate_limits();
}

PipelineSearch::~PipelineSearch() = default;

nanoseconds PipelineSearch::step_time(const std::vector<nanoseconds>& recompute) const {
  const PipelineShape shape = pipeline_shape(stages_.front()->searched.trace.dimensions);
  std::vector<StageTime> times;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    times.push_back(
        stage_time(stages_[stage]->searched.profile, recompute[stage], shape.micro_batches));
  }
  return pipeline_time(shape, times, passing_).step;
}

// Returns the limits that change the plan of a stage and make the step faster.
std::vector<PipelineSearch::Limit> PipelineSearch::estimate_limits() const {
  std::vector<Bytes> peaks;
  for (const auto& stage : stages_) {
    for (const FrontSearch::Estimate& plan : stage->estimates) peaks.push_back(plan.peak);
  }
  std::sort(peaks.begin(), peaks.end());
  std::vector<std::size_t> fastest(stages_.size(), 0);  // number of plans within the limit
  std::vector<Limit> limits;
  for (const Bytes peak : peaks) {
    std::vector<nanoseconds> recompute;
    bool all_fit = true;
    bool changes = limits.empty();
    for (std::size_t index = 0; index < stages_.size(); ++index) {
      const auto& plans = stages_[index]->estimates;
      const std::size_t before = fastest[index];
      while (fastest[index] < plans.size() && plans[fastest[index]].peak <= peak) ++fastest[index];
      changes |= fastest[index] != before;
      if (fastest[index] == 0) {
        all_fit = false;
      } else {
        recompute.push_back(plans[fastest[index] - 1].recompute);
      }
    }
    if (!all_fit || !changes) continue;
    const nanoseconds time = step_time(recompute);
    if (!limits.empty() && time >= limits.back().step_time) continue;
    limits.push_back({peak, time, {}});
    for (const std::size_t num : fastest) limits.back().plans.push_back(num - 1);
  }
  return limits;
}

// Joins one point of each stage into a point of the pipeline.
FrontPoint PipelineSearch::compose(const std::vector<FrontPoint>& points) {
  std::vector<Plan> plans;
  std::vector<nanoseconds> recompute;
  const FrontPoint* worst = &points.front();
  std::int64_t num_recomputed = 0;
  nanoseconds most_recompute{};
  for (const FrontPoint& point : points) {
    plans.push_back(point.plan);
    recompute.push_back(point.figures.recompute);
    num_recomputed += point.figures.num_recomputed;
    most_recompute = std::max(most_recompute, point.figures.recompute);
    if (point.figures.peak > worst->figures.peak) worst = &point;
  }
  FrontPoint whole = *worst;
  whole.plan = plan_of_stages(plans);
  whole.figures.num_recomputed = num_recomputed;
  whole.figures.num_recomputed_kernels.reset();
  whole.figures.recompute = most_recompute;
  whole.figures.communication.reset();
  const auto stage = static_cast<std::size_t>(worst - points.data());
  whole.figures.peak_place =
      "stage " + std::to_string(stage) +
      (whole.figures.peak_place.empty() ? "" : ", " + whole.figures.peak_place);
  whole.step_time = step_time(recompute);
  // A stage cannot be faster than its own bound at this peak.
  std::vector<nanoseconds> least;
  for (std::size_t index = 0; index < points.size(); ++index) {
    const nanoseconds bound = stages_[index]->search.step_time_bound(whole.figures.peak);
    least.push_back(bound - stages_[index]->searched.profile.step_time());
  }
  whole.step_time_bound = std::min(whole.step_time, step_time(least));
  return whole;
}

void PipelineSearch::add_words(FrontPoint& point) {
  point.saves.clear();
  point.layers.clear();
  const std::vector<Plan> plans = plans_of_shapes(point.plan);
  for (std::size_t stage = 0; stage < plans.size(); ++stage) {
    const Trace& trace = stages_[stage]->searched.trace;
    const std::string name = "stage " + std::to_string(stage);
    if (stage > 0) point.saves += "; ";
    point.saves += name + ": " + saves_text(plans[stage], trace);
    for (LayerRun& run : layer_runs(plans[stage], trace)) {
      run.layers = name + ": " + run.layers;
      point.layers.push_back(std::move(run));
    }
  }
}

FrontPoint PipelineSearch::judge(const Plan& plan) {
  std::vector<FrontPoint> points;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    points.push_back(stages_[stage]->search.judge(plan_of_stage(plan, stage)));
  }
  FrontPoint whole = compose(points);
  add_words(whole);
  return whole;
}

std::optional<FrontPoint> PipelineSearch::fastest_within(Bytes budget) {
  std::vector<FrontPoint> points;
  for (const auto& stage : stages_) {
    std::optional<FrontPoint> point = stage->search.fastest_within(budget);
    if (!point) return std::nullopt;
    points.push_back(*std::move(point));
  }
  FrontPoint whole = compose(points);
  add_words(whole);
  return whole;
}

// The lowest peak that every stage can have is that of the stage whose lowest peak is the highest.
// The other stages take their fastest plans within it.
FrontPoint PipelineSearch::lowest() {
  Bytes least;
  for (const auto& stage : stages_) {
    least = std::max(least, stage->search.lowest().figures.peak);
  }
  return fastest_within(least).value();
}

// An estimated peak may be too low, so the simulated peaks of the limit's plans are tried as
// limits.
std::vector<FrontPoint> PipelineSearch::points_at(const Limit& limit) {
  std::vector<FrontPoint> points;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    const Bytes peak = stages_[stage]->search.found(limit.plans[stage]).figures.peak;
    if (auto point = fastest_within(peak)) points.push_back(*std::move(point));
  }
  return points;
}

FrontPoint PipelineSearch::lowest_within_slowdown(double slowdown_ratio) {
  const auto fastest = static_cast<double>(nothing_recomputed_.step_time.count());
  const nanoseconds most(std::llround(fastest * (1 + slowdown_ratio)));
  for (const Limit& limit : limits_) {
    if (limit.step_time > most) continue;
    std::vector<FrontPoint> points = points_at(limit);
    std::erase_if(points, [&](const FrontPoint& point) { return point.step_time > most; });
    points = undominated(std::move(points), on_plane);
    if (!points.empty()) return points.front();
  }
  add_words(nothing_recomputed_);
  return nothing_recomputed_;
}

void PipelineSearch::add_points(std::size_t max_points, Front& front) {
  std::vector<PlanePoint> plane;
  for (const Limit& limit : limits_) {
    plane.push_back({limit.peak.count, limit.step_time.count()});
  }
  std::vector<FrontPoint> found;
  for (const std::size_t index : spread_points(plane, max_points)) {
    if (space_.is_stopped()) break;
    for (FrontPoint& point : points_at(limits_[index])) found.push_back(std::move(point));
  }
  found = undominated(std::move(found), on_plane);
  plane.clear();
  for (const FrontPoint& point : found) plane.push_back(on_plane(point));
  for (const std::size_t index : spread_points(plane, max_points)) {
    front.points.push_back(std::move(found[index]));
  }
}

Front PipelineSearch::front(std::size_t max_points, const std::vector<Plan>& baselines,
                            const std::vector<FrontPoint>& answers) {
  Front front;
  front.schedule = space_.schedule;
  front.num_plans_found = num_plans_found_;
  front.time_gap = time_gap_;
  front.transient_gap = transient_gap_;
  front.nothing_recomputed = nothing_recomputed_;
  front.none = none_;
  front.points = answers;
  front.points.push_back(nothing_recomputed_);
  front.points.push_back(lowest());
  add_points(max_points, front);
  for (const Plan& plan : baselines) {
    Baseline baseline{judge(plan), false};
    if (auto match = fastest_within(baseline.point.figures.peak)) {
      front.points.push_back(*std::move(match));
    }
    front.baselines.push_back(std::move(baseline));
  }
  front.points = undominated(std::move(front.points), on_plane);
  for (Baseline& baseline : front.baselines) {
    baseline.is_matched =
        std::any_of(front.points.begin(), front.points.end(),
                    [&](const FrontPoint& point) { return is_no_worse(point, baseline.point); });
  }
  for (FrontPoint& point : front.points) add_words(point);
  add_words(front.nothing_recomputed);
  if (front.none) add_words(*front.none);
  summarize(front);
  front.is_complete = !space_.is_stopped();
  return front;
}

}  // namespace rematch
