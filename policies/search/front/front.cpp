#include "policies/search/front/front.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "policies/search/front/hypervolume.h"
#include "policies/search/front/plan_builder.h"
#include "policies/search/front/point_judge.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/trace/collective.h"

namespace rematch {
namespace {

// The catalogue's name of the plan that runs no gather of parameters again either.
constexpr const char* kNameOfHolding = "no_reshard(none)";

bool is_no_worse(const FrontPoint& a, const FrontPoint& b) {
  return a.figures.peak <= b.figures.peak && a.step_time <= b.step_time;
}

PlanePoint on_plane(const FrontPoint& point) {
  return {point.figures.peak.count, point.step_time.count()};
}

}  // namespace

// Every mix, judged when it is asked for.
class FrontSearch::Plans {
 public:
  Plans(const Trace& trace, const Profile& profile, const SearchSpace& space,
        std::optional<Plan> none)
      : profile_(profile),
        space_(space),
        judge_(trace, profile_, space_),
        trace_(judge_.trace()),
        map_(make_spans(trace_, profile.forward)),
        options_(make_options(trace_, map_, profile.forward, space)),
        problem_(mix_problem(map_, options_)),
        mixed_(mix_layers(problem_, kMaxMixLabels, space.stop)),
        bound_(mix_lower_bound(relaxed_mix_problem(map_, options_))),
        builder_(trace, map_, options_, space),
        none_(std::move(none)) {}

  std::size_t size() const { return mixed_.points.size(); }
  const MixFront& mixed() const { return mixed_; }
  // Each block may lack an option; and no plan is faster than the bound at the peak where the next
  // mix begins.
  std::chrono::nanoseconds time_gap() const {
    std::chrono::nanoseconds gap = mixed_.time_gap;
    for (const Span& span : map_.spans) gap += options_.gaps[span.kind].time;
    std::chrono::nanoseconds above_bound{};
    for (std::size_t i = 0; i + 1 < mixed_.points.size(); ++i) {
      const std::chrono::nanoseconds least = bound_at(bound_, mixed_.points[i + 1].peak);
      above_bound = std::max(above_bound, mixed_.points[i].time - least);
    }
    // Beside what others offload an option may be worse than one that it stands for.
    return space_.offload ? above_bound : std::min(gap, above_bound);
  }
  Bytes transient_gap() const {
    Bytes gap;
    for (const OptionGap& of_kind : options_.gaps) gap = std::max(gap, of_kind.transient);
    return gap + most_offloaded();
  }
  const SearchSpace& space() const { return space_; }

  Bytes most_offloaded() const {
    Bytes most;
    for (const auto& list : problem_.lists) {
      for (const LayerOption& option : list) most = std::max(most, option.offloaded);
    }
    return most;
  }

  const FrontPoint& point(std::size_t index) {
    const auto [found, is_new] = judged_.try_emplace(index);
    if (is_new) {
      const LayerMix mix = in_readable_order(problem_, mixed_.points[index]);
      FrontPoint& point = found->second;
      point = judge(builder_.build(mix.options, "search(" + std::to_string(index) + ")"));
    }
    return found->second;
  }

  FrontPoint judge(Plan plan) {
    FrontPoint point = judge_.judge(std::move(plan));
    point.step_time_bound = step_time_bound(point.figures.peak);
    return point;
  }
  FrontPoint in_words(FrontPoint point) const { return judge_.in_words(std::move(point)); }

  // The first mix that takes at most `extra` beyond keeping everything.
  std::size_t first_within(std::chrono::nanoseconds extra) const {
    const auto found = std::partition_point(mixed_.points.begin(), mixed_.points.end(),
                                            [&](const LayerMix& mix) { return mix.time > extra; });
    return std::min(static_cast<std::size_t>(found - mixed_.points.begin()), size() - 1);
  }

  // A step's peak is never below that of its mix, which leaves out what only the judge sees. Of a
  // search that was stopped options are missing, and nobody knows how good they are.
  std::chrono::nanoseconds step_time_bound(Bytes peak) const {
    if (space_.is_stopped()) return profile_.step_time();
    return profile_.step_time() + bound_at(bound_, peak - judge_.before());
  }

  void keep_baseline(const FrontPoint& point) { baselines_.push_back(point); }
  void forget_baselines() { baselines_.clear(); }
  const std::vector<FrontPoint>& baselines() const { return baselines_; }

  FrontPoint nothing_recomputed() {
    return judge(builder_.build({}, is_none_without_regions() ? "none" : kNameOfHolding));
  }

  // Nothing if it is nothing_recomputed().
  std::optional<FrontPoint> none() {
    if (is_none_without_regions()) return std::nullopt;
    return judge(*none_);
  }

