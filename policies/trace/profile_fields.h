// Lists the fields of a profile's file in order. A new field needs a member in profile.h, a line
// here, and an entry in reports/schema/profile.schema.json. Private to this folder and to the test
// that compares the list with the schema.
#pragma once

#include "policies/base/field_value.h"
#include "policies/trace/profile.h"
#include "policies/trace/profile_json.h"

namespace rematch {

// The times of all ops in a span or in a whole pass. Includes bytes and kernels if they were
// measured.
struct OpFigures {
  std::vector<Profile::Duration> times;
  std::optional<std::vector<Bytes>> temporary;
  std::optional<std::vector<std::int32_t>> kernels = std::nullopt;
  bool operator==(const OpFigures&) const = default;
};

void read_value(const JsonField& field, OpFigures& figures);

template <RecordOf<OpFigures> Figures, class Visit>
void visit_fields(Figures& figures, Visit visit) {
  visit("times_ns", figures.times);
  visit("temporary_bytes", figures.temporary);
  visit({"kernels", kLater | kOmitIfEmpty}, figures.kernels);
}

// Lists all fields except "forward" and "backward", which hold the figures of the ops.
template <RecordOf<Profile> AProfile, class Visit>
void visit_fields(AProfile& profile, Visit visit) {
  visit("model", profile.model);
  visit("dimensions", profile.dimensions);
  visit("dtype", profile.dtype);
  visit({"trace_sha256", kLater}, profile.trace_sha256);
  visit({"ops_sha256", kLater | kOmitIfEmpty}, profile.ops_sha256);
  visit("device", profile.device);
  visit({"card", kLater | kOmitIfEmpty}, profile.card);
  visit({"attention_backend", kLater | kOmitIfEmpty}, profile.attention_backend);
  visit({"repeatable_bits", kLater | kOmitIfEmpty}, profile.repeatable_bits);
  visit("source", profile.source);
  visit("num_steps", profile.num_steps);
  visit({"measured_layers", kLater | kOmitIfEmpty}, profile.measured_layers);
  visit("optimizer_ns", profile.optimizer);
  visit({"gradient_sums_ns", kLater | kOmitIfEmpty}, profile.gradient_sums);
  visit({"links", kLater | kOmitIfEmpty}, profile.links);
  visit({"ceilings", kLater | kOmitIfEmpty}, profile.ceilings);
  visit("forward_between_ops_ns", profile.forward_between_ops);
  visit("backward_between_ops_ns", profile.backward_between_ops);
}

}  // namespace rematch
