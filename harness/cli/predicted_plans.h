// The output of rematch predict: plans with executed ops and memory, wherever they were predicted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/files/input_files.h"
#include "policies/plan/plan.h"
#include "policies/predict/step/counts.h"
#include "policies/predict/step/step_range.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"
#include "reports/record/point.h"

namespace rematch {

struct PredictedPlan {
  std::string policy;
  Schedule schedule = Schedule::kOnDemand;
  bool has_regions = false;  // without one there is no schedule to speak of
  std::string plan_sha256;
  CountsRecord counts;  // of one step
  MemoryRecord memory;
  Traffic traffic;
  std::optional<StepRange> range;  // with times
};

// Which step it is, for the line above the table.
struct PredictedStepOf {
  std::string model;
  std::string dtype;
  std::map<std::string, std::int64_t> dimensions;
  const Profile* profile = nullptr;  // where times are from; null: there are none
};

inline PredictedStepOf step_of(const Trace& trace, const std::optional<Profile>& profile) {
  return {trace.model, trace.dtype, trace.dimensions, profile ? &*profile : nullptr};
}

// A table, or with `as_json` a list.
void print_predictions(const std::vector<PredictedPlan>& plans, const PredictedStepOf& step,
                       const FrontSetting& setting, bool as_json);

// By StepSimulator, from a trace alone. The plans are the trace's. Times are `profile`'s, the
// trace's own; null: none.
std::vector<PredictedPlan> predict_from_trace(const Trace& trace, const std::vector<Plan>& plans,
                                              const std::vector<Schedule>& schedules,
                                              const FrontSetting& setting, const Profile* profile);

}  // namespace rematch
