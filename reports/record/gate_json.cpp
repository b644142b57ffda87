#include <array>
#include <limits>

#include "policies/trace/json.h"
#include "policies/trace/schema.h"
#include "reports/record/compare_parts_json.h"
#include "reports/record/field_value.h"
#include "reports/record/gate.h"
#include "reports/record/parts_json.h"

namespace rematch {
namespace {

constexpr std::array kGateVerdicts = {GateVerdict::kPass, GateVerdict::kInconclusive,
                                      GateVerdict::kFail};

GateVerdict verdict_from_json(const JsonField& field) {
  for (const GateVerdict verdict : kGateVerdicts) {
    if (to_string(verdict) == field.string()) return verdict;
  }
  field.fail("'" + field.string() + "' is no verdict; allowed are PASS, INCONCLUSIVE, FAIL");
}

// "not_measured" where the reference ran once: a reader must not take it for no noise. Measured and
// null: one of its losses is not finite.
Json noise_to_json(const std::optional<NoiseRecord>& noise) {
  if (!noise) return nullptr;
  const bool measured = noise->reference_runs > 1;
  return {{"status", measured ? "measured" : "not_measured"},
          {"reference_runs", noise->reference_runs},
          {"largest_difference", number_to_json(noise->largest_difference)},
          {"detects", text_or_null(noise->detects)}};
}

NoiseRecord noise_from_json(const JsonField& field) {
  NoiseRecord noise;
  read_member(field, "reference_runs", noise.reference_runs);
  read_member(field, "largest_difference", noise.largest_difference);
  if (noise.reference_runs > 1 && !noise.largest_difference) {
    noise.largest_difference = std::numeric_limits<double>::infinity();
  }
  read_text(field, "detects", noise.detects);
  return noise;
}

Json check_to_json(const CheckRecord& check) {
  return {{"check", check.check},
          {"tier", text_or_null(check.tier)},
          {"verdict", to_string(check.verdict)},
          {"reason", check.reason},
          {"measured", number_to_json(check.measured)},
          {"limit", number_to_json(check.limit)},
          {"first_different_step", to_value(check.first_different_step)},
          {"first_different_tensor", text_or_null(check.first_different_tensor)},
          {"noise", noise_to_json(check.noise)}};
}

CheckRecord check_from_json(const JsonField& field) {
  CheckRecord check;
  read_member(field, "check", check.check);
  read_text(field, "tier", check.tier);
  check.verdict = verdict_from_json(field.at("verdict"));
  read_member(field, "reason", check.reason);
  read_member(field, "measured", check.measured);
  read_member(field, "limit", check.limit);
  read_member(field, "first_different_step", check.first_different_step);
  read_text(field, "first_different_tensor", check.first_different_tensor);
  if (const auto noise = non_null_member(field, "noise")) check.noise = noise_from_json(*noise);
  return check;
}

Json gated_to_json(const GatedPoint& point) {
  return {{"key", point.key},
          {"model", point.model},
          {"policy", point.policy},
          {"schedule", to_string(point.schedule)},
          {"device", point.device},
          {"reference_policy", text_or_null(point.reference_policy)},
          {"reference_key", text_or_null(point.reference_key)},
          {"verdict", to_string(point.verdict)},
          {"checks", list_to_json(point.checks, check_to_json)}};
}

GatedPoint gated_from_json(const JsonField& field) {
  GatedPoint point;
  read_member(field, "key", point.key);
  read_member(field, "model", point.model);
  read_member(field, "policy", point.policy);
  point.schedule = schedule_from_json(field.at("schedule"));
  read_member(field, "device", point.device);
  read_text(field, "reference_policy", point.reference_policy);
  read_text(field, "reference_key", point.reference_key);
  point.verdict = verdict_from_json(field.at("verdict"));
  read_list(field.at("checks"), point.checks, check_from_json);
  return point;
}

Json curves_to_json(const CurvesRecord& curves) {
  return {{"losses", curves.losses},
          {"reference_losses", curves.reference_losses},
          {"compared_steps", curves.compared_steps},
          {"first_step", curves.first_step},
          {"last_step", curves.last_step},
          {"checks", list_to_json(curves.checks, check_to_json)}};
}

CurvesRecord curves_from_json(const JsonField& field) {
  CurvesRecord curves;
  curves.losses = field.at("losses").strings();
  curves.reference_losses = field.at("reference_losses").strings();
  read_member(field, "compared_steps", curves.compared_steps);
  read_member(field, "first_step", curves.first_step);
  read_member(field, "last_step", curves.last_step);
  read_list(field.at("checks"), curves.checks, check_from_json);
  return curves;
}

}  // namespace

std::string_view to_string(GateVerdict verdict) {
  constexpr std::array<std::string_view, kGateVerdicts.size()> kNames = {"PASS", "INCONCLUSIVE",
                                                                         "FAIL"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

Json gate_to_json(const GateRecord& record) {
  return {
      {"schema", schema_name(kGateSchema)},
      {"report", source_to_json(record.report)},
      {"reference", record.reference ? source_to_json(*record.reference) : Json(nullptr)},
      {"environment_differences", list_to_json(record.environment_differences, difference_to_json)},
      {"verdict", to_string(record.verdict)},
      {"points", list_to_json(record.points, gated_to_json)},
      {"curves", record.curves ? curves_to_json(*record.curves) : Json(nullptr)}};
}

GateRecord gate_from_json(const Json& json) {
  require_schema(json, kGateSchema.kind);
  const JsonField field(json);
  GateRecord record;
  record.report = source_from_json(field.at("report"));
  if (const auto reference = non_null_member(field, "reference")) {
    record.reference = source_from_json(*reference);
  }
  read_list(field.at("environment_differences"), record.environment_differences,
            difference_from_json);
  record.verdict = verdict_from_json(field.at("verdict"));
  read_list(field.at("points"), record.points, gated_from_json);
  if (const auto curves = field.find("curves"); curves && !curves->is_null()) {  // since 1.1
    record.curves = curves_from_json(*curves);
  }
  return record;
}

}  // namespace rematch
