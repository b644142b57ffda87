// The front of a model's training step: plans with predicted peak and step time. FrontSearch
// (front_search.h) makes it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/predict/step/step.h"
#include "policies/predict/step/step_range.h"
#include "policies/search/front/hypervolume.h"
#include "policies/search/words/saves_text.h"

namespace rematch {

// Measurements of one point. An absent member was not measured.
struct MeasuredFigures {
  // status of the run, as in the run's report: "ok", "oom", "timeout"
  std::string status = "ok";
  std::string reason;         // reason for a status other than ok
  std::optional<Bytes> peak;  // bytes of tensors, as returned by peak_of_tensors()
  std::optional<std::chrono::nanoseconds> step_time;  // median
  std::optional<std::array<std::chrono::nanoseconds, 2>> step_interval;
  // The predicted step time after calibration on the anchors. The measured `step_time` is compared
  // with this time.
  std::optional<std::chrono::nanoseconds> calibrated_step_time;
  // true: the calibration used this point's time, so the point's error does not test the prediction
  bool is_anchor = false;
  // The policy of a better measured point, or empty if there is none. A better point has no higher
  // peak, and its step is faster by more than the noise of the A/A control.
  std::string lost_to;
};

// The hypervolumes of policies that differ only in their arguments, such as nth_first(2) and
// nth_first(3). See Front::hypervolume.
struct MeasuredFamily {
  std::string family;  // "nth_first"
  double predicted = 0;
  std::optional<double> measured;
  // Like `measured`, but with the policies' times lengthened by the noise of the A/A control. A
  // front with a smaller hypervolume is worse than these policies by more than noise.
  std::optional<double> measured_beyond_noise;
};

// The line that maps predicted to measured step times: measured = offset + slope * predicted.
struct StepCalibration {
  double offset_ns = 0;
  double slope = 1;
  double at(double predicted_ns) const { return offset_ns + slope * predicted_ns; }
};

// The measurements of a front and the figures derived from them.
struct FrontMeasurement {
  std::string chosen_by;  // description of the rule by which the measured points were chosen
  std::vector<std::size_t> anchors;  // indices of the points that are anchors
  StepCalibration line;              // least-squares line through the anchors
  // The 95 % interval for the ratio of step times in the A/A control, which runs the same plan in
  // two alternating series.
  std::optional<std::array<double, 2>> control_interval;
  int num_measured = 0;  // number of points and baselines whose run ended with status ok
  // number of measured points whose peak equals the prediction to the byte
  int num_equal_peaks = 0;
  // memory that libraries hold in addition to tensors; only on CUDA
  std::optional<Bytes> workspace;
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

// The predicted figures of a whole step under a plan. The bytes come from the step simulator and
// equal the engine's bytes.
struct PlanFigures {
  Bytes peak;  // sum of parameters, optimizer, gradients, activations and constants
  Phase peak_phase = Phase::kBackward;
  // outermost scope of the op at the peak; empty: the op is outside all scopes
  std::string peak_place;
  HolderBytes holders;  // bytes at the peak, for each holder
  Bytes after_forward;
  HostMemory host;
  std::chrono::nanoseconds recompute{};
  // The part of the step time that collectives take, including collectives of recompute. Absent:
  // unknown.
  std::optional<std::chrono::nanoseconds> communication;
  std::int64_t num_recomputed = 0;  // number of ops that recompute runs
  // The number of kernels that the recomputed ops launch. Absent: the profile does not count
  // kernels.
  std::optional<std::int64_t> num_recomputed_kernels;
  // For a rank with several pipeline stages: the part of `recompute` of each stage.
  std::vector<std::chrono::nanoseconds> recompute_of_stages = {};
};

struct FrontPoint {
  Plan plan;
  PlanFigures figures;
  // The predicted step time. Includes the full time of copies to the host and back, as if no copy
  // overlapped with compute.
  std::chrono::nanoseconds step_time{};
  // The part of step_time that copies take. If all copies overlapped with compute, the step would
  // be faster by at most this time. Absent: no link is known, and step_time excludes copies.
  std::optional<std::chrono::nanoseconds> copy_time;
  // A lower bound of the step time for plans of the search space with at most this point's peak. A
  // plan outside the search space may be faster.
  std::chrono::nanoseconds step_time_bound{};
  std::chrono::nanoseconds step_time_gap() const { return step_time - step_time_bound; }
  // Returns the lower and upper bound of the step time (step_range.h), or nullopt if the time of
  // communication is unknown.
  std::optional<StepRange> range() const;
  // what the layers save, as text: "layers 0-5: keep all; 6-7: recompute all"
  std::string saves;
  std::vector<LayerRun> layers;  // the same information as data, one entry per layer group
  std::optional<MeasuredFigures> measured;
};

// Whether `a` is at least as good as `b` in peak and in step time.
inline bool is_no_worse(const FrontPoint& a, const FrontPoint& b) {
  return a.figures.peak <= b.figures.peak && a.step_time <= b.step_time;
}

inline PlanePoint on_plane(const FrontPoint& point) {
  return {point.figures.peak.count, point.step_time.count()};
}

// A plan that people use without a search, such as one of the usual policies.
struct Baseline {
  FrontPoint point;
  // true: some point of the front has at most the same peak and is at least as fast
  bool is_matched = false;
};

struct Front {
  Schedule schedule = Schedule::kOnDemand;
  std::vector<FrontPoint> points;  // sorted by ascending peak; step times descend
  std::size_t knee = 0;
  std::vector<Baseline> baselines;
  // number of plans that the search found; the points are a selection of these plans
  std::size_t num_plans_found = 0;
  // An upper bound on how much faster a plan that the search missed can be.
  std::chrono::nanoseconds time_gap{};
  Bytes transient_gap;
  FrontPoint nothing_recomputed;  // plan without regions, which also keeps gathered parameters
  // The plan of the policy `none`. Present only if blocks gather their parameters again in
  // backward; otherwise the plan equals nothing_recomputed.
  std::optional<FrontPoint> none;
  // Returns the point that the columns "vs none" compare with.
  const FrontPoint& reference() const { return none ? *none : nothing_recomputed; }
  // The hypervolume of the front. The reference point is just above two values: the peak of a step
  // that keeps everything, and the longest time of all points.
  double hypervolume = 0;
  double baseline_hypervolume = 0;  // hypervolume of all baselines together
  std::string verdict;  // one line that summarizes what checkpointing can do for the model
  std::optional<FrontMeasurement> measurement;
  // false: the search was stopped, and this front consists of the plans found before the stop
  bool is_complete = true;
};

// Returns the predicted step time that users see. `profiled` is the step_time of a point. If the
// front was measured, returns the calibrated time instead.
std::chrono::nanoseconds predicted_step(const Front& front, std::chrono::nanoseconds profiled);
inline std::chrono::nanoseconds predicted_step(const Front& front, const FrontPoint& point) {
  return predicted_step(front, point.step_time);
}

// Returns one line that summarizes what checkpointing can do for this model, with predicted times.
std::string verdict_of(const Front& front);

// Fills in the knee, the hypervolumes and the verdict of a front whose points are complete.
void summarize(Front& front);

}  // namespace rematch
