#include "policies/search/front/rank_mixes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policies/plan/stage_plans.h"
#include "policies/predict/pipeline/schedule.h"
#include "policies/predict/pipeline/split_backward.h"
#include "policies/search/front/hypervolume.h"

namespace rematch {
namespace {

// For a rank with several stages: how many mixes of each moment are candidates, and how many
// combinations of the stages' plans are tried. More take longer; the front gets no better in tests.
constexpr std::size_t kMaxCandidates = 64;
constexpr std::size_t kMaxCombinations = 10'000;

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

// Returns the parts in the order of a mix: see Note [Micro-batches in a mix].
std::vector<std::size_t> order_of(std::size_t num_parts, std::size_t running) {
  std::vector<std::size_t> order;
  for (std::size_t part = 0; part < num_parts; ++part) {
    if (part != running) order.push_back(part);
  }
  order.push_back(running);
  return order;
}

PlanePoint plane_point(const LayerMix& mix) { return {mix.peak.count, mix.time.count()}; }

// Returns the options of all parts in the order of a mix.
std::vector<int> joined_options(const std::vector<std::vector<int>>& of_parts,
                                const std::vector<std::size_t>& order) {
  std::vector<int> mix;
  for (const std::size_t part : order) {
    mix.insert(mix.end(), of_parts[part].begin(), of_parts[part].end());
  }
  return mix;
}

}  // namespace

RankMixes::Part::Part(const SearchedStage& searched, const Trace& trace_of_rank,
                      const SearchSpace& space)
    : whole_trace(searched.trace),
      trace(without_weight_passes(trace_of_rank)),
      map(make_spans(trace, searched.profile.forward,
                     space.whole_modules ? Repeats::kNoBlocks : Repeats::kAreBlocks,
                     space.offload ? Offloading::kAllowed : Offloading::kNever)),
      options(make_options({trace, map, searched.profile.forward, space})),
      builder(whole_trace, searched.profile.trace_sha256, map, options, space) {}

RankMixes::RankMixes(const std::vector<SearchedStage>& stages, PointJudge& judge,
                     const SearchSpace& space)
    : space_(space), judge_(judge) {
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    parts_.push_back(std::make_unique<Part>(stages[stage], judge.trace(stage), space));
  }
  moments_ = moments_of([](const Part& part) { return mix_problem(part.map, part.options); });
  mixed_ = search();
  const std::vector<Moment> relaxed =
      moments_of([](const Part& part) { return relaxed_mix_problem(part.map, part.options); });
  bound_ = mix_lower_bound(relaxed.front().problem);
}

template <class MakeProblem>
std::vector<RankMixes::Moment> RankMixes::moments_of(const MakeProblem& make) const {
  if (!parts_.front()->trace.stage) return {{{0}, make(*parts_.front())}};
  const PipelineShape shape = pipeline_shape(parts_.front()->trace.dimensions);
  const std::int64_t rank = parts_.front()->trace.stage->index % shape.num_ranks;
  std::vector<Moment> all;
  for (const PassMoment& moment : fullest_moments(shape, rank)) {
    Moment& each = all.emplace_back();
    each.order = order_of(parts_.size(), parts_.size() == 1 ? 0 : moment.stage);
    for (const std::size_t index : each.order) {
      const Part& part = *parts_[index];
      const auto position = static_cast<std::size_t>(part.trace.stage->index / shape.num_ranks);
      MixProblem own = make(part);
      add_others(moment.held[position], position == moment.stage, part.trace, own);
      append(std::move(own), each.problem);
    }
    // A search for one stage of a rank ignores the rank's other stages.
    if (parts_.size() == 1 &&
        moment.stage ==
            static_cast<std::size_t>(parts_.front()->trace.stage->index / shape.num_ranks)) {
      return {std::move(each)};
    }
  }
  return all;
}

MixFront RankMixes::search() {
  const MixWatch watch{space_.stop, space_.on_layer};
  MixFront all = mix_layers(problem(), kMaxMixLabels, watch);
  if (parts_.size() == 1) return all;
  std::vector<std::set<std::vector<int>>> of_parts(parts_.size());
  for (std::size_t index = 0; index < moments_.size(); ++index) {
    const Moment& moment = moments_[index];
    const MixFront found = index == 0 ? all : mix_layers(moment.problem, kMaxMixLabels, watch);
    all.time_gap = std::max(all.time_gap, found.time_gap);
    std::vector<PlanePoint> plane;
    for (const LayerMix& mix : found.points) plane.push_back(plane_point(mix));
    for (const std::size_t point : spread_points(plane, kMaxCandidates)) {
      const auto options = options_of_parts(found.points[point].options, moment);
      for (std::size_t part = 0; part < options.size(); ++part) {
        of_parts[part].insert(options[part]);
      }
    }
  }
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    add_own_candidates(part, of_parts[part]);
  }
  all.points = combinations(of_parts);
  return all;
}

void RankMixes::add_own_candidates(std::size_t part, std::set<std::vector<int>>& candidates) const {
  const Trace& trace = parts_[part]->trace;
  const PipelineShape shape = pipeline_shape(trace.dimensions);
  const auto position = static_cast<std::size_t>(trace.stage->index / shape.num_ranks);
  const PassMoment moment =
      fullest_moments(shape, trace.stage->index % shape.num_ranks).at(position);
  MixProblem own = mix_problem(parts_[part]->map, parts_[part]->options);
  add_others(moment.held[position], /*runs=*/true, trace, own);
  const MixFront found = mix_layers(own, kMaxMixLabels, {space_.stop, {}});
  std::vector<PlanePoint> plane;
  for (const LayerMix& mix : found.points) plane.push_back(plane_point(mix));
  for (const std::size_t point : spread_points(plane, kMaxCandidates)) {
    candidates.insert(found.points[point].options);
  }
}

