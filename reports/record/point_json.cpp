#include <algorithm>
#include <array>

#include "policies/trace/canonical_json.h"
#include "policies/trace/json.h"
#include "reports/record/by_phase.h"
#include "reports/record/field_value.h"
#include "reports/record/parts_json.h"

namespace rematch {
namespace {

constexpr std::array kStatuses = {PointStatus::kOk,      PointStatus::kOom,
                                  PointStatus::kTimeout, PointStatus::kCrash,
                                  PointStatus::kSkipped, PointStatus::kInvalid};

Json failure_to_json(const FailureRecord& failure) {
  return {{"exit_code", to_value(failure.exit_code)},
          {"signal", to_value(failure.signal)},
          {"requested_bytes", to_value(failure.requested)},
          {"phase", failure.phase ? Json(to_string(*failure.phase)) : Json(nullptr)}};
}

FailureRecord failure_from_json(const JsonField& field) {
  FailureRecord failure;
  read_member(field, "exit_code", failure.exit_code);
  read_member(field, "signal", failure.signal);
  read_member(field, "requested_bytes", failure.requested);
  if (const auto phase = field.find("phase")) {
    if (!phase->is_null()) failure.phase = phase_from_string(phase->string());
  }
  return failure;
}

// The fields that readers look for first are repeated at the top of a point, with equal values.
constexpr std::array kRepeated = {"model", "plan_sha256", "schedule"};

void require_consistent(const JsonField& field) {
  const Json& identity = field.at("identity").json();
  for (const char* name : kRepeated) {
    if (field.at(name).json() != identity.at(name)) {
      field.at(name).fail("differs from the one in \"identity\"");
    }
  }
  if (field.at("key").string() != canonical_sha256(identity)) {
    field.at("key").fail("is not the hash of \"identity\"; was the file edited?");
  }
}

void write_measures(Json& json, const PointRecord& point) {
  const auto& counts = point.counts;
  if (point.warm_up_steps) json["warm_up_steps"] = *point.warm_up_steps;
  json["counted_steps"] = counts ? Json(counts->counted_steps) : Json(nullptr);
  json["counts"] = counts ? phases_to_json(counts->by_class) : Json(nullptr);
  json["ops"] = counts ? phases_to_json(counts->by_op) : Json(nullptr);
  json["predicted_counts"] =
      point.predicted_counts ? phases_to_json(*point.predicted_counts) : Json(nullptr);
  json["memory"] = point.memory ? memory_to_json(*point.memory) : Json(nullptr);
  json["time"] = point.time ? time_to_json(*point.time) : Json(nullptr);
  json["kernels"] = point.kernels ? kernels_to_json(*point.kernels) : Json(nullptr);
  json["kernels_reason"] = text_or_null(point.kernels_reason);
  json["steps"] = list_to_json(point.steps, step_to_json);
  json["parity"] = point.parity ? parity_to_json(*point.parity) : Json(nullptr);
  json["effect"] = point.effect ? effect_to_json(*point.effect) : Json(nullptr);
  json["executed_step_flops"] = to_value(point.step_flops);
  json["recomputed_step_flops"] = to_value(point.recomputed_step_flops);
  json["implied_flops_per_second"] = to_value(point.implied_flops_per_second);
  json["most_flops_per_second"] = to_value(point.most_flops_per_second);
  json["sheet_flops_per_second"] = to_value(point.sheet_flops_per_second);
  json["model_flops_utilization_ratio"] = to_value(point.model_flops_utilization);
  json["hardware_flops_utilization_ratio"] = to_value(point.hardware_flops_utilization);
}

// A report of this version may lack these keys.
void read_kernels(const JsonField& field, PointRecord& point) {
  const auto kernels = field.find("kernels");
  if (kernels && !kernels->is_null()) point.kernels = kernels_from_json(*kernels);
  const auto reason = field.find("kernels_reason");
  if (reason && !reason->is_null()) point.kernels_reason = reason->string();
}

// A report of this version may lack these keys.
void read_rates(const JsonField& field, PointRecord& point) {
  const auto read = [&](const char* name, std::optional<double>& rate) {
    if (const auto found = field.find(name)) read_value(*found, rate);
  };
  read("most_flops_per_second", point.most_flops_per_second);
  read("sheet_flops_per_second", point.sheet_flops_per_second);
  read("model_flops_utilization_ratio", point.model_flops_utilization);
  read("hardware_flops_utilization_ratio", point.hardware_flops_utilization);
}

void read_measures(const JsonField& field, PointRecord& point) {
  if (const auto steps = field.find("warm_up_steps")) read_value(*steps, point.warm_up_steps);
  if (const auto counts = non_null_member(field, "counts")) {
    CountsRecord& record = point.counts.emplace();
    read_member(field, "counted_steps", record.counted_steps);
    read_phases(*counts, record.by_class);
    read_phases(field.at("ops"), record.by_op);
  }
  if (const auto predicted = non_null_member(field, "predicted_counts")) {
    read_phases(*predicted, point.predicted_counts.emplace());
  }
  if (const auto memory = non_null_member(field, "memory"))
    point.memory = memory_from_json(*memory);
  if (const auto time = non_null_member(field, "time")) point.time = time_from_json(*time);
  read_kernels(field, point);
  read_list(field.at("steps"), point.steps, step_from_json);
  if (const auto parity = non_null_member(field, "parity"))
    point.parity = parity_from_json(*parity);
  if (const auto effect = non_null_member(field, "effect"))
    point.effect = effect_from_json(*effect);
  read_member(field, "executed_step_flops", point.step_flops);
  if (const auto flops = field.find("recomputed_step_flops")) {
    read_value(*flops, point.recomputed_step_flops);
  }
  read_member(field, "implied_flops_per_second", point.implied_flops_per_second);
  read_rates(field, point);
}

}  // namespace

std::string_view to_string(PointStatus status) {
  constexpr std::array<std::string_view, kStatuses.size()> kNames = {"ok",    "oom",     "timeout",
                                                                     "crash", "skipped", "invalid"};
  return kNames.at(static_cast<std::size_t>(status));
}

PointStatus status_from_json(const JsonField& field) {
  const auto* found = std::find_if(kStatuses.begin(), kStatuses.end(), [&](PointStatus status) {
    return to_string(status) == field.string();
  });
  if (found == kStatuses.end()) {
    field.fail("'" + field.string() +
               "' is no status; allowed are ok, oom, timeout, crash, skipped, invalid");
  }
  return *found;
}

Json point_to_json(const PointRecord& point) {
  Json json = {{"key", nullptr},
               {"model", point.identity.model},
               {"policy", point.policy},
               {"plan_sha256", point.identity.plan_sha256},
               {"schedule", to_string(point.identity.schedule)},
               {"device", point.device},
               {"status", to_string(point.status)},
               {"reason", text_or_null(point.reason)},
               {"failure", point.failure ? failure_to_json(*point.failure) : Json(nullptr)},
               {"identity", identity_to_json(point.identity)}};
  write_measures(json, point);
  add_members(json, point.unknown);
  // Last: what a newer version has in the identity counts too.
  json["key"] = canonical_sha256(json["identity"]);
  return json;
}

PointRecord PointReader::read(const JsonField& field) {
  PointRecord point;
  point.identity = identity_from_json(field.at("identity"));
  require_consistent(field);
  read_member(field, "policy", point.policy);
  read_member(field, "device", point.device);
  point.status = status_from_json(field.at("status"));
  read_text(field, "reason", point.reason);
  if (const auto failure = non_null_member(field, "failure")) {
    point.failure = failure_from_json(*failure);
  }
  read_measures(field, point);
  std::string structure = structure_of(field.json());
  if (!without_unknown_.contains(structure)) {
    point.unknown = unknown_members(field.json(), point_to_json(point));
    if (point.unknown.empty()) without_unknown_.insert(std::move(structure));
  }
  return point;
}

PointRecord point_from_json(const JsonField& field) { return PointReader().read(field); }

}  // namespace rematch
