#include "reports/record/json/point_json.h"

#include <algorithm>
#include <array>

#include "policies/base/field_value.h"
#include "policies/base/file.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/trace/by_phase.h"

namespace rematch {
namespace {

// A point repeats these fields of its identity at the top, because readers need them first.
constexpr std::array kRepeated = {"model", "plan_sha256", "schedule"};

void require_consistent(const JsonField& field) {
  const Json& identity = field.at("identity").json();
  for (const char* name : kRepeated) {
    if (field.at(name).json() != identity.at(name)) {
      field.at(name).fail("differs from the value in \"identity\"");
    }
  }
  if (field.at("key").string() != canonical_sha256(identity)) {
    field.at("key").fail("does not match the hash of \"identity\"; was the file edited?");
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

using Pointer = Json::json_pointer;

void collect(const Json& source, const Json& written, const Pointer& at,
             std::map<std::string, std::string>& unknown) {
  if (source.is_object() && written.is_object()) {
    for (const auto& [name, member] : source.items()) {
      const auto found = written.find(name);
      if (found == written.end()) {
        unknown.emplace((at / name).to_string(), member.dump());
      } else if (member.is_structured()) {
        collect(member, *found, at / name, unknown);
      }
    }
  } else if (source.is_array() && written.is_array()) {
    for (std::size_t index = 0; index < std::min(source.size(), written.size()); ++index) {
      if (source[index].is_structured()) {
        collect(source[index], written[index], at / index, unknown);
      }
    }
  }
}

// Appends only the structure of the JSON: lists, and objects with their keys. The length of each
// key precedes it, so that keys cannot be confused with each other or with brackets.
void append_structure(const Json& json, std::string& structure) {
  if (json.is_object()) {
    structure += '{';
    for (const auto& [name, member] : json.get_ref<const Json::object_t&>()) {
      structure.append(std::to_string(name.size())).append(":").append(name);
      append_structure(member, structure);
    }
    structure += '}';
  } else if (json.is_array()) {
    structure += '[';
    for (const Json& element : json) append_structure(element, structure);
    structure += ']';
  }
}

std::string structure_of(const Json& json) {
  std::string structure;
  append_structure(json, structure);
  return structure;
}

}  // namespace

Json point_to_json(const PointRecord& point) {
  Json json = {{"key", nullptr}};
  // Adds these fields before the others, without values, so that they come first in the file.
  for (const char* name : kRepeated) json[name] = nullptr;
  write_fields(json, point);
  write_counts(json, point.counts);
  add_members(json, point.unknown);
  for (const char* name : kRepeated) json[name] = json["identity"][name];
  // Computes the key last, because it also covers identity members from newer versions.
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

std::map<std::string, std::string> unknown_members(const Json& source, const Json& written) {
  std::map<std::string, std::string> unknown;
  collect(source, written, Pointer(), unknown);
  return unknown;
}

void add_members(Json& json, const std::map<std::string, std::string>& members) {
  for (const auto& [path, member] : members) {
    const Pointer pointer(path);
    const Pointer parent = pointer.parent_pointer();
    if (json.contains(parent) && json.at(parent).is_object())
      json[pointer] = parse_json(member, path);
  }
}

}  // namespace rematch
