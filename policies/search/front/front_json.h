// Reads and writes fronts as files, "rematch.front/1.0". A file contains every point with its plan,
// its predictions, and text for people. Reading a written file restores the front completely.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/json_fwd.h"
#include "policies/plan/plan.h"
#include "policies/predict/device/reserve.h"
#include "policies/search/front/front.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// The best plan of a simple form (simple_form.h) for the user's limit, compared with the front. Its
// schedule is whole_region, because every trainer uses this schedule.
struct SimplePoint {
  FrontPoint point;
  Bytes more_peak;  // the plan's peak minus the lowest peak among points of the front that are no
                    // slower
  // The plan's step time minus the fastest step time among points of the front whose peak is no
  // higher.
  std::chrono::nanoseconds more_time{};
};

// A front, with the searched model and the user's limits.
struct FrontRecord {
  std::string model;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype;
  std::optional<std::string> ops;  // "eager" or "fused"; absent if the file does not say
  std::string trace_sha256;
  std::optional<std::string> git_commit;  // commit of the program that searched
  std::optional<bool> git_dirty;
  std::string date;       // day of the search in UTC, "2026-11-28"; empty if the file does not say
  std::string reproduce;  // the command line of the search; empty if the file does not say
  std::string device;
  // The card and the attention kernel with which the times were measured, from the profile
  // (profile.h). Empty: the profile does not say.
  std::string card;
  std::string attention_backend;
  // The memory of the device according to its data sheet, or according to the host that measured
  // the front.
  std::optional<Bytes> device_memory;
  // The part of device_memory that tensors cannot use. Absent on a CPU, and if the file does not
  // say.
  std::optional<MemoryReserve> reserve;
  // Returns the device's memory minus the reserve, or nullopt if the memory is unknown.
  std::optional<Bytes> memory_for_tensors() const;
  ProfileSource time_source = ProfileSource::kMeasured;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  int world = 1;  // number of ranks; figures are for one rank
  // How the model's step is split over the ranks: "tp=2,fsdp=4". If there are several ranks and
  // `layout` is empty, the trace is of the whole model, and a rank's bytes are only estimated
  // (sharding.h).
  std::string layout;
  bool is_estimate_of_ranks() const { return world > 1 && layout.empty(); }
  // measured links that determine the times of collectives; empty: the time source determines them
  std::string links;
  // measured ceilings that determine the times of ops; empty: the time source determines them
  std::string ceilings;
  // link over which plans may offload; absent: plans do not offload
  std::optional<HostLink> host_link;
  std::optional<Bytes> budget;
  std::optional<double> max_slowdown_ratio;
  // The best plan within the user's budget or slowdown. Absent if no plan fits, or if the user gave
  // neither.
  std::optional<FrontPoint> answer;
  std::optional<SimplePoint> simple;
  Front front;
};

// Makes a record that describes the searched model. The caller adds the user's limits and the
// front.
FrontRecord make_front_record(const Trace& trace, const Profile& profile, OptimizerKind optimizer);

Json front_to_json(const FrontRecord& record);

// Throws FormatError with the JSON path. Ignores unknown keys.
FrontRecord front_from_json(const Json& json);

}  // namespace rematch
