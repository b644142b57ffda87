#include "policies/search/front/front.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "policies/predict/pipeline/schedule.h"
#include "policies/search/front/hypervolume.h"
#include "policies/search/front/plan_builder.h"
#include "policies/search/front/point_judge.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/trace/collective.h"

namespace rematch {
namespace {

// The catalogue's name of the plan that recomputes nothing and keeps gathered parameters.
constexpr const char* kNameOfHolding = "no_reshard(none)";

// Adds what a pipeline stage's other micro-batches hold while one micro-batch runs.
//
// Note [Micro-batches in a mix] With k others in flight the peak of a mix is k times the held bytes
// of all layers higher. A mix counts the held bytes of the layers before a layer, so each layer
// gets k + 1 times its held bytes. That leaves out what the others hold of later layers, while an
// earlier layer runs. So the peak of a mix may be too low, but never too high: bounds stay valid.
// It is right if the last layers or the head have the peak, and the order of options that is best
// for a mix does not change. Plans are judged by the step simulator, which counts everything.
MixProblem with_others_in_flight(MixProblem problem, const Trace& trace) {
  if (!trace.stage) return problem;
  const InFlight most = in_flight(pipeline_shape(trace.dimensions), trace.stage->index);
  const std::int64_t others = most.later_backward.value_or(most.first_backward.value_or(0));
  const Bytes standing = trace.stage->held_bytes * others;
  for (std::vector<LayerOption>& list : problem.lists) {
    for (LayerOption& option : list) {
      const Bytes more = option.held * others + standing;
      option.held += option.held * others;
      option.transient += more;
      option.transient_beside += more;
      option.forward_transient += more;
    }
  }
  problem.head += problem.head * others + standing;
  problem.floor += standing;
  return problem;
}

}  // namespace

// Everything that the search knows about a trace. A mix is converted to a plan and simulated only
// when its point is needed.
struct FrontSearch::Plans {
  Plans(const Trace& whole_trace, const Profile& its_profile, const SearchSpace& its_space,
        std::optional<Plan> plan_of_none)
      : profile(its_profile),
        space(its_space),
        judge(whole_trace, profile, space),
        trace(judge.trace()),
        map(make_spans(trace, profile.forward,
                       space.whole_modules ? Repeats::kNoBlocks : Repeats::kAreBlocks,
                       space.offload ? Offloading::kAllowed : Offloading::kNever)),
        options(make_options({trace, map, profile.forward, space})),
        problem(with_others_in_flight(mix_problem(map, options), trace)),
        mixed(mix_layers(problem, kMaxMixLabels, {space.stop, space.on_layer})),
        bound(mix_lower_bound(with_others_in_flight(relaxed_mix_problem(map, options), trace))),
        builder(whole_trace, profile.trace_sha256, map, options, space),
        none(std::move(plan_of_none)) {}

  std::chrono::nanoseconds time_gap() const;
  Bytes transient_gap() const;
  std::chrono::nanoseconds step_time_bound(Bytes peak) const;

  FrontPoint judged(Plan plan) {
    FrontPoint point = judge.judge(std::move(plan));
    point.step_time_bound = step_time_bound(point.figures.peak);
    return point;
  }

  const FrontPoint& point(std::size_t index) {
    const auto [found, is_new] = points.try_emplace(index);
    if (is_new) {
      const LayerMix mix = in_readable_order(problem, mixed.points[index]);
      found->second = judged(builder.build(mix.options, "search(" + std::to_string(index) + ")"));
    }
    return found->second;
  }

  bool none_has_no_regions() const { return !none || none->regions.empty(); }
  FrontPoint nothing_recomputed() {
    return judged(builder.build({}, none_has_no_regions() ? "none" : kNameOfHolding));
  }

  template <class Accept>
  const FrontPoint* fastest(Bytes peak, const Accept& accept);

