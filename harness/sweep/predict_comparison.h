// How much memory and time a comparison will take, from its model's trace: byte for byte what the
// engine will hold at op boundaries, and a rough guess of the time, for its order and its limits.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "harness/sweep/comparison_plan.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/plan.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/trace/trace.h"

namespace rematch {

// The words of `rematch run` on which a prediction depends.
struct RunWords {
  int num_steps = 10;
  int num_rounds = 8;  // at most
  bool has_optimizer = true;
  bool on_cuda = false;
  NoEffect no_effect = NoEffect::kReject;
  const DeviceSheet* sheet = nullptr;  // of the card; null: a CPU's
};
// Throws nothing: words that `rematch run` would not take are refused elsewhere.
RunWords run_words(const std::vector<std::string>& words, const DeviceSheet* sheet);

// Rejected: a policy that the model does not take.
std::variant<ComparisonPrediction, Rejected> predict_comparison(const PlannedComparison& comparison,
                                                                const Trace& trace,
                                                                const RunWords& run);

}  // namespace rematch
