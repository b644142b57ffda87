// Searches mixes of layer options for a whole model, or for one rank of a pipeline with all its
// stages. A mix gives each layer one option: what the layer keeps. Private to this folder.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/search/front/plan_builder.h"
#include "policies/search/front/point_judge.h"
#include "policies/search/front/searched_stage.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/search/region/span_options.h"

namespace rematch {

class RankMixes {
 public:
  // Runs the search. All references must outlive this object.
  RankMixes(const std::vector<SearchedStage>& stages, PointJudge& judge, const SearchSpace& space);

  // All useful mixes, by ascending peak. Their peaks exclude PointJudge::before(), and may be too
  // low: see Note [Micro-batches in a mix].
  const std::vector<LayerMix>& all() const { return mixed_.points; }

  // Returns the plan of a mix, or of keeping everything if `mix` is empty.
  Plan plan_of(const std::vector<int>& mix, const std::string& name) const;
  // Returns an equal mix that is easier to describe. A rank with several stages has no such mix.
  LayerMix readable(const LayerMix& mix) const;

  // Returns the recompute time of each stage in a mix. Empty for one stage.
  std::vector<std::chrono::nanoseconds> times_of_parts(const std::vector<int>& mix) const;

  // An upper bound on how much faster a plan that the search missed can be.
  std::chrono::nanoseconds time_gap() const;
  Bytes transient_gap() const;
  // A lower bound of the recompute time of plans with at most this peak, without
  // PointJudge::before().
  std::chrono::nanoseconds recompute_bound(Bytes peak) const { return bound_at(bound_, peak); }

 private:
  // One stage of the rank, or a whole model.
  struct Part {
    Part(const SearchedStage& searched, const Trace& trace_of_rank, const SearchSpace& space);

    const Trace& whole_trace;
    Trace trace;  // trace of one rank, without weight passes
    SpanMap map;
    SpanOptions options;
    PlanBuilder builder;
  };
  // A plan of one part, without the rank's other parts.
  struct PartPlan {
    std::vector<int> options;
    PointJudge::StageFigures figures;
    std::chrono::nanoseconds time{};
  };
  // One moment of a rank, or a model without stages.
  struct Moment {
    std::vector<std::size_t> order;  // of the parts in `problem`
    MixProblem problem;
  };

  template <class MakeProblem>
  std::vector<Moment> moments_of(const MakeProblem& make) const;
  const MixProblem& problem() const { return moments_.front().problem; }

  // Finds the mixes of all moments. Their options are in the order of the first moment.
  MixFront search();
  // Adds the mixes of one part alone, at the fullest moment of its backward.
  void add_own_candidates(std::size_t part, std::set<std::vector<int>>& candidates) const;
  // Combines the plans of all parts. Keeps the combinations that no other one beats.
  std::vector<LayerMix> combinations(const std::vector<std::set<std::vector<int>>>& candidates);
  // Returns the plan of each candidate of a part, with its figures.
  std::vector<PartPlan> part_plans(std::size_t part, const std::set<std::vector<int>>& candidates);
  // Keeps at most `most` plans, spread over their bytes and times.
  static std::vector<PartPlan> thinned(std::vector<PartPlan> plans, std::size_t most);
  // Splits the options of a mix by part. Parts are in their own order, not in that of the mix.
  std::vector<std::vector<int>> options_of_parts(const std::vector<int>& mix,
                                                 const Moment& moment) const;
  static std::chrono::nanoseconds time_of_part(const Part& part, const std::vector<int>& options);

  const SearchSpace& space_;
  PointJudge& judge_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<Moment> moments_;
  MixFront mixed_;
  std::vector<BoundCorner> bound_;
};

}  // namespace rematch
