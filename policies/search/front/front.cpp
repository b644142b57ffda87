#include "policies/search/front/front.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "policies/plan/stage_plans.h"
#include "policies/predict/pipeline/schedule.h"
#include "policies/predict/pipeline/split_backward.h"
#include "policies/search/front/hypervolume.h"
#include "policies/search/front/plan_builder.h"
#include "policies/search/front/point_judge.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/trace/collective.h"

namespace rematch {
namespace {

// For a rank with several stages: how many mixes of each moment are candidates, and how many
// combinations of the stages' plans are tried. More take longer; the front gets no better in tests.
constexpr std::size_t kMaxCandidates = 64;
constexpr std::size_t kMaxCombinations = 10'000;

// The catalogue's name of the plan that recomputes nothing and keeps gathered parameters.
constexpr const char* kNameOfHolding = "no_reshard(none)";

// Returns for each stage of a rank the moment of its backward at which the rank has the most
// micro-batches in flight. Prefers moments at which all gradients exist, because a mix counts all
// gradients.
std::vector<PassMoment> fullest_moments(const PipelineShape& shape, std::int64_t rank) {
  std::vector<PassMoment> fullest(static_cast<std::size_t>(shape.stages_per_rank));
  std::vector<std::pair<bool, std::int64_t>> most(fullest.size(), {false, -1});
  for (const PassMoment& moment : pass_moments(shape, rank)) {
    if (moment.kind != StagePass::Kind::kBackward) continue;
    std::pair<bool, std::int64_t> fullness{true, 0};
    for (const HeldByStage& held : moment.held) {
      fullness.first &= held.has_weight_gradients;
      fullness.second += held.in_flight;
    }
    if (fullness <= most[moment.stage]) continue;
    fullest[moment.stage] = moment;
    most[moment.stage] = fullness;
  }
  return fullest;
}

// Adds what a rank's other micro-batches hold while one micro-batch of a pipeline stage runs.
//
// Note [Micro-batches in a mix] With k others in flight the peak of a mix is k times the held bytes
// of all layers higher. A mix counts the held bytes of the layers before a layer, so each layer
// gets k + 1 times its held bytes. That leaves out what the others hold of later layers, while an
// earlier layer runs. So the peak of a mix may be too low, but never too high: bounds stay valid.
// It is right if the last layers or the head have the peak, and the order of options that is best
// for a mix does not change. Plans are judged by the step simulator, which counts everything.
//
// With several stages on a rank, the layers of all its stages are one mix. There is a problem for
// each stage: the fullest moment of its backward. The stage that runs comes last. A layer of
// another stage gets k times its held bytes, with the k of its stage at that moment. The mixes of
// all problems are candidates. Their stages' plans are then combined with each other, and the peak
// of every combination is exact.
void add_others(const HeldByStage& held, bool runs, const Trace& trace, MixProblem& problem) {
  const std::int64_t others = held.in_flight;
  Bytes standing = trace.stage->held_bytes * others;
  if (held.for_weights > 0) {
    standing += bytes_left_for_weights(trace, weight_gradients(trace)).front() * held.for_weights;
  }
  for (std::vector<LayerOption>& list : problem.lists) {
    for (LayerOption& option : list) {
      if (!runs) {
        option = LayerOption{option.held * others, option.held * others, {}, option.time,
                             option.num_layers,    option.covers,        {}, option.held * others,
                             option.passes_on};
        continue;
      }
      const Bytes more = option.held * others + standing;
      option.held += option.held * others;
      option.transient += more;
      option.transient_beside += more;
      option.forward_transient += more;
    }
  }
  problem.head =
      runs ? problem.head + problem.head * others + standing : problem.head * others + standing;
  problem.floor += standing;
  // Gradients of activations exist only in the stage that runs.
  if (!runs) problem.gradients.assign(problem.gradients.size(), Bytes{});
}

// Appends the layers of a rank's next stage.
void append(MixProblem next, MixProblem& all) {
  const auto num_lists = static_cast<int>(all.lists.size());
  for (std::vector<LayerOption>& list : next.lists) {
    for (LayerOption& option : list) {
      for (int& list_index : option.covers) list_index += num_lists;
    }
    all.lists.push_back(std::move(list));
  }
  for (const int list : next.list_of_layer) all.list_of_layer.push_back(list + num_lists);
  all.gradients.insert(all.gradients.end(), next.gradients.begin(), next.gradients.end());
  all.head += next.head;
  all.floor = std::max(all.floor, next.floor);
}

}  // namespace

// One stage of the searched rank, or a whole model.
struct FrontSearch::Part {
  Part(const SearchedStage& searched, const Trace& trace_of_rank, const SearchSpace& space)
      : whole_trace(searched.trace),
        profile(searched.profile),
        trace(without_weight_passes(trace_of_rank)),
        map(make_spans(trace, profile.forward,
                       space.whole_modules ? Repeats::kNoBlocks : Repeats::kAreBlocks,
                       space.offload ? Offloading::kAllowed : Offloading::kNever)),
        options(make_options({trace, map, profile.forward, space})),
        builder(whole_trace, profile.trace_sha256, map, options, space),
        none(searched.none) {}

