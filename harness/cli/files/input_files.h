// Reads the files that commands name: reports, plans, profiles and links. Each error is one line.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/flags/model_flags.h"
#include "policies/plan/given_plan.h"
#include "policies/plan/plan.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"
#include "reports/record/report.h"

namespace rematch {

// Throws UsageError if `path` was not written by rematch profile --links. The message names the
// file. Warns on stderr if the links were not measured on `device`, the device of the op times.
// Call this at the start of a command.
void require_links(const std::string& path, const std::string& device);

NamedLinks read_links(const std::string& path);
NamedCeilings read_ceilings(const std::string& path);

// Throws UsageError if `path` was not written by scripts/gpu/ceilings.py, if no data sheet is named
// `device`, or if the op times are from a profile. Warns on stderr if the ceilings were measured on
// another card than `device`. Call this at the start of a command.
void require_ceilings(const std::string& path, const std::string& device, bool has_profile);

// Files with measured figures that replace those of a data sheet. An empty path: the data sheet's.
struct RateFiles {
  std::string links;     // times of collectives
  std::string ceilings;  // rates of ops
};

// Returns op times from the data sheet of `device`. Throws UsageError if the measured links and the
// trace have different layouts of ranks.
Profile sheet_profile(const Trace& trace, const std::string& device, const RateFiles& files);

// Reads the profile in `path`. Throws UsageError if the file is not a profile, or is the profile of
// another trace.
Profile require_profile(const std::string& path, const Trace& trace);

// Throws UsageError if the file cannot be read. Throws FormatError, with the path, if the file is
// not a report.
Report read_report(const std::string& path);

// Returns all reports, in the order of `paths`. Reads on several cores. Throws what read_report()
// throws for the first unreadable file.
std::vector<Report> read_reports(const std::vector<std::string>& paths);
std::pair<Report, Report> read_two_reports(const std::string& first, const std::string& second);

// Reads a plan by the name that the command line gives. The name is a plan file, a point of a front
// ("front.json#3"), or the front's simple plan ("front.json#simple"). Throws UsageError. Throws
// FormatError if the file is malformed.
Plan require_plan(const std::string& name);

// Reads plans as require_plan() does. A plan from a front comes with its schedule.
GivenPlan require_given_plan(const std::string& name);
std::vector<GivenPlan> require_given_plans(const std::vector<std::string>& names);

// The settings of the search that made a front.
struct FrontSetting {
  // The number of ranks (--world) over which the search assumed the traced model to be sharded. 1
  // if the trace is already that of a single rank.
  int world = 1;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  Schedule schedule = Schedule::kOnDemand;
  bool operator==(const FrontSetting&) const = default;
};

// Returns the settings of the fronts that `names` refer to. Absent if all names are plan files.
// Throws UsageError if the settings of two fronts differ.
std::optional<FrontSetting> setting_of_fronts(const std::vector<std::string>& names);

// Throws UsageError if one of the comma-separated names is a plan, a front or a report instead of a
// policy. The message gives the value of --plan that works.
void reject_plans(const std::string& policies);

// Throws UsageError if these are the dimensions of a compiled graph. `user` is what would run the
// plan.
void reject_compiled_graph(const std::map<std::string, std::int64_t>& dimensions,
                           const std::string& user);

// Returns whether this model is built into rematch. Any other model is known only from a stored
// trace.
bool is_preset(const std::string& model);

// Returns the first plan, or null if `plans` is empty.
const Plan* first_of(const std::vector<GivenPlan>& plans);

// Returns the model that the flags name, or else the plan's model, if any. The plan's dimensions
// and dtype are then the defaults for the flags. Throws UsageError.
ModelSpec spec_for(const ModelFlags& flags, const Plan* plan);
// Like the function above. For a video model with only --tokens given, also prints the grid that
// was chosen.
ModelSpec model_for(const ModelFlags& flags, const Plan* plan);

// Throws UsageError unless the plan was made for this model. The message lists all differences.
void require_same_model(const Plan& plan, const std::string& model,
                        const std::map<std::string, std::int64_t>& dimensions,
                        const std::string& dtype);

// Throws UsageError unless the plan was made for this trace. `name` names the plan: a file, or a
// point of a front.
void require_same_trace(const Plan& plan, const std::string& name, const Trace& trace);

}  // namespace rematch
