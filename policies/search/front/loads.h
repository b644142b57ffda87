// Which load of a range a device is best used with, as a record and a file, "rematch.loads/1.0":
// what was asked, the fastest plan of every load that was tried, and the answers. Lossless.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/json_fwd.h"
#include "policies/plan/plan.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/search/front/largest_load.h"
#include "policies/trace/profile.h"

namespace rematch {

// The fastest plan of a load within the budget; absent: none fits.
struct LoadPlan {
  std::int64_t load = 0;
  std::optional<double>
      tokens_per_second;  // of one batch: of a rank, or of the ranks that share it
  std::optional<double> tokens_per_second_all_ranks;
  std::optional<std::chrono::nanoseconds> step_time;
  std::optional<Bytes> peak;
  std::optional<std::int64_t> num_recomputed;  // ops
  std::string saves;
};

struct LoadsRecord {
  std::string maximized = "tokens_per_second";
  bool is_complete = true;  // false: stopped, and the answers are those of `tried`
  std::string model;
  std::map<std::string, std::int64_t> dimensions;  // of the smallest load
  std::string dtype;
  std::string device;
  ProfileSource time_source = ProfileSource::kRoofline;
  std::string links;  // measured, that the times of collectives are from; empty: the sheet's link
  OptimizerModel optimizer = OptimizerModel::kAdamW;
  Schedule schedule = Schedule::kOnDemand;
  int world = 1;        // ranks; figures are one rank's
  int num_batches = 1;  // that they train on side by side
  Bytes budget;
  std::string dimension;   // "batch", "tokens"
  std::int64_t least = 0;  // the range that was asked for
  std::int64_t most = 0;
  std::optional<std::int64_t> largest;  // that fits; absent: not even the least does
  std::optional<std::int64_t> best;     // most tokens a second
  std::optional<std::string> git_commit;
  std::optional<bool> git_dirty;
  std::vector<LoadPlan> tried;  // by load
};

// Puts what was found into the record. `plans`: of the loads that fit.
void add_loads(const LargestLoad& found, std::map<std::int64_t, LoadPlan> plans,
               LoadsRecord& record);

Json loads_to_json(const LoadsRecord& record);

// Throws FormatError with the JSON path. Ignores unknown keys.
LoadsRecord loads_from_json(const Json& json);

}  // namespace rematch
