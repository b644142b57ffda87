// Fronts as files, "rematch.front/1.0". A file lists every point with its plan, its predictions,
// and text for people. Nothing is lost.
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

// The best plan that every trainer can express (simple_form.h) for the user's question. It runs
// under whole_region, as every trainer runs it. Also states its distance from the front.
struct SimplePoint {
  FrontPoint point;
  Bytes more_peak;  // more than the lowest peak of the front at no more time
  // More than the fastest step of the front at no higher peak.
  std::chrono::nanoseconds more_time{};
};

// A front, with what was searched and what was asked. Output marks every number that is derived
// from roofline times.
struct FrontRecord {
  std::string model;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype;
  std::optional<std::string> ops;  // "eager" or "fused"; absent if the file does not say
  std::string trace_sha256;
  std::optional<std::string> git_commit;  // commit of the tool that searched
  std::optional<bool> git_dirty;
  std::string device;
  // The card and attention kernel of the times, from the profile (profile.h). Empty: the profile
  // does not say.
  std::string card;
  std::string attention_backend;
  // From its data sheet, or of the host that measured the front.
  std::optional<Bytes> device_memory;
  // The part of device_memory that tensors cannot use; with --reserve, the part of the budget.
  // Absent on a CPU and in files that do not say.
  std::optional<MemoryReserve> reserve;
  // Returns the device's memory minus the reserve, or nullopt if the memory is unknown.
  std::optional<Bytes> memory_for_tensors() const;
  ProfileSource time_source = ProfileSource::kMeasured;
  OptimizerModel optimizer = OptimizerModel::kAdamW;
  int world = 1;  // number of ranks; figures are for one rank
  // How the model's step is split over the ranks: "tp=2,fsdp=4". If it is empty with several ranks,
  // the trace is of the whole model. The bytes of a rank are then an estimate (sharding.h), without
  // communication.
  std::string layout;
  bool is_estimate_of_ranks() const { return world > 1 && layout.empty(); }
  std::string links;  // measured links of the collectives' times; empty: the source's own link
  std::optional<HostLink> host_link;  // the link over which plans may offload; absent: they do not
  std::optional<Bytes> budget;
  std::optional<double> max_slowdown_ratio;
  // The answer for the budget or the slowdown. Absent: no plan fits, or nothing was asked.
  std::optional<FrontPoint> answer;
  std::optional<SimplePoint> simple;
  Front front;
};

// Makes the record of what was searched, without the question and the front.
FrontRecord make_front_record(const Trace& trace, const Profile& profile, OptimizerModel optimizer);

Json front_to_json(const FrontRecord& record);

// Throws FormatError with the JSON path. Ignores unknown keys.
FrontRecord front_from_json(const Json& json);

}  // namespace rematch