std::vector<LayerMix> RankMixes::combinations(
    const std::vector<std::set<std::vector<int>>>& candidates) {
  std::vector<std::vector<PartPlan>> plans;
  const auto most = static_cast<std::size_t>(
      std::pow(static_cast<double>(kMaxCombinations), 1.0 / static_cast<double>(parts_.size())));
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    plans.push_back(thinned(part_plans(part, candidates[part]), most));
  }
  std::vector<LayerMix> mixes;
  std::vector<std::size_t> chosen(parts_.size(), 0);
  for (bool is_done = false; !is_done;) {
    LayerMix mix;
    std::vector<std::vector<int>> options;
    std::vector<const PointJudge::StageFigures*> figures;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const PartPlan& plan = plans[part][chosen[part]];
      options.push_back(plan.options);
      figures.push_back(&plan.figures);
      mix.time += plan.time;
    }
    mix.peak = judge_.peak_of(figures) - judge_.before();
    mix.options = joined_options(options, moments_.front().order);
    mixes.push_back(std::move(mix));
    is_done = true;
    for (std::size_t part = 0; part < parts_.size() && is_done; ++part) {
      is_done = ++chosen[part] == plans[part].size();
      if (is_done) chosen[part] = 0;
    }
  }
  return undominated(std::move(mixes), plane_point);
}

std::vector<RankMixes::PartPlan> RankMixes::part_plans(
    std::size_t part, const std::set<std::vector<int>>& candidates) {
  std::vector<PartPlan> plans;
  for (const std::vector<int>& options : candidates) {
    PartPlan& plan = plans.emplace_back();
    plan.options = options;
    plan.figures = judge_.figures_of_stage(part, parts_[part]->builder.build(options, "candidate"));
    plan.time = time_of_part(*parts_[part], options);
  }
  return plans;
}

std::vector<RankMixes::PartPlan> RankMixes::thinned(std::vector<PartPlan> plans, std::size_t most) {
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

std::vector<std::vector<int>> RankMixes::options_of_parts(const std::vector<int>& mix,
                                                          const Moment& moment) const {
  std::vector<std::vector<int>> of_parts(parts_.size());
  std::size_t next = 0;
  std::size_t layer = 0;
  std::size_t end = 0;
  for (const std::size_t index : moment.order) {
    end += parts_[index]->map.spans.size();
    while (!mix.empty() && layer < end) {
      const auto list = static_cast<std::size_t>(moment.problem.list_of_layer[layer]);
      const auto option = static_cast<std::size_t>(mix.at(next));
      layer += static_cast<std::size_t>(moment.problem.lists[list].at(option).num_layers);
      of_parts[index].push_back(mix[next++]);
    }
  }
  return of_parts;
}

Plan RankMixes::plan_of(const std::vector<int>& mix, const std::string& name) const {
  if (parts_.size() == 1) return parts_.front()->builder.build(mix, name);
  const std::vector<std::vector<int>> of_parts = options_of_parts(mix, moments_.front());
  std::vector<Plan> plans;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    plans.push_back(parts_[part]->builder.build(of_parts[part], name));
  }
  return plan_of_stages(plans);
}

LayerMix RankMixes::readable(const LayerMix& mix) const {
  return parts_.size() > 1 ? mix : in_readable_order(problem(), mix);
}

std::vector<std::chrono::nanoseconds> RankMixes::times_of_parts(const std::vector<int>& mix) const {
  std::vector<std::chrono::nanoseconds> times;
  if (parts_.size() == 1) return times;
  for (const std::vector<int>& options : options_of_parts(mix, moments_.front())) {
    times.push_back(time_of_part(*parts_[times.size()], options));
  }
  return times;
}

std::chrono::nanoseconds RankMixes::time_of_part(const Part& part,
                                                 const std::vector<int>& options) {
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

// Returns an upper bound_ on how much faster a plan that the search missed can be: the smaller of
// two bounds. The first is the sum of the gaps of layer mixing and of all spans. The second is the
// largest difference between a mix's time and the lower bound_ of times at the next mix's peak.
std::chrono::nanoseconds RankMixes::time_gap() const {
  std::chrono::nanoseconds gap = mixed_.time_gap;
  for (const auto& part : parts_) {
    for (const Span& span : part->map.spans) gap += part->options.gaps[span.kind].time;
  }
  std::chrono::nanoseconds above_bound{};
  for (std::size_t i = 0; i + 1 < mixed_.points.size(); ++i) {
    const std::chrono::nanoseconds least = bound_at(bound_, mixed_.points[i + 1].peak);
    above_bound = std::max(above_bound, mixed_.points[i].time - least);
  }
  // The gap of an option ignores what other spans offload. With offloading, `gap` may therefore be
  // too small.
  return space_.offload ? above_bound : std::min(gap, above_bound);
}

Bytes RankMixes::transient_gap() const {
  Bytes gap;
  for (const auto& part : parts_) {
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

}  // namespace rematch
