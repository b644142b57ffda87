#include "policies/search/front/front_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "policies/plan/stage_plans.h"
#include "policies/search/front/hypervolume.h"
#include "policies/search/front/point_judge.h"
#include "policies/search/front/rank_mixes.h"
#include "policies/trace/collective.h"

namespace rematch {
namespace {

// The catalogue's name of the plan that recomputes nothing and keeps gathered parameters.
constexpr const char* kNameOfHolding = "no_reshard(none)";

}  // namespace

// Everything that the search knows about a trace, or about the stages of a rank. A mix is converted
// to a plan and simulated only when its point is needed.
struct FrontSearch::Plans {
  Plans(const std::vector<SearchedStage>& stages, const SearchSpace& its_space)
      : space(its_space), judge(stages, space), mixes(stages, judge, space) {
    for (const SearchedStage& stage : stages) {
      unchanged_time += stage.profile.step_time();
      plans_of_none.push_back(stage.none);
    }
  }

  // The peak of a step is never below the peak of its mix, because a mix counts only memory that
  // layers hold. A bound for mixes is therefore a bound for steps too. A stopped search has not
  // seen all options, so its only bound is the time of a step that keeps everything.
  std::chrono::nanoseconds step_time_bound(Bytes peak) const {
    if (space.is_stopped()) return unchanged_time;
    return unchanged_time + mixes.recompute_bound(peak - judge.before());
  }

  FrontPoint judged(Plan plan) {
    FrontPoint point = judge.judge(std::move(plan));
    point.step_time_bound = step_time_bound(point.figures.peak);
    return point;
  }

  const FrontPoint& point(std::size_t index) {
    const auto [found, is_new] = points.try_emplace(index);
    if (is_new) {
      const LayerMix mix = mixes.readable(mixes.all()[index]);
      found->second = judged(mixes.plan_of(mix.options, "search(" + std::to_string(index) + ")"));
    }
    return found->second;
  }

  bool none_has_no_regions() const {
    return std::all_of(plans_of_none.begin(), plans_of_none.end(),
                       [](const auto& none) { return !none || none->regions.empty(); });
  }
  // Requires that some stage's plan of `none` has regions.
  Plan plan_of_none() const {
    std::vector<Plan> plans;
    for (const std::optional<Plan>& none : plans_of_none) plans.push_back(none.value());
    return plans.size() == 1 ? plans.front() : plan_of_stages(plans);
  }
  FrontPoint nothing_recomputed() {
    return judged(mixes.plan_of({}, none_has_no_regions() ? "none" : kNameOfHolding));
  }

  template <class Accept>
  const FrontPoint* fastest(Bytes peak, const Accept& accept);

