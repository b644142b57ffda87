// Plans that the command line names: a plan file, or a point of a front, "front.json#3", or
// "front.json#simple", its plan of the form that every trainer can express.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cli/flags/model_flags.h"
#include "policies/plan/plan.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// Throws UsageError, or FormatError where the file is at fault.
Plan require_plan(const std::string& name);

// The settings for which a front's plans were searched.
struct FrontSetting {
  int world = 1;  // ranks that the whole model's trace is estimated for; 1: the trace is a rank's
  OptimizerModel optimizer = OptimizerModel::kAdamW;
  Schedule schedule = Schedule::kOnDemand;
  bool operator==(const FrontSetting&) const = default;
};

// The settings of the fronts whose points are named; nothing if all are plan files. Throws
// UsageError where two fronts differ.
std::optional<FrontSetting> setting_of_fronts(const std::vector<std::string>& names);

// Is it such a name, and no policy?
bool names_plan(const std::string& text);

// Is it a model that rematch runs? A stored trace may be of any.
bool is_preset(const std::string& model);

// The model that the flags name; if they name none, that of the first plan, whose dimensions and
// dtype the flags then change. Says a grid that --tokens alone picked. Throws UsageError.
ModelSpec model_for(const ModelFlags& flags, const std::vector<Plan>& plans);

// "plan says dtype float32, given bfloat16; plan says batch 1, given 2": throws UsageError unless
// the plan was made for this model.
void require_same_model(const Plan& plan, const std::string& model,
                        const std::map<std::string, std::int64_t>& dimensions,
                        const std::string& dtype);

// Throws UsageError unless the plan, of that file or point of a front, was made for this trace.
void require_same_trace(const Plan& plan, const std::string& name, const Trace& trace);

}  // namespace rematch
