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

// The stages of one rank.
struct PipelineSearch::Rank {
  Rank(const std::vector<SearchedStage>& all, std::vector<std::int64_t> of_rank,
       const SearchSpace& space)
      : stages(std::move(of_rank)),
        search(selected(all, stages), space),
        estimates(search.estimates()) {}

  static std::vector<SearchedStage> selected(const std::vector<SearchedStage>& all,
                                             const std::vector<std::int64_t>& stages) {
    std::vector<SearchedStage> own;
    for (const std::int64_t stage : stages) own.push_back(all.at(static_cast<std::size_t>(stage)));
    return own;
  }

  Plan own_plan(const Plan& plan) const {
    std::vector<Plan> plans;
    for (const std::int64_t stage : stages) {
      plans.push_back(plan_of_stage(plan, static_cast<std::size_t>(stage)));
    }
    return plan_of_stages(plans);
  }

  std::vector<std::int64_t> stages;
  FrontSearch search;
  std::vector<FrontSearch::Estimate> estimates;  // by ascending peak
};

namespace {

// Returns the recompute time of each stage of a rank's plan.
template <class Figures>
std::vector<nanoseconds> times_of(const Figures& figures) {
  if (!figures.recompute_of_stages.empty()) return figures.recompute_of_stages;
  return {figures.recompute};
}

}  // namespace

PipelineSearch::PipelineSearch(const std::vector<SearchedStage>& stages, const SearchSpace& space,
                               nanoseconds passing)
    : shape_(pipeline_shape(stages.front().trace.dimensions)),
      stages_(stages),
      space_(space),
      passing_(passing) {
  for (const SearchedStage& stage : stages_) {
    weights_.push_back(weights_time(stage.trace, stage.profile));
  }
  std::vector<FrontPoint> kept;
  std::vector<FrontPoint> none;
  for (std::int64_t rank = 0; rank < shape_.num_ranks; ++rank) {
    ranks_.push_back(std::make_unique<Rank>(stages_, shape_.stages_of(rank), space));
    constexpr std::size_t kEnds = 2;
    Front front = ranks_.back()->search.front(kEnds, {});
    num_plans_found_ += front.num_plans_found;
    time_gap_ = std::max(time_gap_, front.time_gap);
    transient_gap_ = std::max(transient_gap_, front.transient_gap);
    if (front.none) none.push_back(*front.none);
    kept.push_back(std::move(front.nothing_recomputed));
  }
  nothing_recomputed_ = compose(kept);
  if (none.size() == ranks_.size()) none_ = compose(none);
  limits_ = estimate_limits();
}

PipelineSearch::~PipelineSearch() = default;

nanoseconds PipelineSearch::step_time(
    const std::vector<std::vector<nanoseconds>>& recompute) const {
  std::vector<StageTime> times;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    const std::size_t rank = stage % ranks_.size();
    times.push_back(stage_time(stages_[stage].profile, recompute[rank].at(stage / ranks_.size()),
                               shape_.micro_batches, weights_[stage]));
  }
  return pipeline_time(shape_, times, passing_).step;
}

