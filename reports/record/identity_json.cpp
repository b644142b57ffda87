#include "policies/trace/canonical_json.h"
#include "policies/trace/json.h"
#include "reports/record/field_value.h"
#include "reports/record/parts_json.h"

namespace rematch {

Schedule schedule_from_json(const JsonField& field) {
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    if (to_string(schedule) == field.string()) return schedule;
  }
  field.fail("'" + field.string() + "' is no schedule; allowed are whole_region, on_demand");
}

Json identity_to_json(const PointIdentity& identity) {
  return {{"model", identity.model},
          {"dimensions", to_value(identity.dimensions)},
          {"data", identity.data},
          {"seed", identity.seed},
          {"plan_sha256", identity.plan_sha256},
          {"schedule", to_string(identity.schedule)},
          {"ops", identity.ops},
          {"attention_backend", identity.attention_backend},
          {"dtype", identity.dtype},
          {"optimizer", identity.optimizer},
          {"deterministic", identity.deterministic},
          {"allocator", identity.allocator},
          {"threads", identity.threads},
          {"world", identity.world}};
}

PointIdentity identity_from_json(const JsonField& field) {
  PointIdentity identity;
  read_member(field, "model", identity.model);
  read_member(field, "dimensions", identity.dimensions);
  read_member(field, "data", identity.data);
  read_member(field, "seed", identity.seed);
  read_member(field, "plan_sha256", identity.plan_sha256);
  identity.schedule = schedule_from_json(field.at("schedule"));
  read_member(field, "ops", identity.ops);
  read_member(field, "attention_backend", identity.attention_backend);
  read_member(field, "dtype", identity.dtype);
  read_member(field, "optimizer", identity.optimizer);
  read_member(field, "deterministic", identity.deterministic);
  read_member(field, "allocator", identity.allocator);
  read_member(field, "threads", identity.threads);
  read_member(field, "world", identity.world);
  return identity;
}

std::string point_key(const PointIdentity& identity) {
  return canonical_sha256(identity_to_json(identity));
}

}  // namespace rematch
