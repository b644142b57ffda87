// Predicts the memory and time of a comparison from its model's trace. Memory is exact: the bytes
// that the engine will hold at op boundaries. Time is a rough estimate, good enough to order
// comparisons, set time limits and tell users how long to wait.
#pragma once

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "harness/run/run_request.h"
#include "harness/sweep/comparison_plan.h"
#include "policies/base/rejected.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/trace/trace.h"

namespace rematch {

// A plan that a comparison measures.
struct MeasuredPlan {
  const Plan* plan = nullptr;
  Schedule schedule = Schedule::kOnDemand;
};

// Predicts the comparison of this request. `sheet` is the data sheet of the card; it is ignored
// unless the request's device is CUDA. Returns Rejected for a policy that does not apply to the
// model.
std::variant<ComparisonPrediction, Rejected> predict_comparison(
    const RunRequest& request, const std::vector<const Trace*>& stages, const DeviceSheet* sheet);

// Returns the time of the whole `rematch run` command for these plans. The first plan is the
// reference.
std::chrono::milliseconds predict_run_time(const std::vector<MeasuredPlan>& plans,
                                           const RunRequest& request,
                                           const std::vector<const Trace*>& stages,
                                           const DeviceSheet* sheet);

// Formats a duration in a unit that fits its length: "27 s", "12 min" or "30 h".
std::string length_text(std::chrono::milliseconds time);

}  // namespace rematch
