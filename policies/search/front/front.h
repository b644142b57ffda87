// The front of a model's training step: from a trace and a profile to plans with predicted peak and
// step time, and answers to what users ask of it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/predict/step/step.h"
#include "policies/predict/step/step_range.h"
#include "policies/search/front/saves_text.h"
#include "policies/search/region/span_options.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Measurements of a front's points. Plain data; absent means not measured.

// Measurements of one point.
struct MeasuredFigures {
  std::string status = "ok";                          // as a run's report has it: "oom", "timeout"
  std::string reason;                                 // empty where status is ok
  std::optional<Bytes> peak;                          // of tensors, as peak_of_tensors() has it
  std::optional<std::chrono::nanoseconds> step_time;  // median
  std::optional<std::array<std::chrono::nanoseconds, 2>> step_interval;
  // The prediction, calibrated on the anchors: what `step_time` is held against.
  std::optional<std::chrono::nanoseconds> calibrated_step_time;
  bool is_anchor = false;  // calibration has seen its time, so its error is no prediction's
  // The policy of a measured point that is better in one and not worse in the other, in time by
  // more than the A/A interval; empty: none. Such points stay in the front's file.
  std::string lost_to;
};

// Shares of the rectangle below the reference point, as Front::hypervolume.
struct MeasuredFamily {
  std::string family;  // "nth_first": all its arguments together
  double predicted = 0;
  std::optional<double> measured;
  // The same with its times longer by what the A/A control strays: a front below it is behind by
  // more than noise.
  std::optional<double> measured_beyond_noise;
};

// measured = offset + slope * predicted.
struct StepCalibration {
  double offset_ns = 0;
  double slope = 1;
  double at(double predicted_ns) const { return offset_ns + slope * predicted_ns; }
};

// Measurements of a front.
struct FrontMeasurement {
  std::string chosen_by;             // the rule, for people
  std::vector<std::size_t> anchors;  // indices of points
  StepCalibration line;              // by least squares over the anchors
  // 95 % interval of the ratio of two arms that ran the same plan by turns.
  std::optional<std::array<double, 2>> control_interval;
  int num_measured = 0;            // points and baselines whose run ended ok
  int num_equal_peaks = 0;         // of them, to the byte
  std::optional<Bytes> workspace;  // CUDA: what libraries hold besides
  // Errors of the step times, over all points but the anchors.
  std::optional<double> median_error_ratio;
  std::optional<double> worst_error_ratio;
  // Hypervolumes of the front's own points, without baselines.
  double predicted_hypervolume = 0;
  std::optional<double> measured_hypervolume;
  std::vector<MeasuredFamily> families;

  bool is_behind_in_prediction() const;
  bool is_behind_when_measured() const;
};

// A whole step under a plan, as the step simulator has it, so these are the engine's figures: what
// points of a front and baselines are compared by.
struct PlanFigures {
  Bytes peak;  // of all that there is: parameters, optimizer, gradients, activations, constants
  Phase peak_phase = Phase::kBackward;
  std::string peak_place;  // the outermost scope whose ops these are; empty: outside scopes
  StepHolders holders;     // at the peak
  Bytes after_forward;
  StepHost host;
  std::chrono::nanoseconds recompute{};
  // Part of the step time, recompute's among it. Nothing: nobody counted it.
  std::optional<std::chrono::nanoseconds> communication;
  std::int64_t num_recomputed = 0;  // ops
  // Kernels that these launch, where the profile has counted them.
  std::optional<std::int64_t> num_recomputed_kernels;
};

struct FrontPoint {
  Plan plan;
  PlanFigures figures;
  std::chrono::nanoseconds step_time{};  // copies to the host and back included, none hidden
  // The copies' part of step_time: all that hiding them could save. Absent: no link is known, and
  // step_time leaves copies out.
  std::optional<std::chrono::nanoseconds> copy_time;
  // No plan of the space is faster within this point's peak, were options divisible and better by
  // all that the search may have missed. A plan that is not of the space may be.
  std::chrono::nanoseconds step_time_bound{};
  std::chrono::nanoseconds step_time_gap() const { return step_time - step_time_bound; }
  // The step time between the bounds of step_range.h; nothing where nobody counted communication.
  std::optional<StepRange> range() const;
  std::string saves;             // for people: "layers 0-5: keep all; 6-7: recompute all"
  std::vector<LayerRun> layers;  // the same, part by part
  std::optional<MeasuredFigures> measured;
};

// A plan that somebody else would use, and a point that is no worse.
struct Baseline {
  FrontPoint point;
  bool is_matched = false;  // some point of the front has no higher peak and is no slower
};

struct Front {
  Schedule schedule = Schedule::kOnDemand;
  std::vector<FrontPoint> points;  // by peak, ascending; step times descend
  std::size_t knee = 0;
  std::vector<Baseline> baselines;
  std::size_t num_plans_found = 0;  // of which the points are a choice
  // Bounds on a plan of the space that the search has not found.
  std::chrono::nanoseconds time_gap{};
  Bytes transient_gap;
  FrontPoint nothing_recomputed;  // the plan without regions: gathered parameters are held too
  // The plan of the policy `none` where it is another one: it has blocks gather their parameters
  // again in backward.
  std::optional<FrontPoint> none;
  // What "vs none" compares with.
  const FrontPoint& reference() const { return none ? *none : nothing_recomputed; }
  // Share of the rectangle below (peak of keeping all, step time of recomputing all).
  double hypervolume = 0;
  double baseline_hypervolume = 0;  // of all baselines together
  std::string verdict;              // one line
  std::optional<FrontMeasurement> measurement;
  bool is_complete = true;  // false: the search was told to stop, and this is what it had
};

// The step time that is shown as predicted: by the profile, or calibrated on the anchors where the
// front was measured. `profiled` is a point's step_time.
std::chrono::nanoseconds predicted_step(const Front& front, std::chrono::nanoseconds profiled);
inline std::chrono::nanoseconds predicted_step(const Front& front, const FrontPoint& point) {
  return predicted_step(front, point.step_time);
}

// The verdict on checkpointing for this model, with the predicted times.
std::string verdict_of(const Front& front);

class FrontSearch {
 public:
  // Finds all plans worth having. `none` is the plan of the policy of that name, as the catalogue
  // resolves it; without it the plan without regions is. References must outlive it. Throws
  // std::invalid_argument if the profile is another trace's, and if blocks gather their parameters
  // and `none` is missing: there it is another plan.
  FrontSearch(const Trace& trace, const Profile& profile, const SearchSpace& space,
              std::optional<Plan> none = std::nullopt);
  ~FrontSearch();
  FrontSearch(const FrontSearch&) = delete;
  FrontSearch& operator=(const FrontSearch&) = delete;

  // At most so many points, one more for each baseline that needs it, and those of `answers` that
  // no other one dominates.
  Front front(std::size_t max_points, const std::vector<Plan>& baselines,
              const std::vector<FrontPoint>& answers = {});

  // The answers are no worse than the baselines of the last front().
  //
  // Nothing: no plan's peak is that low; lowest() is what there is.
  std::optional<FrontPoint> fastest_within(Bytes budget);
  FrontPoint lowest();
  // The lowest peak for at most so much more time than keeping everything.
  FrontPoint lowest_within_slowdown(double slowdown_ratio);

  // See FrontPoint::step_time_bound.
  std::chrono::nanoseconds step_time_bound(Bytes peak) const;

 private:
  struct Plans;

  void add_points(std::size_t max_points, Front& front);
  void add_baseline(const Plan& plan, Front& front);

  std::unique_ptr<Plans> plans_;
};

}  // namespace rematch
