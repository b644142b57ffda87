// The files that commands read: reports, plans, profiles and links, each with its error in one
// line.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/flags/model_flags.h"
#include "policies/plan/plan.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"
#include "reports/record/report.h"

namespace rematch {

// Throws UsageError, with the file named, unless it holds links as rematch profile --links does.
// Says on stderr where they were measured on another device than the one that op times are of. For
// the start of a command.
void require_links(const std::string& path, const std::string& device);

NamedLinks read_links(const std::string& path);

// By the data sheet of `device`; of a step with collectives with the times that the links have,
// unless `path` is empty. Throws UsageError if they are of other ranks.
Profile sheet_profile(const Trace& trace, const std::string& device, const std::string& path);

// Throws UsageError, with the file or the difference named, unless it is a profile of `trace`.
Profile require_profile(const std::string& path, const Trace& trace);

// Throws UsageError if the file cannot be read, FormatError, with its path, if it is no report.
Report read_report(const std::string& path);

// All of them, in this order, on as many cores as there are: of large reports, reading is most of
// the work. Throws what read_report() throws for the first one that it cannot read.
std::vector<Report> read_reports(const std::vector<std::string>& paths);
std::pair<Report, Report> read_two_reports(const std::string& first, const std::string& second);

// Plans that the command line names: a plan file, or a point of a front, "front.json#3", or
// "front.json#simple", its plan of the form that every trainer can express.

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
