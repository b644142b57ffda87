// Predicts the memory and time of a comparison from its model's trace. Memory is exact: the bytes
// that the engine will hold at op boundaries. Time is a rough estimate, good enough to order
// comparisons, set time limits and tell users how long to wait.
#pragma once

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "harness/sweep/comparison_plan.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/trace/trace.h"

namespace rematch {

// The arguments of `rematch run` on which a prediction depends.
struct RunWords {
  int num_steps = 10;
  int num_rounds = 8;  // maximum
  bool has_optimizer = true;
  bool on_cuda = false;
  bool exact_passes = true;  // false for --times-only
  NoEffect no_effect = NoEffect::kReject;
  const DeviceSheet* sheet = nullptr;  // data sheet of the card; null for a CPU
};

// A plan that a comparison measures.
struct MeasuredPlan {
  const Plan* plan = nullptr;
  Schedule schedule = Schedule::kOnDemand;
};

// Never throws: the arguments are checked by other code.
RunWords run_words(const std::vector<std::string>& words, const DeviceSheet* sheet);

// Returns Rejected for a policy that does not apply to the model.
std::variant<ComparisonPrediction, Rejected> predict_comparison(const PlannedComparison& comparison,
                                                                const Trace& trace,
                                                                const RunWords& run);

// Returns the time of the whole `rematch run` command for these plans, of which the first is the
// reference. The reference also runs `num_repeats` times to measure the noise of its loss.
std::chrono::milliseconds predict_run_time(const std::vector<MeasuredPlan>& plans, int num_repeats,
                                           const Trace& trace, const RunWords& run);

// Formats a duration in a unit that fits its length: "27 s", "12 min" or "30 h".
std::string length_text(std::chrono::milliseconds time);

}  // namespace rematch
