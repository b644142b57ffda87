// Fronts as files, "rematch.front/1.0": every point with its plan, what is predicted of it, and
// words that a person can read. Lossless.
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

// The best plan of the form that every trainer can express (simple_form.h) for what was asked, as
// every trainer runs it, whole_region, and how far it is from the front.
struct SimplePoint {
  FrontPoint point;
  Bytes more_peak;                       // than the front's lowest that is no slower
  std::chrono::nanoseconds more_time{};  // than the front's fastest that is no larger
};

// A front, what was searched and what was asked. Times of a roofline say so beside every number
// that is derived from them.
struct FrontRecord {
  std::string model;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype;
  std::optional<std::string> ops;  // "eager" or "fused"; absent in files that do not say
  std::string trace_sha256;
  std::optional<std::string> git_commit;  // of the tool that searched
  std::optional<bool> git_dirty;
  std::string device;
  // Of the times, as the profile has them (profile.h); empty: it does not say.
  std::string card;
  std::string attention_backend;
  std::optional<Bytes> device_memory;  // by its data sheet, or of the host that measured the front
  // What of that, or with --reserve of the budget, tensors cannot have. Absent: on a CPU, and in
  // files that do not say.
  std::optional<MemoryReserve> reserve;
  // The device's memory without it; nothing where that is not known.
  std::optional<Bytes> memory_for_tensors() const;
  ProfileSource time_source = ProfileSource::kMeasured;
  OptimizerModel optimizer = OptimizerModel::kAdamW;
  int world = 1;  // ranks of the step; figures are one rank's
  // How the model's step is split over them: "tp=2,fsdp=4". Empty beside several ranks: their trace
  // is of the whole model, and what a rank holds is an estimate (sharding.h) without communication.
  std::string layout;
  bool is_estimate_of_ranks() const { return world > 1 && layout.empty(); }
  std::string links;  // measured, that the times of collectives are from; empty: the source's own
  std::optional<HostLink> host_link;  // over which plans may offload; absent: they do not
  std::optional<Bytes> budget;
  std::optional<double> max_slowdown_ratio;
  // The answer for the budget or the slowdown; nothing if no plan fits or nothing was asked.
  std::optional<FrontPoint> answer;
  std::optional<SimplePoint> simple;
  Front front;
};

// The record of what was searched, still without question and front.
FrontRecord make_front_record(const Trace& trace, const Profile& profile, OptimizerModel optimizer);

Json front_to_json(const FrontRecord& record);

// Throws FormatError with the JSON path. Ignores unknown keys.
FrontRecord front_from_json(const Json& json);

}  // namespace rematch
