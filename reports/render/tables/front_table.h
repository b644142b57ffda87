// A searched front as lines and tables for a terminal or a pull request. Pages use its sentences
// too.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/search/front/front_json.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// Files that appear as arguments in the commands that the tables suggest.
struct FrontFiles {
  std::string front;  // the stored front; may be empty
  // The trace of a user's own model, which Python runs. Empty if rematch runs the model.
  std::string own_trace;
};

std::string front_to_text(const FrontRecord& record, TableFormat format, std::size_t width,
                          const FrontFiles& files);

// Tables of points or of baselines: peak, step time, and both compared with policy `none`. `shown`
// holds the indices of the points. The detail of a point's row contains its plan as short_saves()
// describes it. If the record has a simple plan, the last row of points_grid() shows it.
// empty_points_grid() returns a table with columns but without rows.
table::Grid empty_points_grid(const FrontRecord& record);
table::Grid points_grid(const FrontRecord& record, const std::vector<std::size_t>& shown);
table::Grid baselines_grid(const FrontRecord& record);
std::vector<std::size_t> every_point(const Front& front);
// Returns one row of these tables, whose detail contains `details`.
table::Row point_row(const FrontRecord& record, const std::string& name, const FrontPoint& point,
                     std::vector<std::string> details);

// Returns the schedule's name and what it does: "whole_region: recomputes ...".
std::string schedule_words(Schedule schedule);

// Returns the row of the simple plan, named "simple", with its distance from the front. A simple
// plan is short enough to type by hand. The record must have a simple plan.
table::Row simple_row(const FrontRecord& record);

// Returns the setting, the answer and the simple plan: the output of search --simple.
std::string simple_to_text(const FrontRecord& record, std::size_t width, const FrontFiles& files);

// Compares the points and baselines that were run: predicted against measured.
table::Grid measured_grid(const Front& front);

// Compares the hypervolume of the front's own points with the hypervolume of each family of
// baselines.
table::Grid families_grid(const FrontMeasurement& measurement);

// Returns a warning if calibrated times are far from the profile's, with advice; else empty.
std::string calibration_warning(const FrontRecord& record);

// Describes how the measurement of a front agrees with its prediction: equal peaks, errors of the
// calibrated step times, and the A/A interval.
std::string measurement_words(const FrontMeasurement& measurement);

// Suggests the commands that describe and run the leading point.
std::string next_words(const FrontRecord& record, const FrontFiles& files);

// Returns the command that describes a point, "rematch describe --plan front.json#4", and the
// command that runs it.
std::string describe_command(const std::string& point, const FrontFiles& files);
std::string run_command(const std::string& point, const FrontFiles& files);

// Returns "h100's ", or "the machine's " for a CPU.
std::string of_device(const FrontRecord& record);

// Returns text such as "the machine's 8.00 GiB" or "65.5 GiB (h100's 79.1 GiB less ...)". The
// record must have the device's memory.
std::string memory_of(const FrontRecord& record);
// Returns the budget; with --reserve also the original budget and the reserve.
std::string budget_of(const FrontRecord& record);
// Returns text such as "512 MiB for the driver and the CUDA context, 13.1 GiB for fragmentation".
std::string reserve_words(const MemoryReserve& reserve);

// Returns the point that a reader should look at first: the search's answer if the user set a
// limit, else the fastest point within the device's memory.
std::optional<std::size_t> lead_point(const FrontRecord& record);

// The plan of the headline, and its name: "point 3", "baseline full" or "simple". If a baseline or
// the simple plan beats the leading point, the headline shows it instead, so that no row of the
// output beats the headline. Absent if there is neither a leading point nor an answer.
struct Lead {
  std::string name;  // empty if the answer is not a point of the front
  FrontPoint point;
};
std::optional<Lead> lead_of(const FrontRecord& record);

// Returns the index of the fastest point whose peak is at most `limit`; absent if all peaks are
// larger.
std::optional<std::size_t> fastest_within(const Front& front, Bytes limit);

// Returns text such as "layers 0-5: keep ...", shortened if it is long. The front's file has the
// full text.
std::string short_saves(const FrontPoint& point);

// Returns text such as "llama3_8b, bfloat16, batch 1, 8192 tokens, AdamW, on h100 (74.5 GiB)", and
// the rank if there are several ranks.
std::string setting_words(const FrontRecord& record);
// Returns text such as "; each of 8 ranks: tp=2,fsdp=4"; empty for one rank.
std::string ranks_words(const FrontRecord& record);

// Describes the fastest point within the requested limit, or within the device's memory: its
// number, its figures and what it keeps. If no point is within the limit, the text says that. Empty
// if no limit is known.
std::string lead_words(const FrontRecord& record);

// Returns text such as "The knee, point 5: peak 41.6 GiB, step 785 ms". The text omits what the
// point keeps; the front's file describes it.
std::string knee_words(const Front& front);

// Returns text such as "6 of 56 plans worth having".
std::string plans_words(const Front& front);

// Says for which set of plans the front is optimal, or by how much plans that were not tried could
// be better.
std::string exactness_words(const FrontRecord& record);

// Describes how fast the link to the host copies the values that plans offload, and how much of the
// copy time compute hides. Empty if plans do not offload.
std::string offload_words(const FrontRecord& record);

std::string hypervolume_words(const Front& front);
// Says how much of the points' step times is communication, and how short steps become if
// communication is hidden. Empty if there is no communication or if it was not counted.
std::string communication_words(const FrontRecord& record);

}  // namespace rematch
