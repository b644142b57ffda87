#include "reports/record/gate.h"

#include <limits>

#include "policies/base/field_value.h"
#include "policies/base/json.h"

namespace rematch {

void read_value(const JsonField& field, NoiseRecord& noise) {
  read_fields(field, noise);
  if (noise.reference_runs > 1 && !noise.largest_difference) {
    noise.largest_difference = std::numeric_limits<double>::infinity();
  }
}

Json gate_to_json(const GateRecord& record) { return document_of(kGateSchema, record); }

GateRecord gate_from_json(const Json& json) {
  require_schema(json, kGateSchema.kind);
  GateRecord record;
  read_value(JsonField(json), record);
  return record;
}

}  // namespace rematch
