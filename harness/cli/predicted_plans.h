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

// A table, or with `as_json` a list. `profile`: where times are from; nothing: there are none.
void print_predictions(const std::vector<PredictedPlan>& plans, const Trace& trace,
                       const std::optional<Profile>& profile, const FrontSetting& setting,
                       bool as_json);

// By StepSimulator, from a trace alone. The plans are the trace's, and so are the profile's times.
std::vector<PredictedPlan> predict_from_trace(const Trace& trace, const std::vector<Plan>& plans,
                                              const std::vector<Schedule>& schedules,
                                              const FrontSetting& setting,
                                              const std::optional<Profile>& profile);

}  // namespace rematch
