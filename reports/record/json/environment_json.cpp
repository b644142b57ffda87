#include "policies/base/field_value.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "reports/record/environment.h"
#include "reports/record/json/parts_json.h"

namespace rematch {

Json environment_to_json(const Environment& environment) { return to_value(environment); }

Environment environment_from_json(const JsonField& field) {
  Environment environment;
  read_value(field, environment);
  return environment;
}

// Fields that a report of this version may lack are left out where they are not known, so that
// such a report's fingerprint stays what it is.
std::string fingerprint(const Environment& environment) {
  Json json = Json::object();
  visit_fields(environment, [&json](const Field& field, const auto& member) {
    if (field.has(kNotInFingerprint)) return;
    Json value = to_value(member);
    if (!field.has(kLater) || !value.is_null()) json[field.key] = std::move(value);
  });
  json["device_uuid"] = nullptr;  // as in reports that cover it and do not know it
  return canonical_sha256(json);
}

bool is_in_fingerprint(std::string_view member) {
  const Environment environment;
  bool is_in = false;
  visit_fields(environment, [&](const Field& field, const auto&) {
    is_in = is_in || (field.key == member && !field.has(kNotInFingerprint));
  });
  return is_in;
}

}  // namespace rematch
