// Compares a JSON schema with a record's list of fields: every key must have a field, and every
// field a key. A key must be required if, and only if, files of this version must contain it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "policies/base/json.h"
#include "policies/base/record_fields.h"
#include "reports/schema/validate.h"
#include "tests/support/catch.h"

namespace rematch::testing {

// A position in a schema. References ("$ref") are resolved.
class SchemaPlace {
 public:
  explicit SchemaPlace(const std::string& kind)
      : root_(Json::parse(schema_text(kind).value())), here_(root_) {}

  SchemaPlace at(const std::string& pointer) const {
    SchemaPlace place = *this;
    place.here_ = here_.at(Json::json_pointer(pointer));
    place.follow();
    return place;
  }
  std::set<std::string> names(const char* list) const {
    std::set<std::string> names;
    const Json listed = here_.value(list, Json::object());
    for (const auto& [key, value] : listed.items()) {
      names.insert(value.is_string() ? value.get<std::string>() : key);
    }
    return names;
  }

 private:
  void follow() {
    if (here_.contains("anyOf")) {  // one of the two alternatives is null
      const Json null = {{"type", "null"}};
      here_ = Json(here_["anyOf"][here_["anyOf"][0] == null ? 1 : 0]);
    }
    while (here_.contains("$ref")) {
      const std::string reference = here_["$ref"];
      const std::size_t hash = reference.find('#');
      if (hash > 0)
        root_ = Json::parse(schema_text(reference.substr(0, reference.find('.'))).value());
      here_ = Json(root_.at(Json::json_pointer(reference.substr(hash + 1))));
    }
    if (here_.contains("allOf")) join_parts();
  }

  void join_parts() {
    Json joined = {{"properties", Json::object()}, {"required", Json::array()}};
    for (std::size_t index = 0; index < here_["allOf"].size(); ++index) {
      const SchemaPlace part = at("/allOf/" + std::to_string(index));
      joined["properties"].update(part.here_["properties"]);
      for (const Json& key : part.here_["required"]) joined["required"].push_back(key);
    }
    here_ = std::move(joined);
  }

  Json root_;
  Json here_;
};

template <class T>
struct RecordIn {};
template <HasFields T>
struct RecordIn<std::optional<T>> {
  using Type = T;
  static constexpr const char* kPlace = "";
};
template <HasFields T>
struct RecordIn<std::vector<T>> {
  using Type = T;
  static constexpr const char* kPlace = "/items";
};

using Names = std::set<std::string>;

// `others` are required keys that are not in the record's list of fields. `optional_others` are
// further keys of this kind, which may be missing.
template <class Record>
void check_fields(const Record& record, const SchemaPlace& schema, const std::string& path,
                  const Names& others = {}, const Names& optional_others = {}) {
  CAPTURE(path);
  Names keys = others;
  keys.insert(optional_others.begin(), optional_others.end());
  Names required = others;
  visit_fields(record, [&](const Field& field, const auto& member) {
    keys.insert(field.key);
    if (!field.has(kLater | kOmitIfEmpty)) required.insert(field.key);
    using Member = std::remove_cvref_t<decltype(member)>;
    const std::string key(field.key);
    if constexpr (requires { typename RecordIn<Member>::Type; }) {
      using Inner = RecordIn<Member>;
      check_fields(typename Inner::Type{}, schema.at("/properties/" + key).at(Inner::kPlace),
                   path + "." + key);
    } else if constexpr (HasFields<const Member>) {
      check_fields(member, schema.at("/properties/" + key), path + "." + key);
    }
  });
  CHECK(schema.names("properties") == keys);
  CHECK(schema.names("required") == required);
}

}  // namespace rematch::testing