  const Trace& whole_trace;
  const Profile& profile;
  Trace trace;  // trace of one rank, without weight passes
  SpanMap map;
  SpanOptions options;
  PlanBuilder builder;
  std::optional<Plan> none;
};

// Everything that the search knows about a trace, or about the stages of a rank. A mix is converted
// to a plan and simulated only when its point is needed.
struct FrontSearch::Plans {
  Plans(const std::vector<SearchedStage>& stages, const SearchSpace& its_space)
      : space(its_space),
        judge(stages, space),
        parts(make_parts(stages, judge, space)),
        moments(moments_of([](const Part& part) { return mix_problem(part.map, part.options); })),
        mixed(mixes_of(*this)),
        bound(mix_lower_bound(
            moments_of([](const Part& part) { return relaxed_mix_problem(part.map, part.options); })
                .front()
                .problem)) {
    for (const auto& part : parts) unchanged_time += part->profile.step_time();
  }

  static std::vector<std::unique_ptr<Part>> make_parts(const std::vector<SearchedStage>& stages,
                                                       const PointJudge& judge,
                                                       const SearchSpace& space) {
    std::vector<std::unique_ptr<Part>> parts;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      parts.push_back(std::make_unique<Part>(stages[stage], judge.trace(stage), space));
    }
    return parts;
  }

  // Returns the parts in the order of a mix: see Note [Micro-batches in a mix].
  static std::vector<std::size_t> order_of(std::size_t num_parts, std::size_t running) {
    std::vector<std::size_t> order;
    for (std::size_t part = 0; part < num_parts; ++part) {
      if (part != running) order.push_back(part);
    }
    order.push_back(running);
    return order;
  }

  // One moment of a rank, or a model without stages.
  struct Moment {
    std::vector<std::size_t> order;  // of the parts in `problem`
    MixProblem problem;
  };

  template <class MakeProblem>
  std::vector<Moment> moments_of(const MakeProblem& make) const {
    if (!parts.front()->trace.stage) return {{{0}, make(*parts.front())}};
    const PipelineShape shape = pipeline_shape(parts.front()->trace.dimensions);
    const std::int64_t rank = parts.front()->trace.stage->index % shape.num_ranks;
    std::vector<Moment> all;
    for (const PassMoment& moment : fullest_moments(shape, rank)) {
      Moment& each = all.emplace_back();
      each.order = order_of(parts.size(), parts.size() == 1 ? 0 : moment.stage);
      for (const std::size_t index : each.order) {
        const Part& part = *parts[index];
        const auto position = static_cast<std::size_t>(part.trace.stage->index / shape.num_ranks);
        MixProblem own = make(part);
        add_others(moment.held[position], position == moment.stage, part.trace, own);
        append(std::move(own), each.problem);
      }
      // A search for one stage of a rank ignores the rank's other stages.
      if (parts.size() == 1 &&
          moment.stage ==
              static_cast<std::size_t>(parts.front()->trace.stage->index / shape.num_ranks)) {
        return {std::move(each)};
      }
    }
    return all;
  }

  // Finds the mixes of all moments. Their options are in the order of the first moment.
  static MixFront mixes_of(Plans& plans) {
    const MixWatch watch{plans.space.stop, plans.space.on_layer};
    MixFront all = mix_layers(plans.problem(), kMaxMixLabels, watch);
    if (plans.parts.size() == 1) return all;
    std::vector<std::set<std::vector<int>>> of_parts(plans.parts.size());
    for (std::size_t index = 0; index < plans.moments.size(); ++index) {
      const Moment& moment = plans.moments[index];
      const MixFront found = index == 0 ? all : mix_layers(moment.problem, kMaxMixLabels, watch);
      all.time_gap = std::max(all.time_gap, found.time_gap);
      std::vector<PlanePoint> plane;
      for (const LayerMix& mix : found.points) plane.push_back(on_plane(mix));
      for (const std::size_t point : spread_points(plane, kMaxCandidates)) {
        const auto options = plans.options_of_parts(found.points[point].options, moment);
        for (std::size_t part = 0; part < options.size(); ++part) {
          of_parts[part].insert(options[part]);
        }
      }
    }
    for (std::size_t part = 0; part < plans.parts.size(); ++part) {
      plans.add_own_candidates(part, of_parts[part]);
    }
    all.points = plans.combinations(of_parts);
    return all;
  }