  SearchSpace space;
  PointJudge judge;
  RankMixes mixes;
  std::vector<std::optional<Plan>> plans_of_none;  // of each stage
  std::chrono::nanoseconds unchanged_time{};       // step time of keeping everything
  std::map<std::size_t, FrontPoint> points;        // keyed by the index of the mix
  std::vector<FrontPoint> baselines;               // baselines of the last front()
  std::vector<FrontPoint> answers;                 // answers of the last front()
};

// Returns the fastest plan that accept() accepts, or null if there is none. Tries plans from the
// fastest to the slowest, and skips plans whose estimated peak exceeds `peak`.
template <class Accept>
const FrontPoint* FrontSearch::Plans::fastest(Bytes peak, const Accept& accept) {
  const Bytes activations = peak - judge.before();
  auto end = std::partition_point(mixes.all().begin(), mixes.all().end(),
                                  [&](const LayerMix& mix) { return mix.peak <= activations; });
  // The estimated peak of a mix omits temporaries of forward, so the plan of a mix may exceed the
  // limit. The next mix, which has a lower peak, is tried then.
  constexpr int kMaxTried = 64;
  for (int tried = 0; end != mixes.all().begin() && tried < kMaxTried; ++tried) {
    const FrontPoint& found = point(static_cast<std::size_t>(--end - mixes.all().begin()));
    if (accept(found)) return &found;
  }
  return nullptr;
}

FrontSearch::FrontSearch(const Trace& trace, const Profile& profile, const SearchSpace& space,
                         std::optional<Plan> none) {
  if (const auto problem = profile_problem(profile, trace)) throw std::invalid_argument(*problem);
  if (!none && blocks_gather_parameters(trace)) {
    throw std::invalid_argument("blocks of " + trace.model +
                                " gather their parameters, so the search needs the plan of `none`");
  }
  plans_ =
      std::make_unique<Plans>(std::vector<SearchedStage>{{trace, profile, std::move(none)}}, space);
}

FrontSearch::FrontSearch(const std::vector<SearchedStage>& stages, const SearchSpace& space)
    : plans_(std::make_unique<Plans>(stages, space)) {}

FrontSearch::~FrontSearch() = default;

std::vector<FrontSearch::Estimate> FrontSearch::estimates() const {
  std::vector<Estimate> plans;
  for (const LayerMix& mix : plans_->mixes.all()) {
    plans.push_back(
        {mix.peak + plans_->judge.before(), mix.time, plans_->mixes.times_of_parts(mix.options)});
  }
  return plans;
}

FrontPoint FrontSearch::found(std::size_t index) { return plans_->point(index); }

Front FrontSearch::front(std::size_t max_points, const std::vector<Plan>& baselines,
                         const std::vector<FrontPoint>& answers) {
  Front front;
  front.schedule = plans_->space.schedule;
  front.num_plans_found = plans_->mixes.all().size();
  front.time_gap = plans_->mixes.time_gap();
  front.transient_gap = plans_->mixes.transient_gap();
  front.nothing_recomputed = plans_->nothing_recomputed();
  if (!plans_->none_has_no_regions()) front.none = plans_->judged(plans_->plan_of_none());
  add_points(max_points, front);
  front.points.insert(front.points.end(), answers.begin(), answers.end());
  plans_->answers = answers;
  plans_->baselines.clear();
  for (const Plan& plan : baselines) add_baseline(plan, front);
  // Drops plans that recompute only views. Views take no time in a roofline profile, so such a plan
  // seems as fast as the plan that recomputes nothing. A real step would be slower.
  std::erase_if(front.points, [&](const FrontPoint& point) {
    return point.figures.num_recomputed > 0 &&
           point.step_time == front.nothing_recomputed.step_time;
  });
  front.points = undominated(std::move(front.points), on_plane);
  for (FrontPoint& point : front.points) plans_->judge.add_words(point);
  for (Baseline& baseline : front.baselines) plans_->judge.add_words(baseline.point);
  plans_->judge.add_words(front.nothing_recomputed);
  if (front.none) plans_->judge.add_words(*front.none);
  summarize(front);
  front.is_complete = !plans_->space.is_stopped();
  return front;
}

void FrontSearch::add_points(std::size_t max_points, Front& front) {
  front.points.push_back(front.nothing_recomputed);
  std::vector<PlanePoint> plane;
  for (const LayerMix& mix : plans_->mixes.all()) {
    plane.push_back({mix.peak.count, mix.time.count()});
  }
  for (std::size_t index : spread_points(plane, max_points)) {
    // The first and last index are the ends of the front. Even a stopped search returns both.
    const bool is_end = index == 0 || index + 1 == plane.size();
    if (is_end || !plans_->space.is_stopped()) front.points.push_back(plans_->point(index));
  }
}

// Adds a baseline. If no point of the front is at least as good, looks for such a point in the
// search and adds it too.
void FrontSearch::add_baseline(const Plan& plan, Front& front) {
  Baseline baseline{plans_->judged(plan), false};
  plans_->baselines.push_back(baseline.point);
  const auto matches = [&](const FrontPoint& point) { return is_no_worse(point, baseline.point); };
  baseline.is_matched = std::any_of(front.points.begin(), front.points.end(), matches);
  if (!baseline.is_matched) {
    const FrontPoint* match = plans_->fastest(baseline.point.figures.peak, matches);
    baseline.is_matched = match != nullptr;
    if (match != nullptr) front.points.push_back(*match);
  }
  front.baselines.push_back(std::move(baseline));
}

FrontPoint FrontSearch::judge(const Plan& plan) const { return plans_->judged(plan); }

std::optional<FrontPoint> FrontSearch::fastest_within(Bytes budget) {
  std::optional<FrontPoint> best;
  const auto consider = [&](const FrontPoint& point) {
    if (point.figures.peak > budget) return false;
    if (!best || point.step_time < best->step_time) best = point;
    return true;
  };
  if (!consider(plans_->nothing_recomputed())) {
    if (plans_->fastest(budget, consider) == nullptr) consider(plans_->point(0));
    for (const auto* others : {&plans_->baselines, &plans_->answers}) {
      for (const FrontPoint& other : *others) consider(other);
    }
  }
  if (best) plans_->judge.add_words(*best);
  return best;
}

FrontPoint FrontSearch::lowest() {
  FrontPoint lowest = plans_->point(0);
  for (const auto* others : {&plans_->baselines, &plans_->answers}) {
    for (const FrontPoint& other : *others) {
      if (other.figures.peak < lowest.figures.peak) lowest = other;
    }
  }
  plans_->judge.add_words(lowest);
  return lowest;
}

FrontPoint FrontSearch::lowest_within_slowdown(double slowdown_ratio) {
  const auto least = static_cast<double>(plans_->nothing_recomputed().step_time.count());
  const double most = least * (1 + slowdown_ratio);
  const auto is_too_slow = [&](const FrontPoint& point) {
    return static_cast<double>(point.step_time.count()) > most;
  };
  // The time of a mix is approximate, so the plans of neighbouring mixes are tried too.
  const std::vector<LayerMix>& mixes = plans_->mixes.all();
  const std::chrono::nanoseconds extra(std::llround(most - least));
  const auto found = std::partition_point(mixes.begin(), mixes.end(),
                                          [&](const LayerMix& mix) { return mix.time > extra; });
  std::size_t index = std::min(static_cast<std::size_t>(found - mixes.begin()), mixes.size() - 1);
  while (index > 0 && !is_too_slow(plans_->point(index - 1))) --index;
  while (index + 1 < mixes.size() && is_too_slow(plans_->point(index))) ++index;
  FrontPoint lowest = plans_->point(index);
  for (const auto* others : {&plans_->baselines, &plans_->answers}) {
    for (const FrontPoint& other : *others) {
      if (!is_too_slow(other) && other.figures.peak < lowest.figures.peak) lowest = other;
    }
  }
  plans_->judge.add_words(lowest);
  return lowest;
}

std::chrono::nanoseconds FrontSearch::step_time_bound(Bytes peak) const {
  return plans_->step_time_bound(peak);
}

}  // namespace rematch