// Returns the limits that change the plan of a stage and make the step faster.
std::vector<PipelineSearch::Limit> PipelineSearch::estimate_limits() const {
  std::vector<Bytes> peaks;
  for (const auto& rank : ranks_) {
    for (const FrontSearch::Estimate& plan : rank->estimates) peaks.push_back(plan.peak);
  }
  std::sort(peaks.begin(), peaks.end());
  std::vector<std::size_t> fastest(ranks_.size(), 0);  // number of plans within the limit
  std::vector<Limit> limits;
  for (const Bytes peak : peaks) {
    std::vector<std::vector<nanoseconds>> recompute;
    bool all_fit = true;
    bool changes = limits.empty();
    for (std::size_t index = 0; index < ranks_.size(); ++index) {
      const auto& plans = ranks_[index]->estimates;
      const std::size_t before = fastest[index];
      while (fastest[index] < plans.size() && plans[fastest[index]].peak <= peak) ++fastest[index];
      changes |= fastest[index] != before;
      if (fastest[index] == 0) {
        all_fit = false;
      } else {
        recompute.push_back(times_of(plans[fastest[index] - 1]));
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

FrontPoint PipelineSearch::compose(const std::vector<FrontPoint>& points) const {
  std::vector<Plan> plans(stages_.size());
  std::vector<std::vector<nanoseconds>> recompute;
  const FrontPoint* worst = &points.front();
  std::int64_t num_recomputed = 0;
  nanoseconds most_recompute{};
  for (std::size_t index = 0; index < points.size(); ++index) {
    const FrontPoint& point = points[index];
    const std::vector<Plan> own = plans_of_shapes(point.plan);
    for (std::size_t each = 0; each < own.size(); ++each) {
      plans[static_cast<std::size_t>(ranks_[index]->stages[each])] = own[each];
    }
    recompute.push_back(times_of(point.figures));
    num_recomputed += point.figures.num_recomputed;
    most_recompute = std::max(most_recompute, point.figures.recompute);
    if (point.figures.peak > worst->figures.peak) worst = &point;
  }
  FrontPoint whole = *worst;
  whole.plan = plan_of_stages(plans);
  whole.figures.num_recomputed = num_recomputed;
  whole.figures.num_recomputed_kernels.reset();
  whole.figures.recompute = most_recompute;
  whole.figures.recompute_of_stages.clear();
  whole.figures.communication.reset();
  if (shape_.stages_per_rank == 1) {
    const std::string stage =
        "stage " + std::to_string(static_cast<std::size_t>(worst - points.data()));
    const std::string& place = whole.figures.peak_place;
    whole.figures.peak_place = place.empty() ? stage : stage + ", " + place;
  }
  whole.step_time = step_time(recompute);
  whole.step_time_bound = std::min(whole.step_time, step_time_bound(whole.figures.peak));
  return whole;
}

// No rank can recompute less than its own bound at this peak. Which of its stages recompute is
// unknown, so a bound exists only for one stage on each rank.
nanoseconds PipelineSearch::step_time_bound(Bytes peak) const {
  std::vector<std::vector<nanoseconds>> least;
  for (const auto& rank : ranks_) {
    least.emplace_back(rank->stages.size(), nanoseconds{});
    if (rank->stages.size() > 1) continue;
    const Profile& profile = stages_[static_cast<std::size_t>(rank->stages.front())].profile;
    least.back().front() = rank->search.step_time_bound(peak) - profile.step_time();
  }
  return step_time(least);
}

void PipelineSearch::add_words(FrontPoint& point) const {
  point.saves.clear();
  point.layers.clear();
  const std::vector<Plan> plans = plans_of_shapes(point.plan);
  for (std::size_t stage = 0; stage < plans.size(); ++stage) {
    const Trace& trace = stages_[stage].trace;
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
  for (const auto& rank : ranks_) points.push_back(rank->search.judge(rank->own_plan(plan)));
  return joined(points);
}

FrontPoint PipelineSearch::joined(const std::vector<FrontPoint>& points) const {
  FrontPoint whole = compose(points);
  add_words(whole);
  return whole;
}

std::optional<FrontPoint> PipelineSearch::fastest_found_within(Bytes budget) {
  std::vector<FrontPoint> points;
  for (const auto& rank : ranks_) {
    std::optional<FrontPoint> point = rank->search.fastest_within(budget);
    if (!point) return std::nullopt;
    points.push_back(*std::move(point));
  }
  return compose(points);
}

std::optional<FrontPoint> PipelineSearch::fastest_within(Bytes budget) {
  std::optional<FrontPoint> best = fastest_found_within(budget);
  for (const FrontPoint& baseline : baselines_) {
    if (baseline.figures.peak > budget) continue;
    if (!best || baseline.step_time < best->step_time) best = baseline;
  }
  if (best) add_words(*best);
  return best;
}

// The lowest peak that every rank can have is that of the rank whose lowest peak is the highest.
// The other ranks take their fastest plans within it.
FrontPoint PipelineSearch::lowest() {
  Bytes least;
  for (const auto& rank : ranks_) {
    least = std::max(least, rank->search.lowest().figures.peak);
  }
  for (const FrontPoint& baseline : baselines_) least = std::min(least, baseline.figures.peak);
  return fastest_within(least).value();
}

// An estimated peak may be too low, so the simulated peaks of the limit's plans are tried as
// limits.
std::vector<FrontPoint> PipelineSearch::points_at(const Limit& limit) {
  std::vector<FrontPoint> points;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Bytes peak = ranks_[rank]->search.found(limit.plans[rank]).figures.peak;
    if (auto point = fastest_found_within(peak)) points.push_back(*std::move(point));
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
  // A baseline that beats what the search found becomes a point itself.
  baselines_.clear();
  for (const Plan& plan : baselines) {
    baselines_.push_back(judge(plan));
    const FrontPoint& baseline = baselines_.back();
    if (auto match = fastest_found_within(baseline.figures.peak)) {
      front.points.push_back(*std::move(match));
    }
    front.points.push_back(baseline);
    front.baselines.push_back({baseline, false});
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