  // Adds the mixes of one part alone, at the fullest moment of its backward.
  void add_own_candidates(std::size_t part, std::set<std::vector<int>>& candidates) const {
    const Trace& trace = parts[part]->trace;
    const PipelineShape shape = pipeline_shape(trace.dimensions);
    const auto position = static_cast<std::size_t>(trace.stage->index / shape.num_ranks);
    const PassMoment moment =
        fullest_moments(shape, trace.stage->index % shape.num_ranks).at(position);
    MixProblem own = mix_problem(parts[part]->map, parts[part]->options);
    add_others(moment.held[position], /*runs=*/true, trace, own);
    const MixFront found = mix_layers(own, kMaxMixLabels, {space.stop, {}});
    std::vector<PlanePoint> plane;
    for (const LayerMix& mix : found.points) plane.push_back(on_plane(mix));
    for (const std::size_t point : spread_points(plane, kMaxCandidates)) {
      candidates.insert(found.points[point].options);
    }
  }

  static PlanePoint on_plane(const LayerMix& mix) { return {mix.peak.count, mix.time.count()}; }

  // A plan of one part, without the rank's other parts.
  struct PartPlan {
    std::vector<int> options;
    PointJudge::StageFigures figures;
    std::chrono::nanoseconds time{};
  };

  // Returns the plan of each candidate of a part, with its figures.
  std::vector<PartPlan> part_plans(std::size_t part, const std::set<std::vector<int>>& candidates) {
    std::vector<PartPlan> plans;
    for (const std::vector<int>& options : candidates) {
      PartPlan& plan = plans.emplace_back();
      plan.options = options;
      plan.figures = judge.figures_of_stage(part, parts[part]->builder.build(options, "candidate"));
      plan.time = time_of_part(*parts[part], options);
    }
    return plans;
  }

  // Combines the plans of all parts. Keeps the combinations that no other one beats.
  std::vector<LayerMix> combinations(const std::vector<std::set<std::vector<int>>>& candidates) {
    std::vector<std::vector<PartPlan>> plans;
    const auto most = static_cast<std::size_t>(
        std::pow(static_cast<double>(kMaxCombinations), 1.0 / static_cast<double>(parts.size())));
    for (std::size_t part = 0; part < parts.size(); ++part) {
      plans.push_back(thinned(part_plans(part, candidates[part]), most));
    }
    std::vector<LayerMix> mixes;
    std::vector<std::size_t> chosen(parts.size(), 0);
    for (bool is_done = false; !is_done;) {
      LayerMix mix;
      std::vector<std::vector<int>> options;
      std::vector<const PointJudge::StageFigures*> figures;
      for (std::size_t part = 0; part < parts.size(); ++part) {
        const PartPlan& plan = plans[part][chosen[part]];
        options.push_back(plan.options);
        figures.push_back(&plan.figures);
        mix.time += plan.time;
      }
      mix.peak = judge.peak_of(figures) - judge.before();
      mix.options = joined(options, order());
      mixes.push_back(std::move(mix));
      is_done = true;
      for (std::size_t part = 0; part < parts.size() && is_done; ++part) {
        is_done = ++chosen[part] == plans[part].size();
        if (is_done) chosen[part] = 0;
      }
    }
    return undominated(std::move(mixes), on_plane);
  }

  // Keeps at most `most` plans, spread over their bytes and times.
  static std::vector<PartPlan> thinned(std::vector<PartPlan> plans, std::size_t most) {
    if (plans.size() <= most) return plans;
    std::vector<PlanePoint> plane;
    std::sort(plans.begin(), plans.end(),
              [](const PartPlan& one, const PartPlan& other) { return one.time > other.time; });
    for (const PartPlan& plan : plans) {
      plane.push_back({plan.figures.holds.in_flight.count, plan.time.count()});
    }
    std::vector<PartPlan> kept;
    for (const std::size_t index : spread_points(plane, most)) {
      kept.push_back(std::move(plans[index]));
    }
    return kept;
  }

  static std::vector<int> joined(const std::vector<std::vector<int>>& of_parts,
                                 const std::vector<std::size_t>& order) {
    std::vector<int> mix;
    for (const std::size_t part : order) {
      mix.insert(mix.end(), of_parts[part].begin(), of_parts[part].end());
    }
    return mix;
  }

  const MixProblem& problem() const { return moments.front().problem; }
  const std::vector<std::size_t>& order() const { return moments.front().order; }

