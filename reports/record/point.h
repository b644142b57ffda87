// The measurements of one point, or the reason why it has none. An absent value was not measured.
// Each record is a struct, followed by its list of fields in the order of CSV columns. A new field
// also needs an entry in reports/schema/point.schema.json.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/json_fwd.h"
#include "policies/base/record_fields.h"
#include "policies/base/words.h"
#include "policies/trace/phase.h"
#include "reports/record/executed.h"
#include "reports/record/identity.h"
#include "reports/record/memory.h"
#include "reports/record/steps.h"
#include "reports/record/time.h"

namespace rematch {

// kRefused: the policy has no plan for the model.
enum class PointStatus : std::uint8_t { kOk, kOom, kTimeout, kCrash, kSkipped, kInvalid, kRefused };
template <>
inline constexpr std::array<std::string_view, 7> kWords<PointStatus> = {
    "ok", "oom", "timeout", "crash", "skipped", "invalid", "refused"};

// How a point ended if its status is not ok.
struct FailureRecord {
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::optional<Bytes> requested;  // size of the allocation that failed
  std::optional<Phase> phase;      // phase of the failing allocation; absent outside a step
  bool operator==(const FailureRecord&) const = default;
};

template <RecordOf<FailureRecord> Failure, class Visit>
void visit_fields(Failure& failure, Visit visit) {
  visit("exit_code", failure.exit_code);
  visit("signal", failure.signal);
  visit("requested_bytes", failure.requested);
  visit({"phase", kLater}, failure.phase);
}

struct PointRecord {
  PointIdentity identity;
  std::string policy;  // canonical spelling: "nth_last(2)"
  std::string device;  // "cpu", "meta", "cuda"
  PointStatus status = PointStatus::kOk;
  std::string reason;  // one line; empty if the status is ok
  std::optional<FailureRecord> failure;
  // number of warm-up steps before the first measurement
  std::optional<std::int64_t> warm_up_steps;
  std::optional<CountsRecord> counts;
  // counts that the plan predicts for the same number of steps
  std::optional<ClassCounts> predicted_counts;
  std::optional<MemoryRecord> memory;
  std::optional<TimeRecord> time;
  std::optional<KernelRecord> kernels;
  std::string kernels_reason;  // why `kernels` is absent although the device runs kernels
  std::optional<RanksRecord> ranks;
  std::vector<StepRecord> steps;
  std::optional<ParityRecord> parity;
  std::optional<EffectRecord> effect;
  std::optional<std::int64_t> step_flops;  // matmul and attention flops executed in a step
  std::optional<std::int64_t> recomputed_step_flops;  // part of step_flops that recompute executes
  std::optional<double> implied_flops_per_second;
  std::optional<double> most_flops_per_second;   // the device's peak rate for this dtype
  std::optional<double> sheet_flops_per_second;  // dense rate in the device's data sheet
  // MFU and HFU: the step's flops per second divided by sheet_flops_per_second. MFU leaves out
  // recomputed flops, and HFU includes them.
  std::optional<double> model_flops_utilization;
  std::optional<double> hardware_flops_utilization;
  // Members of a newer minor version, as a map from JSON pointer to JSON value. They are read, kept
  // and written unchanged.
  std::map<std::string, std::string> unknown;
};

// Returns whether the point's plan is bit-exact. If it is not, the point's bits may differ from the
// reference's, and only checks of the loss can judge the point.
inline bool is_exact(const PointRecord& point) {
  return !point.effect || point.effect->inexact_store.empty();
}

// Visits the fields whose JSON needs no special code. point_json.cpp handles the key, the counts
// and the fields that repeat values of the identity.
template <RecordOf<PointRecord> Point, class Visit>
void visit_fields(Point& point, Visit visit) {
  visit("policy", point.policy);
  visit("device", point.device);
  visit("status", point.status);
  visit({"reason", kNullIfEmpty | kNotRepeated}, point.reason);
  visit("failure", point.failure);
  visit("identity", point.identity);
  visit({"warm_up_steps", kLater | kOmitIfEmpty}, point.warm_up_steps);
  visit("predicted_counts", point.predicted_counts);
  visit("memory", point.memory);
  visit({"time", kNotRepeated}, point.time);
  visit({"kernels", kLater | kNotRepeated}, point.kernels);
  visit({"kernels_reason", kLater | kNullIfEmpty | kNotRepeated}, point.kernels_reason);
  visit({"ranks", kLater | kOmitIfEmpty}, point.ranks);
  visit("steps", point.steps);
  visit({"parity", kNotRepeated}, point.parity);
  visit("effect", point.effect);
  visit("executed_step_flops", point.step_flops);
  visit({"recomputed_step_flops", kLater}, point.recomputed_step_flops);
  visit({"implied_flops_per_second", kNotRepeated}, point.implied_flops_per_second);
  visit({"most_flops_per_second", kLater | kNotRepeated}, point.most_flops_per_second);
  visit({"sheet_flops_per_second", kLater | kNotRepeated}, point.sheet_flops_per_second);
  visit({"model_flops_utilization_ratio", kLater | kNotRepeated}, point.model_flops_utilization);
  visit({"hardware_flops_utilization_ratio", kLater | kNotRepeated},
        point.hardware_flops_utilization);
}

}  // namespace rematch
