// A searched front as lines and tables for a terminal or a pull request, and in sentences, which
// the page has as well.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/search/front/front_json.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// The arguments of the commands that take a front's points.
struct FrontFiles {
  std::string front;      // where it is stored; empty: nowhere
  std::string own_trace;  // of a user's own model, which Python runs; empty: rematch runs the model
};

std::string front_to_text(const FrontRecord& record, TableFormat format, std::size_t width,
                          const FrontFiles& files);

// Its points, by their indices, and the baselines: peak, step time, and both compared with none.
// Words of plans are those of short_saves(), in the line below a row.
table::Grid points_grid(const FrontRecord& record, const std::vector<std::size_t>& shown);
table::Grid baselines_grid(const FrontRecord& record);
std::vector<std::size_t> every_point(const Front& front);
// One row of these tables; `details` stand below it.
table::Row point_row(const FrontRecord& record, const std::string& name, const FrontPoint& point,
                     std::vector<std::string> details);

// The plan of a front that a person can type, beside the front's own answer.

// "whole_region: torch.utils.checkpoint's, which every PyTorch trainer has".
std::string schedule_words(Schedule schedule);

// The row beside the points of a front, with its distance to it: "simple". The record has one.
table::Row simple_row(const FrontRecord& record);

// Setting, answer and simple plan alone: what search --simple prints.
std::string simple_to_text(const FrontRecord& record, std::size_t width, const FrontFiles& files);

// The measurements of a searched front, beside the predictions: as tables and sentences.

// Points and baselines that were run: predicted against measured.
table::Grid measured_grid(const Front& front);

// Hypervolume of the front's own points beside that of each family of baselines.
table::Grid families_grid(const FrontMeasurement& measurement);

// A warning that calibrated times are far from the profile's, and what to do; else empty.
std::string calibration_warning(const FrontRecord& record);

// Describes a measured front: equal peaks, errors of the calibrated step times, the A/A interval.
std::string measurement_words(const FrontMeasurement& measurement);

// Sentences: its setting, the point that leads and why, the knee, how exact the search was.

// "rematch describe --plan front.json#4", and what runs that point.
std::string describe_command(const std::string& point, const FrontFiles& files);
std::string run_command(const std::string& point, const FrontFiles& files);

// "cpu's 8.00 GiB", "65.5 GiB (h100's 79.1 GiB less ...)". The record has the device's memory.
std::string memory_of(const FrontRecord& record);
// The budget; with --reserve what it was and what was taken off.
std::string budget_of(const FrontRecord& record);
// "512 MiB for the driver and the CUDA context, 13.1 GiB for fragmentation"
std::string reserve_words(const MemoryReserve& reserve);

// The point that a reader is to look at first: of what was asked, or the fastest within the
// device's memory.
std::optional<std::size_t> lead_point(const FrontRecord& record);

// The index of the fastest point whose peak is at most `limit`; nothing if all are larger.
std::optional<std::size_t> fastest_within(const Front& front, Bytes limit);

// "layers 0-5: keep ...", cut where it is long; the front's file has all of it.
std::string short_saves(const FrontPoint& point);

// "llama3_8b, bfloat16, batch 1, 8192 tokens, AdamW, on h100 (74.5 GiB)", and which rank of how
// many.
std::string setting_words(const FrontRecord& record);
// "; each of 8 ranks: tp=2,fsdp=4"; empty for one rank.
std::string ranks_words(const FrontRecord& record);

// The fastest point within what was asked for, or within the device's memory: its number, figures
// and what it keeps; or that there is none. Empty if no limit is known.
std::string lead_words(const FrontRecord& record);

// "The knee, point 5: peak 41.6 GiB, step 785 ms". What it keeps is in the file.
std::string knee_words(const Front& front);

// "6 of 56 plans worth having".
std::string plans_words(const Front& front);

// The space that the front is exact over, or the better plans that may exist.
std::string exactness_words(const FrontRecord& record);

// The link that copies of offloading plans were priced with. Empty: plans do not offload.
std::string offload_words(const FrontRecord& record);

std::string hypervolume_words(const Front& front);
// How much of the points' step times is communication, and what the steps take at least if it
// hides. Empty where there is none, or nobody counted it.
std::string communication_words(const FrontRecord& record);

}  // namespace rematch