  // Splits the options of a mix by part. Parts are in their own order, not in that of the mix.
  std::vector<std::vector<int>> options_of_parts(const std::vector<int>& mix,
                                                 const Moment& moment) const {
    std::vector<std::vector<int>> of_parts(parts.size());
    std::size_t next = 0;
    std::size_t layer = 0;
    std::size_t end = 0;
    for (const std::size_t index : moment.order) {
      end += parts[index]->map.spans.size();
      while (!mix.empty() && layer < end) {
        const auto list = static_cast<std::size_t>(moment.problem.list_of_layer[layer]);
        const auto option = static_cast<std::size_t>(mix.at(next));
        layer += static_cast<std::size_t>(moment.problem.lists[list].at(option).num_layers);
        of_parts[index].push_back(mix[next++]);
      }
    }
    return of_parts;
  }

  Plan build(const std::vector<int>& mix, const std::string& name) {
    if (parts.size() == 1) return parts.front()->builder.build(mix, name);
    const std::vector<std::vector<int>> of_parts = options_of_parts(mix, moments.front());
    std::vector<Plan> plans;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      plans.push_back(parts[part]->builder.build(of_parts[part], name));
    }
    return plan_of_stages(plans);
  }

  // Returns the recompute time of each part in a mix. Empty for one part.
  std::vector<std::chrono::nanoseconds> times_of_parts(const std::vector<int>& mix) const {
    std::vector<std::chrono::nanoseconds> times;
    if (parts.size() == 1) return times;
    for (const std::vector<int>& options : options_of_parts(mix, moments.front())) {
      times.push_back(time_of_part(*parts[times.size()], options));
    }
    return times;
  }

  static std::chrono::nanoseconds time_of_part(const Part& part, const std::vector<int>& options) {
    std::chrono::nanoseconds time{};
    std::size_t span = 0;
    for (const int option : options) {
      const auto kind = static_cast<std::size_t>(part.map.spans[span].kind);
      const LayerOption& figures =
          part.options.lists[kind].at(static_cast<std::size_t>(option)).figures;
      time += figures.time;
      span += static_cast<std::size_t>(figures.num_layers);
    }
    return time;
  }

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
      const LayerMix& found_mix = mixed.points[index];
      const LayerMix mix = parts.size() > 1 ? found_mix : in_readable_order(problem(), found_mix);
      found->second = judged(build(mix.options, "search(" + std::to_string(index) + ")"));
    }
    return found->second;
  }

  bool none_has_no_regions() const {
    return std::all_of(parts.begin(), parts.end(),
                       [](const auto& part) { return !part->none || part->none->regions.empty(); });
  }
  // Requires that some part's plan of `none` has regions.
  Plan plan_of_none() const {
    std::vector<Plan> plans;
    for (const auto& part : parts) plans.push_back(part->none.value());
    return parts.size() == 1 ? plans.front() : plan_of_stages(plans);
  }
  FrontPoint nothing_recomputed() {
    return judged(build({}, none_has_no_regions() ? "none" : kNameOfHolding));
  }

  template <class Accept>
  const FrontPoint* fastest(Bytes peak, const Accept& accept);

  SearchSpace space;
  PointJudge judge;
  std::vector<std::unique_ptr<Part>> parts;
  std::vector<Moment> moments;
  MixFront mixed;
  std::vector<BoundCorner> bound;
  std::chrono::nanoseconds unchanged_time{};  // step time of keeping everything
  std::map<std::size_t, FrontPoint> points;   // keyed by the index of the mix
  std::vector<FrontPoint> baselines;          // baselines of the last front()
  std::vector<FrontPoint> answers;            // answers of the last front()
};

// Returns an upper bound on how much faster a plan that the search missed can be: the smaller of
// two bounds. The first is the sum of the gaps of layer mixing and of all spans. The second is the
// largest difference between a mix's time and the lower bound of times at the next mix's peak.
std::chrono::nanoseconds FrontSearch::Plans::time_gap() const {
  std::chrono::nanoseconds gap = mixed.time_gap;
  for (const auto& part : parts) {
    for (const Span& span : part->map.spans) gap += part->options.gaps[span.kind].time;
  }
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
  for (const auto& part : parts) {
    for (const OptionGap& of_kind : part->options.gaps) gap = std::max(gap, of_kind.transient);
  }
  Bytes most_offloaded;
  for (const auto& list : problem().lists) {
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
  if (space.is_stopped()) return unchanged_time;
  return unchanged_time + bound_at(bound, peak - judge.before());
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
  plans_ =
      std::make_unique<Plans>(std::vector<SearchedStage>{{trace, profile, std::move(none)}}, space);
}

FrontSearch::FrontSearch(const std::vector<SearchedStage>& stages, const SearchSpace& space)
    : plans_(std::make_unique<Plans>(stages, space)) {}

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
    plans.push_back(
        {mix.peak + plans_->judge.before(), mix.time, plans_->times_of_parts(mix.options)});
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
