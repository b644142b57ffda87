// A searched front as text and tables for a terminal or a pull request. Pages use the same
// sentences.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/search/front/front_json.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// Paths for the commands that the tables suggest.
struct FrontFiles {
  std::string front;  // the stored front; may be empty
  // The trace of a user's own model, which runs in Python. Empty if rematch runs the model.
  std::string own_trace;
};

std::string front_to_text(const FrontRecord& record, TableFormat format, std::size_t width,
                          const FrontFiles& files);

// Tables of points or of baselines: peak, step time, and both compared with policy `none`. `shown`
// holds the indices of the points. A row's detail describes the plan as short_saves() does. The
// last row of points_grid() is the simple plan, if the record has one. empty_points_grid() has
// columns but no rows.
table::Grid empty_points_grid(const FrontRecord& record);
table::Grid points_grid(const FrontRecord& record, const std::vector<std::size_t>& shown);
table::Grid baselines_grid(const FrontRecord& record);
std::vector<std::size_t> every_point(const Front& front);
// Returns one row of these tables, with `details` in its detail.
table::Row point_row(const FrontRecord& record, const std::string& name, const FrontPoint& point,
                     std::vector<std::string> details);

// Returns the schedule's name and a description: "whole_region: recomputes ...".
std::string schedule_words(Schedule schedule, const FrontRecord& record);

// Returns the row "simple" for the simple plan, with its distance from the front. A simple plan is
// short enough to type by hand. The record must have a simple plan.
table::Row simple_row(const FrontRecord& record);

// Returns the output of search --simple: the setting, the answer and the simple plan.
std::string simple_to_text(const FrontRecord& record, std::size_t width, const FrontFiles& files);

// Compares the predictions of points and baselines with their measurements.
table::Grid measured_grid(const Front& front);

// Compares the hypervolume of the front's own points with that of each family of baselines.
table::Grid families_grid(const FrontMeasurement& measurement);

// Returns a warning if calibrated times are far from the profile's, with advice; else empty.
std::string calibration_warning(const FrontRecord& record);

// Describes how well measurements agree with the prediction of a front: equal peaks, errors of the
// calibrated step times, and the A/A interval.
std::string measurement_words(const FrontMeasurement& measurement);

// Suggests the commands that describe and run the leading point.
std::string next_words(const FrontRecord& record, const FrontFiles& files);

// Returns the commands that describe and run a point, such as "rematch describe --plan
// front.json#4".
std::string describe_command(const std::string& point, const FrontFiles& files);
std::string run_command(const FrontRecord& record, const std::string& point,
                        const FrontFiles& files);

// Returns text such as "h100's ", or "the machine's " for a CPU.
std::string of_device(const FrontRecord& record);

// Returns text such as "the machine's 8.00 GiB" or "65.5 GiB (h100's 79.1 GiB less ...)". The
// record must have the device's memory.
std::string memory_of(const FrontRecord& record);
// Returns the budget and, with --reserve, also the original budget and the reserve.
std::string budget_of(const FrontRecord& record);
// Returns text such as "512 MiB for the driver and the CUDA context, 13.1 GiB for fragmentation".
std::string reserve_words(const MemoryReserve& reserve);

// Returns the recommended point: the search's answer if the user set a limit, else the fastest
// point within the device's memory.
std::optional<std::size_t> lead_point(const FrontRecord& record);

// The recommended plan: lead_point(), or a baseline or the simple plan if one of them is better.
// Absent if no plan can be recommended.
struct Lead {
  std::string name;  // such as "point 3", "baseline full" or "simple"; may be empty
  FrontPoint point;
};
std::optional<Lead> lead_of(const FrontRecord& record);

// Returns text such as "layers 0-5: keep ...", shortened if it is long.
std::string short_saves(const FrontPoint& point);

// Returns text such as "llama3_8b, bfloat16, batch 1, 8192 tokens, AdamW, on h100 (74.5 GiB)", and
// the rank if there are several ranks.
std::string setting_words(const FrontRecord& record);
// Returns text such as "; each of 8 ranks: tp=2,fsdp=4"; empty for one rank.
std::string ranks_words(const FrontRecord& record);

// Describes the fastest point within the requested limit, or within the device's memory: its
// number, its figures and what it keeps. The text says so if no point is within the limit. Empty if
// no limit is known.
std::string lead_words(const FrontRecord& record);

// Returns text such as "The knee, point 5: peak 41.6 GiB, step 785 ms". Omits what the point keeps.
std::string knee_words(const Front& front);

// Returns text such as "6 of 56 plans worth having".
std::string plans_words(const Front& front);

// Says among which plans the front is optimal, or how much better than the front other plans could
// be.
std::string exactness_words(const FrontRecord& record);

// Describes the speed of copies to the host, and how much of the copy time compute hides. Empty if
// no plan offloads.
std::string offload_words(const FrontRecord& record);

// Names the measured ceilings that determine the times of ops. Empty if there are none.
std::string ceilings_words(const FrontRecord& record);

std::string hypervolume_words(const Front& front);
// Describes how much of the points' step times is communication, and the step times if all
// communication is hidden. Empty if there is no communication or if it was not counted.
std::string communication_words(const FrontRecord& record);

}  // namespace rematch
