// Finds the load, such as the batch size, at which a device processes the most tokens per second.
// The record and its file, "rematch.loads/1.0", contain the range of loads, the fastest plan of
// every tried load, and the result. A new field needs a member, a line in the list below its
// struct, and an entry in reports/schema/loads.schema.json.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/json_fwd.h"
#include "policies/base/record_fields.h"
#include "policies/plan/plan.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/search/front/front_json.h"
#include "policies/trace/profile.h"

namespace rematch {

// A load and the fastest plan for it within the budget. The plan's figures are absent if no plan
// fits.
struct LoadPlan {
  std::int64_t load = 0;
  // The rates at which tokens are processed, by one rank and by all ranks together.
  std::optional<double> tokens_per_second;
  std::optional<double> tokens_per_second_all_ranks;
  std::optional<std::chrono::nanoseconds> step_time;
  std::optional<Bytes> peak;
  std::optional<std::int64_t> num_recomputed;  // ops
  std::string saves;
};

template <RecordOf<LoadPlan> Plan, class Visit>
void visit_fields(Plan& plan, Visit visit) {
  visit("load", plan.load);
  visit("predicted_tokens_per_second", plan.tokens_per_second);
  visit("predicted_tokens_per_second_all_ranks", plan.tokens_per_second_all_ranks);
  visit("predicted_step_time_ns", plan.step_time);
  visit("predicted_peak_allocated_bytes", plan.peak);
  visit("predicted_recomputed_ops", plan.num_recomputed);
  visit({"saves", kNullIfEmpty}, plan.saves);
}

struct LoadsRecord {
  std::string maximized = "tokens_per_second";
  // false: the search was stopped, so `largest` and `best` are the best of the tried loads
  bool is_complete = true;
  std::string model;
  std::map<std::string, std::int64_t> dimensions;  // dimensions of the smallest load
  std::string dtype;
  std::string device;
  ProfileSource time_source = ProfileSource::kRoofline;
  // measured links that determine the times of collectives; empty: the data sheet determines them
  std::string links;
  // measured ceilings that determine the times of ops; empty: the data sheet determines them
  std::string ceilings;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  Schedule schedule = Schedule::kOnDemand;
  int world = 1;        // number of ranks; figures are for one rank
  int num_batches = 1;  // batches that the ranks process in parallel
  Bytes budget;
  std::string dimension;   // name of the dimension that varies: "batch", "tokens"
  std::int64_t least = 0;  // lower end of the requested range
  std::int64_t most = 0;
  std::optional<std::int64_t> largest;  // largest load that fits; absent: no load of the range fits
  std::optional<std::int64_t> best;     // load that processes the most tokens per second
  std::optional<std::string> git_commit;
  std::optional<bool> git_dirty;
  std::vector<LoadPlan> tried;  // sorted by load
};

template <RecordOf<LoadsRecord> Record, class Visit>
void visit_fields(Record& record, Visit visit) {
  visit("maximized", record.maximized);
  visit("complete", record.is_complete);
  visit("model", record.model);
  visit("dimensions", record.dimensions);
  visit("dtype", record.dtype);
  visit("device", record.device);
  visit("time_source", record.time_source);
  visit({"links", kLater | kOmitIfEmpty}, record.links);
  visit({"ceilings", kLater | kOmitIfEmpty}, record.ceilings);
  visit("optimizer", record.optimizer);
  visit("schedule", record.schedule);
  visit("world", record.world);
  visit("num_batches", record.num_batches);
  visit("budget_bytes", record.budget);
  visit("dimension", record.dimension);
  visit("least", record.least);
  visit("most", record.most);
  visit("largest_that_fits", record.largest);
  visit("best", record.best);
  visit("git_commit", record.git_commit);
  visit("git_dirty", record.git_dirty);
  visit("tried", record.tried);
}

// Returns the fastest plan of the load within the budget, or nullopt if no plan fits.
using PlanOfLoad = std::function<std::optional<LoadPlan>(std::int64_t load)>;

// Note [Which loads are tried] Bisection finds the largest load that fits, because a larger load is
// assumed to need more memory. To find the best load, the search tries evenly spaced loads up to
// the largest that fits. It then repeats this between the neighbours of the best load so far, until
// no loads remain between them. If more than kLoadsAtOnce loads fit, it may miss a best load
// between two worse loads.
inline constexpr std::int64_t kLoadsAtOnce = 16;
// Fills in `tried`, `largest` and `best` for the record's range. Among equally fast loads, the
// smallest is the best. Once `is_stopped` returns true, tries no more loads and ignores the result
// of the latest load.
void try_loads(const PlanOfLoad& plan_of, const std::function<bool()>& is_stopped,
               LoadsRecord& record);

Json loads_to_json(const LoadsRecord& record);

// Throws FormatError with the JSON path. Ignores unknown keys.
LoadsRecord loads_from_json(const Json& json);

}  // namespace rematch
