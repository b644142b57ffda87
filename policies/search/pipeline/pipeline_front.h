// The front of a pipeline: the highest peak of all stages against the step time. Every stage has a
// plan of its own.
//
// Note [The front of a pipeline] A step gets no slower if one stage gets faster. So for a limit of
// memory it is best to give each stage its fastest plan within that limit. The limits that matter
// are the peaks on the fronts of the stages. The pipeline's front is therefore exact over the
// stages' fronts. For each limit, the step time follows from the schedule (step_time.h).
//
// If a rank runs several stages, they share its memory. The search then has one front for each
// rank: the peak of the rank against the time that all its stages recompute. Named policies are
// candidates too, so the front is never worse than one of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/predict/pipeline/schedule.h"
#include "policies/search/front/front_search.h"
#include "policies/search/region/spans.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// The points have plans with one shape for each stage, and the figures of the stage with the
// highest peak. Their step times are those of the whole pipeline.
class PipelineSearch {
 public:
  // `passing` is the time in which an activation reaches the next stage.
  PipelineSearch(const std::vector<SearchedStage>& stages, const SearchSpace& space,
                 std::chrono::nanoseconds passing);
  ~PipelineSearch();
  PipelineSearch(const PipelineSearch&) = delete;
  PipelineSearch& operator=(const PipelineSearch&) = delete;

  // Like FrontSearch::front(). Each baseline has one shape for each stage.
  Front front(std::size_t max_points, const std::vector<Plan>& baselines,
              const std::vector<FrontPoint>& answers = {});
  FrontPoint judge(const Plan& plan);
  // Joins one point of each rank into a point of the pipeline.
  FrontPoint joined(const std::vector<FrontPoint>& points) const;

  // Returns the point whose stages all have their fastest plan within the budget. Returns nullopt
  // if no plan of some stage is within the budget. After front(), may be a baseline.
  std::optional<FrontPoint> fastest_within(Bytes budget);
  FrontPoint lowest();
  // Returns the point with the lowest peak among those that are at most this much slower than a
  // step that keeps everything.
  FrontPoint lowest_within_slowdown(double slowdown_ratio);
  // Returns the FrontPoint::step_time_bound of a point with this peak.
  std::chrono::nanoseconds step_time_bound(Bytes peak) const;

 private:
  struct Rank;
  // A limit of memory, and the estimated step time of the best plans within it.
  struct Limit {
    Bytes peak;
    std::chrono::nanoseconds step_time{};
    std::vector<std::size_t> plans;  // for each rank, the index of its plan among the estimates
  };

  std::vector<Limit> estimate_limits() const;
  std::vector<FrontPoint> points_at(const Limit& limit);
  void add_points(std::size_t max_points, Front& front);
  // Like joined(), without words.
  FrontPoint compose(const std::vector<FrontPoint>& points) const;
  // `recompute` has the recompute times of the stages of each rank.
  std::chrono::nanoseconds step_time(
      const std::vector<std::vector<std::chrono::nanoseconds>>& recompute) const;
  void add_words(FrontPoint& point) const;
  // Like fastest_within(), but never a baseline.
  std::optional<FrontPoint> fastest_found_within(Bytes budget);

  PipelineShape shape_;
  std::vector<SearchedStage> stages_;
  std::vector<std::chrono::nanoseconds> weights_;  // of each stage: the time of its weight passes
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<FrontPoint> baselines_;  // baselines of the last front()
  SearchSpace space_;
  std::chrono::nanoseconds passing_;
  std::vector<Limit> limits_;  // undominated, by ascending peak
  FrontPoint nothing_recomputed_;
  std::optional<FrontPoint> none_;
  std::size_t num_plans_found_ = 0;
  std::chrono::nanoseconds time_gap_{};
  Bytes transient_gap_;
};

}  // namespace rematch
