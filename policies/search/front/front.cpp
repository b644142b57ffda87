#include "policies/search/front/front.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "policies/search/front/hypervolume.h"

namespace rematch {

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

}  // namespace rematch