  const Profile& profile;
  SearchSpace space;
  PointJudge judge;
  const Trace& trace;  // trace of one rank
  SpanMap map;
  SpanOptions options;
  MixProblem problem;
  MixFront mixed;
  std::vector<BoundCorner> bound;
  PlanBuilder builder;
  std::optional<Plan> none;
  std::map<std::size_t, FrontPoint> points;  // keyed by the index of the mix
  std::vector<FrontPoint> baselines;         // baselines of the last front()
  std::vector<FrontPoint> answers;           // answers of the last front()
};

// Returns an upper bound on how much faster a plan that the search missed can be: the smaller of
// two bounds. The first is the sum of the gaps of layer mixing and of all spans. The second is the
// largest difference between a mix's time and the lower bound of times at the next mix's peak.
std::chrono::nanoseconds FrontSearch::Plans::time_gap() const {
  std::chrono::nanoseconds gap = mixed.time_gap;
  for (const Span& span : map.spans) gap += options.gaps[span.kind].time;
  std::chrono::nanoseconds above_bound{};
  for (std::size_t i = 0; i + 1 < mixed.points.size(); ++i) {
    const std::chrono::nanoseconds least = bound_at(bound, mixed.points[i + 1].peak);
    above_bound = std::max(above_bound, mixed.points[i].time - least);
  }
  // The gap of an option ignores what other spans offload. With offloading, `gap` may therefore be
  // too small.
  return space.offload ? above_bound : std::min(gap, above_bound);
}

Bytes FrontSearch::Plans::transient_gap() const {
  Bytes gap;
  for (const OptionGap& of_kind : options.gaps) gap = std::max(gap, of_kind.transient);
  Bytes most_offloaded;
  for (const auto& list : problem.lists) {
    for (const LayerOption& option : list) {
      most_offloaded = std::max(most_offloaded, option.offloaded);
    }
  }
  return gap + most_offloaded;
}

// The peak of a step is never below the peak of its mix, because a mix counts only memory that
// layers hold. A bound for mixes is therefore a bound for steps too. A stopped search has not seen
// all options, so its only bound is the time of a step that keeps everything.
std::chrono::nanoseconds FrontSearch::Plans::step_time_bound(Bytes peak) const {
  if (space.is_stopped()) return profile.step_time();
  return profile.step_time() + bound_at(bound, peak - judge.before());
}

// Returns the fastest plan that accept() accepts, or null if there is none. Tries plans from the
// fastest to the slowest, and skips plans whose estimated peak exceeds `peak`.
template <class Accept>
const FrontPoint* FrontSearch::Plans::fastest(Bytes peak, const Accept& accept) {
  const Bytes activations = peak - judge.before();
  auto end = std::partition_point(mixed.points.begin(), mixed.points.end(),
                                  [&](const LayerMix& mix) { return mix.peak <= activations; });
  // The estimated peak of a mix omits temporaries of forward, so the plan of a mix may exceed the
  // limit. The next mix, which has a lower peak, is tried then.
  constexpr int kMaxTried = 64;
  for (int tried = 0; end != mixed.points.begin() && tried < kMaxTried; ++tried) {
    const FrontPoint& found = point(static_cast<std::size_t>(--end - mixed.points.begin()));
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
  plans_ = std::make_unique<Plans>(trace, profile, space, std::move(none));
}

FrontSearch::~FrontSearch() = default;

namespace {

// Returns the name of the holder that holds the most bytes, such as "saved activations" or
// "parameters".
std::string_view largest_holder(const HolderBytes& holders) {
  const std::pair<Bytes, std::string_view> all[] = {
      {holders[Holder::kSavedActivations], "saved activations"},
      {holders[Holder::kRecomputeTransient], "recomputed activations"},
      {holders[Holder::kGradients], "gradients of parameters"},
      {holders[Holder::kParameters], "parameters"},
      {holders[Holder::kOptimizer], "the optimizer's state"},
      {holders[Holder::kOther], "temporaries and constants"}};
  return std::max_element(std::begin(all), std::end(all),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
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
  const double calibrated = front.measurement->line.at(static_cast<double>(profiled.count()));
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

namespace {

// Returns the reference point of hypervolumes: one byte above the peak of keeping everything, and
// one nanosecond above the longest time of all points.
PlanePoint reference_of(const Front& front, const std::vector<PlanePoint>& own,
                        const std::vector<PlanePoint>& others) {
  PlanePoint reference = on_plane(front.nothing_recomputed);
  reference.time_ns = own.front().time_ns;
  for (const PlanePoint& other : others) {
    reference.time_ns = std::max(reference.time_ns, other.time_ns);
  }
  return {reference.peak_bytes + 1, reference.time_ns + 1};
}

}  // namespace

void summarize(Front& front) {
  std::vector<PlanePoint> own;
  std::vector<PlanePoint> others;
  for (const FrontPoint& point : front.points) own.push_back(on_plane(point));
  for (const Baseline& baseline : front.baselines) others.push_back(on_plane(baseline.point));
  front.knee = knee_of(own);
  const PlanePoint reference = reference_of(front, own, others);
  front.hypervolume = hypervolume_ratio(own, reference);
  front.baseline_hypervolume = hypervolume_ratio(others, reference);
  front.verdict = verdict_of(front);
}

std::vector<FrontSearch::Estimate> FrontSearch::estimates() const {
  std::vector<Estimate> plans;
  for (const LayerMix& mix : plans_->mixed.points) {
    plans.push_back({mix.peak + plans_->judge.before(), mix.time});
  }
  return plans;
}

FrontPoint FrontSearch::found(std::size_t index) { return plans_->point(index); }

Front FrontSearch::front(std::size_t max_points, const std::vector<Plan>& baselines,
                         const std::vector<FrontPoint>& answers) {
  Front front;
  front.schedule = plans_->space.schedule;
  front.num_plans_found = plans_->mixed.points.size();
  front.time_gap = plans_->time_gap();
  front.transient_gap = plans_->transient_gap();
  front.nothing_recomputed = plans_->nothing_recomputed();
  if (!plans_->none_has_no_regions()) front.none = plans_->judged(*plans_->none);
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
  for (const LayerMix& mix : plans_->mixed.points) {
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
  const std::vector<LayerMix>& mixes = plans_->mixed.points;
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