  // The fastest plan that accept()s, from the fastest mix whose own figures promise `peak` on.
  template <class Accept>
  const FrontPoint* fastest(Bytes peak, const Accept& accept) {
    const Bytes activations = peak - judge_.before();
    auto end = std::partition_point(mixed_.points.begin(), mixed_.points.end(),
                                    [&](const LayerMix& mix) { return mix.peak <= activations; });
    // Mixes add up what layers hold for backward. The judge plays the whole step: forward's
    // temporaries, storages that layers share. So a plan near the limit may fail and a smaller one
    // may not.
    constexpr int kMostTried = 64;
    for (int tried = 0; end != mixed_.points.begin() && tried < kMostTried; ++tried) {
      const FrontPoint& found = point(static_cast<std::size_t>(--end - mixed_.points.begin()));
      if (accept(found)) return &found;
    }
    return nullptr;
  }

 private:
  bool is_none_without_regions() const { return !none_ || none_->regions.empty(); }

  const Profile& profile_;
  SearchSpace space_;
  PointJudge judge_;
  const Trace& trace_;  // of one rank
  SpanMap map_;
  SpanOptions options_;
  MixProblem problem_;
  MixFront mixed_;
  std::vector<BoundCorner> bound_;
  PlanBuilder builder_;
  std::optional<Plan> none_;
  std::map<std::size_t, FrontPoint> judged_;
  std::vector<FrontPoint> baselines_;
};

FrontSearch::FrontSearch(const Trace& trace, const Profile& profile, const SearchSpace& space,
                         std::optional<Plan> none) {
  if (const auto problem = profile_problem(profile, trace)) throw std::invalid_argument(*problem);
  if (!none && blocks_gather_parameters(trace)) {
    throw std::invalid_argument("blocks of " + trace.model +
                                " gather their parameters, so the plan of `none` is to be given");
  }
  plans_ = std::make_unique<Plans>(trace, profile, space, std::move(none));
}

FrontSearch::~FrontSearch() = default;

namespace {

// Undominated, by peak.
std::vector<FrontPoint> undominated(std::vector<FrontPoint> points) {
  std::stable_sort(points.begin(), points.end(), [](const FrontPoint& a, const FrontPoint& b) {
    return a.figures.peak != b.figures.peak ? a.figures.peak < b.figures.peak
                                            : a.step_time < b.step_time;
  });
  std::vector<FrontPoint> kept;
  for (FrontPoint& point : points) {
    if (kept.empty() || point.step_time < kept.back().step_time) kept.push_back(std::move(point));
  }
  return kept;
}

std::string describe_peak(const FrontPoint& point) {
  const PlanFigures& figures = point.figures;
  std::string text = "it is in " + std::string(to_string(figures.peak_phase));
  if (!figures.peak_place.empty()) text += " of " + figures.peak_place;
  return text + ", held mostly by " + std::string(largest_holder(figures.holders));
}

}  // namespace

std::optional<StepRange> FrontPoint::range() const {
  if (!figures.communication) return std::nullopt;
  return StepRange{step_time - *figures.communication, *figures.communication};
}

std::chrono::nanoseconds predicted_step(const Front& front, std::chrono::nanoseconds profiled) {
  if (!front.measurement) return profiled;
  const double calibrated = front.measurement->offset_ns +
                            front.measurement->slope * static_cast<double>(profiled.count());
  return std::chrono::nanoseconds(std::llround(std::max(0.0, calibrated)));
}

std::string verdict_of(const Front& front) {
  const FrontPoint& lowest = front.points.front();
  const FrontPoint& none = front.reference();
  if (lowest.figures.peak >= none.figures.peak) {
    return "checkpointing cannot lower this peak: " + describe_peak(none);
  }
  const auto share = [](double part, double whole) {
    return std::to_string(std::lround(100 * part / whole)) + " %";
  };
  const auto bytes = static_cast<double>(none.figures.peak.count);
  const auto time = static_cast<double>(predicted_step(front, none).count());
  const auto slowest = static_cast<double>(predicted_step(front, lowest).count());
  return "checkpointing lowers the peak by up to " +
         share(bytes - static_cast<double>(lowest.figures.peak.count), bytes) +
         (time > 0 ? ", for " + share(slowest - time, time) + " more step time" : "") +
         "; the lowest peak: " + describe_peak(lowest);
}

Front FrontSearch::front(std::size_t max_points, const std::vector<Plan>& baselines,
                         const std::vector<FrontPoint>& answers) {
  Front front;
  front.schedule = plans_->space().schedule;
  front.num_plans_found = plans_->size();
  front.time_gap = plans_->time_gap();
  front.transient_gap = plans_->transient_gap();
  front.nothing_recomputed = plans_->nothing_recomputed();
  front.none = plans_->none();
  front.points.push_back(front.nothing_recomputed);
  std::vector<PlanePoint> plane;
  for (const LayerMix& mix : plans_->mixed().points) {
    plane.push_back({mix.peak.count, mix.time.count()});
  }
  for (std::size_t index : spread_points(plane, max_points)) {
    // The last is the front's other end: a stopped search still reaches from end to end.
    const bool is_end = index == 0 || index + 1 == plane.size();
    if (is_end || !plans_->space().is_stopped()) front.points.push_back(plans_->point(index));
  }
  plans_->forget_baselines();
  front.points.insert(front.points.end(), answers.begin(), answers.end());
  for (const Plan& plan : baselines) {
    Baseline baseline{plans_->judge(plan), false};
    plans_->keep_baseline(baseline.point);
    baseline.is_matched =
        std::any_of(front.points.begin(), front.points.end(),
                    [&](const FrontPoint& point) { return is_no_worse(point, baseline.point); });
    if (baseline.is_matched) {
      front.baselines.push_back(std::move(baseline));
      continue;
    }
    const FrontPoint* match = plans_->fastest(baseline.point.figures.peak, [&](const auto& point) {
      return is_no_worse(point, baseline.point);
    });
    baseline.is_matched = match != nullptr;
    if (match != nullptr) front.points.push_back(*match);
    front.baselines.push_back(std::move(baseline));
  }
  // Data sheets know no time of a view: what re-runs views alone is as fast as nothing on paper
  // only.
  std::erase_if(front.points, [&](const FrontPoint& point) {
    return point.figures.num_recomputed > 0 &&
           point.step_time == front.nothing_recomputed.step_time;
  });
  front.points = undominated(std::move(front.points));
  for (FrontPoint& point : front.points) point = plans_->in_words(std::move(point));
  for (Baseline& baseline : front.baselines) {
    baseline.point = plans_->in_words(std::move(baseline.point));
  }
  front.nothing_recomputed = plans_->in_words(std::move(front.nothing_recomputed));
  if (front.none) front.none = plans_->in_words(*std::move(front.none));
  std::vector<PlanePoint> own;
  std::vector<PlanePoint> others;
  for (const FrontPoint& point : front.points) own.push_back(on_plane(point));
  for (const Baseline& baseline : front.baselines) others.push_back(on_plane(baseline.point));
  front.knee = knee_of(own);
  PlanePoint reference = on_plane(front.nothing_recomputed);
  reference.time_ns = own.front().time_ns;
  for (const PlanePoint& other : others) {
    reference.time_ns = std::max(reference.time_ns, other.time_ns);
  }
  reference = {reference.peak_bytes + 1, reference.time_ns + 1};
  front.hypervolume = hypervolume_ratio(own, reference);
  front.baseline_hypervolume = hypervolume_ratio(others, reference);
  front.verdict = verdict_of(front);
  front.is_complete = !plans_->space().is_stopped();
  return front;
}

std::optional<FrontPoint> FrontSearch::fastest_within(Bytes budget) {
  FrontPoint nothing = plans_->nothing_recomputed();
  if (nothing.figures.peak <= budget) return plans_->in_words(std::move(nothing));
  const auto fits = [&](const FrontPoint& point) { return point.figures.peak <= budget; };
  std::optional<FrontPoint> best;
  const auto consider = [&](const FrontPoint& point) {
    if (fits(point) && (!best || point.step_time < best->step_time)) best = point;
  };
  if (const FrontPoint* found = plans_->fastest(budget, fits)) consider(*found);
  if (!best) consider(plans_->point(0));
  for (const FrontPoint& baseline : plans_->baselines()) consider(baseline);
  if (best) best = plans_->in_words(*std::move(best));
  return best;
}

FrontPoint FrontSearch::lowest() {
  FrontPoint lowest = plans_->point(0);
  for (const FrontPoint& baseline : plans_->baselines()) {
    if (baseline.figures.peak < lowest.figures.peak) lowest = baseline;
  }
  return plans_->in_words(std::move(lowest));
}

FrontPoint FrontSearch::lowest_within_slowdown(double slowdown_ratio) {
  const FrontPoint nothing = plans_->nothing_recomputed();
  const auto least = static_cast<double>(nothing.step_time.count());
  const double most = least * (1 + slowdown_ratio);
  const auto is_too_slow = [&](const FrontPoint& point) {
    return static_cast<double>(point.step_time.count()) > most;
  };
  // Sums of a mix are its step's times, or nearly.
  std::size_t index = plans_->first_within(std::chrono::nanoseconds(std::llround(most - least)));
  while (index > 0 && !is_too_slow(plans_->point(index - 1))) --index;
  while (index + 1 < plans_->size() && is_too_slow(plans_->point(index))) ++index;
  FrontPoint lowest = plans_->point(index);
  for (const FrontPoint& baseline : plans_->baselines()) {
    if (!is_too_slow(baseline) && baseline.figures.peak < lowest.figures.peak) lowest = baseline;
  }
  return plans_->in_words(std::move(lowest));
}

std::chrono::nanoseconds FrontSearch::step_time_bound(Bytes peak) const {
  return plans_->step_time_bound(peak);
}

}  // namespace rematch
