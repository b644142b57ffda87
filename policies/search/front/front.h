// The front of a model's training step. Turns a trace and a profile into plans with predicted peak
// and step time, and answers questions about them.
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

// Measurements of one point. Plain data; absent means not measured.
struct MeasuredFigures {
  std::string status = "ok";  // same values as in a run's report: "oom", "timeout"
  std::string reason;         // empty if status is ok
  std::optional<Bytes> peak;  // bytes of tensors, as peak_of_tensors() returns
  std::optional<std::chrono::nanoseconds> step_time;  // median
  std::optional<std::array<std::chrono::nanoseconds, 2>> step_interval;
  // The prediction, calibrated on the anchors. `step_time` is compared with it.
  std::optional<std::chrono::nanoseconds> calibrated_step_time;
  bool is_anchor = false;  // calibration used its time, so its error does not test the prediction
  // The policy of a measured point whose peak is not higher and whose step is faster by more than
  // the A/A interval. Empty: there is none. Points that lost stay in the front's file.
  std::string lost_to;
};

// Shares of the rectangle below the reference point, like Front::hypervolume.
struct MeasuredFamily {
  std::string family;  // "nth_first", which includes all its arguments
  double predicted = 0;
  std::optional<double> measured;
  // The measured share, with times lengthened by the deviation of the A/A control. A front below
  // this share is behind by more than noise.
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
  StepCalibration line;              // least squares over the anchors
  // 95 % interval of the ratio of two arms that ran the same plan in turns.
  std::optional<std::array<double, 2>> control_interval;
  int num_measured = 0;            // points and baselines whose run ended with status ok
  int num_equal_peaks = 0;         // measured points whose peak equals the prediction to the byte
  std::optional<Bytes> workspace;  // on CUDA: memory that libraries hold in addition
  // Errors of the step times, over all points except the anchors.
  std::optional<double> median_error_ratio;
  std::optional<double> worst_error_ratio;
  // Hypervolumes of the front's own points, without baselines.
  double predicted_hypervolume = 0;
  std::optional<double> measured_hypervolume;
  std::vector<MeasuredFamily> families;

  bool is_behind_in_prediction() const;
  bool is_behind_when_measured() const;
};

// Figures of a whole step under a plan. The step simulator's bytes equal the engine's. Points of a
// front and baselines are compared by these figures.
struct PlanFigures {
  Bytes peak;  // parameters, optimizer, gradients, activations and constants together
  Phase peak_phase = Phase::kBackward;
  std::string peak_place;  // outermost scope of the op at the peak; empty: outside all scopes
  StepHolders holders;     // at the peak
  Bytes after_forward;
  StepHost host;
  std::chrono::nanoseconds recompute{};
  // The part of the step time that collectives take, including those of recompute. Absent: unknown.
  std::optional<std::chrono::nanoseconds> communication;
  std::int64_t num_recomputed = 0;  // ops
  // Kernels that these ops launch. Absent: the profile does not count kernels.
  std::optional<std::int64_t> num_recomputed_kernels;
};

struct FrontPoint {
  Plan plan;
  PlanFigures figures;
  // Includes copies to the host and back, as if none were hidden.
  std::chrono::nanoseconds step_time{};
  // The copies' part of step_time, which hiding them could save at most. Absent: no link is known,
  // and step_time excludes copies.
  std::optional<std::chrono::nanoseconds> copy_time;
  // A lower bound: no plan of the search space is faster within this point's peak. The bound treats
  // options as divisible and as better by the gaps of the search. A plan outside the space may be
  // faster.
  std::chrono::nanoseconds step_time_bound{};
  std::chrono::nanoseconds step_time_gap() const { return step_time - step_time_bound; }
  // Returns the bounds of step_range.h for the step time, or nullopt if communication is unknown.
  std::optional<StepRange> range() const;
  std::string saves;             // for people: "layers 0-5: keep all; 6-7: recompute all"
  std::vector<LayerRun> layers;  // the same as data, run by run
  std::optional<MeasuredFigures> measured;
};

// A plan that others would use, and whether the front has a point that is no worse.
struct Baseline {
  FrontPoint point;
  bool is_matched = false;  // some point of the front has no higher peak and is no slower
};

struct Front {
  Schedule schedule = Schedule::kOnDemand;
  std::vector<FrontPoint> points;  // sorted by ascending peak; step times descend
  std::size_t knee = 0;
  std::vector<Baseline> baselines;
  std::size_t num_plans_found = 0;  // the points are a selection of these
  // Bounds how much better a plan of the space may be that the search has not found.
  std::chrono::nanoseconds time_gap{};
  Bytes transient_gap;
  FrontPoint nothing_recomputed;  // the plan without regions, which also keeps gathered parameters
  // The plan of the policy `none`, if it is a different plan: it makes blocks gather their
  // parameters again in backward.
  std::optional<FrontPoint> none;
  // Returns the point that "vs none" compares with.
  const FrontPoint& reference() const { return none ? *none : nothing_recomputed; }
  // Dominated share of the rectangle below (peak of keeping all, step time of recomputing all).
  double hypervolume = 0;
  double baseline_hypervolume = 0;  // all baselines together
  std::string verdict;              // one line
  std::optional<FrontMeasurement> measurement;
  bool is_complete = true;  // false: the search was stopped, and this is what it had
};

// Returns the step time that is shown as predicted: the profile's, or the calibrated one if the
// front was measured. `profiled` is a point's step_time.
std::chrono::nanoseconds predicted_step(const Front& front, std::chrono::nanoseconds profiled);
inline std::chrono::nanoseconds predicted_step(const Front& front, const FrontPoint& point) {
  return predicted_step(front, point.step_time);
}

// Returns a line on what checkpointing can do for this model, with the predicted times.
std::string verdict_of(const Front& front);

class FrontSearch {
 public:
  // Finds all useful plans. `none` is the plan of the policy `none`, as the catalogue resolves it.
  // If it is missing, the plan without regions takes its place. The references must outlive the
  // search. Throws std::invalid_argument if the profile belongs to another trace. Also throws it if
  // blocks gather their parameters and `none` is missing, because `none` is then a different plan.
  FrontSearch(const Trace& trace, const Profile& profile, const SearchSpace& space,
              std::optional<Plan> none = std::nullopt);
  ~FrontSearch();
  FrontSearch(const FrontSearch&) = delete;
  FrontSearch& operator=(const FrontSearch&) = delete;

  // Returns at most `max_points` points, one more for each baseline that needs it, and the
  // undominated points of `answers`.
  Front front(std::size_t max_points, const std::vector<Plan>& baselines,
              const std::vector<FrontPoint>& answers = {});

  // These answers are no worse than the baselines of the last front().
  //
  // fastest_within() returns nullopt if no plan's peak is low enough. lowest() then returns the
  // best plan.
  std::optional<FrontPoint> fastest_within(Bytes budget);
  FrontPoint lowest();
  // Returns the lowest peak among plans that are at most this much slower than keeping everything.
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
