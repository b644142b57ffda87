#include "reports/record/gate.h"

#include <array>
#include <limits>

#include "policies/base/field_value.h"
#include "policies/base/json.h"

namespace rematch {
namespace {

constexpr std::array kGateVerdicts = {GateVerdict::kPass, GateVerdict::kInconclusive,
                                      GateVerdict::kFail};

}  // namespace

std::string_view to_string(GateVerdict verdict) {
  constexpr std::array<std::string_view, kGateVerdicts.size()> kNames = {"PASS", "INCONCLUSIVE",
                                                                         "FAIL"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

Json to_value(GateVerdict verdict) { return to_string(verdict); }

void read_value(const JsonField& field, GateVerdict& verdict) {
  for (const GateVerdict known : kGateVerdicts) {
    if (to_string(known) != field.string()) continue;
    verdict = known;
    return;
  }
  field.fail("'" + field.string() + "' is not a verdict; allowed are PASS, INCONCLUSIVE, FAIL");
}

void read_value(const JsonField& field, NoiseRecord& noise) {
  read_fields(field, noise);
  if (noise.reference_runs > 1 && !noise.largest_difference) {
    noise.largest_difference = std::numeric_limits<double>::infinity();
  }
}

Json gate_to_json(const GateRecord& record) {
  Json json = {{"schema", schema_name(kGateSchema)}};
  write_fields(json, record);
  return json;
}

GateRecord gate_from_json(const Json& json) {
  require_schema(json, kGateSchema.kind);
  GateRecord record;
  read_value(JsonField(json), record);
  return record;
}

}  // namespace rematch
