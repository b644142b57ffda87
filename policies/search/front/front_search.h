// Searches the front of a model's training step. Turns a trace and a profile into plans with
// predicted peak and step time, and answers questions about them.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/search/front/front.h"
#include "policies/search/front/searched_stage.h"
#include "policies/search/region/span_options.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

class FrontSearch {
 public:
  // A plan that the search found, before it is simulated. The estimated peak may be too low,
  // because it omits temporaries of forward.
  struct Estimate {
    Bytes peak;
    std::chrono::nanoseconds recompute{};
    std::vector<std::chrono::nanoseconds> recompute_of_stages;  // as in PlanFigures
  };

  // Finds all useful plans. `none` is the plan of the catalogue's policy `none`. It is needed only
  // if blocks gather their parameters. The references must outlive the search. Throws
  // std::invalid_argument if the profile belongs to another trace, or if `none` is missing but
  // needed.
  FrontSearch(const Trace& trace, const Profile& profile, const SearchSpace& space,
              std::optional<Plan> none = std::nullopt);
  // Searches for one rank of a pipeline, which runs these stages. With several stages, plans have a
  // shape for each stage, and points have no words.
  FrontSearch(const std::vector<SearchedStage>& stages, const SearchSpace& space);
  ~FrontSearch();
  FrontSearch(const FrontSearch&) = delete;
  FrontSearch& operator=(const FrontSearch&) = delete;

  // Returns a front of at most `max_points` points. In addition, the front may contain a better
  // point for each baseline, and points from `answers`.
  Front front(std::size_t max_points, const std::vector<Plan>& baselines,
              const std::vector<FrontPoint>& answers = {});

  // Returns all plans found, by ascending peak. Times descend.
  std::vector<Estimate> estimates() const;
  // Returns the simulated point of one of these plans.
  FrontPoint found(std::size_t index);

  // Returns the figures of any plan for the trace, under the schedule of the search.
  FrontPoint judge(const Plan& plan) const;

  // The next functions also choose from the baselines and the answers of the latest call of
  // front().
  //
  // fastest_within() returns nullopt if every plan's peak is above the budget. In this case,
  // lowest() returns the plan that comes closest.
  std::optional<FrontPoint> fastest_within(Bytes budget);
  FrontPoint lowest();
  // Returns the plan with the lowest peak among plans that are at most this much slower than a step
  // that keeps everything.
  FrontPoint lowest_within_slowdown(double slowdown_ratio);

  // Returns the FrontPoint::step_time_bound of a point with this peak.
  std::chrono::nanoseconds step_time_bound(Bytes peak) const;

 private:
  struct Plans;

  void add_points(std::size_t max_points, Front& front);
  void add_baseline(const Plan& plan, Front& front);

  std::unique_ptr<Plans> plans_;
};

}  // namespace rematch
