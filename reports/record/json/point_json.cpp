#include <array>

#include "policies/base/field_value.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/trace/by_phase.h"
#include "reports/record/json/parts_json.h"
#include "reports/record/point.h"

namespace rematch {
namespace {

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

void write_counts(Json& json, const std::optional<CountsRecord>& counts) {
  json["counted_steps"] = counts ? Json(counts->counted_steps) : Json(nullptr);
  json["counts"] = counts ? to_value(counts->by_class) : Json(nullptr);
  json["ops"] = counts ? to_value(counts->by_op) : Json(nullptr);
}

void read_counts(const JsonField& field, std::optional<CountsRecord>& counts) {
  const JsonField by_class = field.at("counts");
  if (by_class.is_null()) return;
  CountsRecord& record = counts.emplace();
  read_value(by_class, record.by_class);
  read_value(field.at("counted_steps"), record.counted_steps);
  read_value(field.at("ops"), record.by_op);
}

}  // namespace

Json point_to_json(const PointRecord& point) {
  Json json = {{"key", nullptr}};
  for (const char* name : kRepeated) json[name] = nullptr;  // the places at the top
  write_fields(json, point);
  write_counts(json, point.counts);
  add_members(json, point.unknown);
  for (const char* name : kRepeated) json[name] = json["identity"][name];
  // Last: what a newer version has in the identity counts too.
  json["key"] = canonical_sha256(json["identity"]);
  return json;
}

Json repeated_fields(const PointRecord& point) {
  Json json = fields_to_json(point, kNotRepeated);
  write_counts(json, point.counts);
  add_members(json, point.unknown);
  return json;
}

PointRecord PointReader::read(const JsonField& field) {
  PointRecord point;
  read_value(field.at("identity"), point.identity);
  require_consistent(field);
  read_fields(field, point);
  read_counts(field, point.counts);
  std::string structure = structure_of(field.json());
  if (!without_unknown_.contains(structure)) {
    point.unknown = unknown_members(field.json(), point_to_json(point));
    if (point.unknown.empty()) without_unknown_.insert(std::move(structure));
  }
  return point;
}

PointRecord point_from_json(const JsonField& field) { return PointReader().read(field); }

}  // namespace rematch
