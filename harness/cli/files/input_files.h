// Reads the files that commands name: reports, plans, profiles and links. Each error is one line.
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

// Throws UsageError, naming the file, unless it holds links from rematch profile --links. Warns on
// stderr if the links were measured on a device other than `device`, whose op times are used. Call
// it at the start of a command.
void require_links(const std::string& path, const std::string& device);

NamedLinks read_links(const std::string& path);

// Returns times from the data sheet of `device`. For a step with collectives, takes their times
// from the links in `path`, unless it is empty. Throws UsageError if the links are for other ranks.
Profile sheet_profile(const Trace& trace, const std::string& device, const std::string& path);

// Throws UsageError, naming the file or the difference, unless it is a profile of `trace`.
Profile require_profile(const std::string& path, const Trace& trace);

// Throws UsageError if the file cannot be read. Throws FormatError, with its path, if it is not a
// report.
Report read_report(const std::string& path);

// Returns all reports in this order. Reads on several cores, because reading takes most of the time
// for large reports. Throws what read_report() throws for the first unreadable file.
std::vector<Report> read_reports(const std::vector<std::string>& paths);
std::pair<Report, Report> read_two_reports(const std::string& first, const std::string& second);

// Reads a plan by the name that the command line gives. The name is a plan file, a point of a front
// ("front.json#3"), or the front's plan in a form that every trainer can express
// ("front.json#simple"). Throws UsageError. Throws FormatError if the file is malformed.
Plan require_plan(const std::string& name);

// The settings that a front's plans were searched for.
struct FrontSetting {
  // Ranks that the whole model's trace is estimated for. 1: the trace is already one rank's.
  int world = 1;
  OptimizerModel optimizer = OptimizerModel::kAdamW;
  Schedule schedule = Schedule::kOnDemand;
  bool operator==(const FrontSetting&) const = default;
};

// Returns the settings of the fronts whose points are named. Absent if all names are plan files.
// Throws UsageError if two fronts differ.
std::optional<FrontSetting> setting_of_fronts(const std::vector<std::string>& names);

// Returns whether `text` names a plan, as require_plan() reads it, rather than a policy.
bool names_plan(const std::string& text);

// Returns whether rematch can run this model. A stored trace may be of any model.
bool is_preset(const std::string& model);

// Returns the model that the flags name. If they name none, returns the first plan's model, with
// its dimensions and dtype as defaults for the flags. Prints a grid that follows from --tokens
// alone. Throws UsageError.
ModelSpec model_for(const ModelFlags& flags, const std::vector<Plan>& plans);

// Throws UsageError unless the plan was made for this model: "the plan says dtype float32, given is
// bfloat16; the plan says batch 1, given is 2".
void require_same_model(const Plan& plan, const std::string& model,
                        const std::map<std::string, std::int64_t>& dimensions,
                        const std::string& dtype);

// Throws UsageError unless the plan was made for this trace. `name` is its file or point of a
// front.
void require_same_trace(const Plan& plan, const std::string& name, const Trace& trace);

}  // namespace rematch
