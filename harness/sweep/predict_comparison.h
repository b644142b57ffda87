// Predicts the memory and time of a comparison from its model's trace. Memory is exact: the bytes
// that the engine will hold at op boundaries. Time is a rough estimate, used to order comparisons
// and to compare them with time limits.
#pragma once

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
  NoEffect no_effect = NoEffect::kReject;
  const DeviceSheet* sheet = nullptr;  // data sheet of the card; null for a CPU
};
// Never throws. Other code checks for arguments that `rematch run` rejects.
RunWords run_words(const std::vector<std::string>& words, const DeviceSheet* sheet);

// Returns Rejected for a policy that does not apply to the model.
std::variant<ComparisonPrediction, Rejected> predict_comparison(const PlannedComparison& comparison,
                                                                const Trace& trace,
                                                                const RunWords& run);

}  // namespace rematch
