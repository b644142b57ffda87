// The schemas say what the lists of fields say: no key without a field, no field without a key, and
// a key is required where files of this version must have it.
#include <algorithm>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "policies/base/json.h"
#include "reports/record/fields/gate_fields.h"
#include "reports/record/fields/report_fields.h"
#include "reports/schema/validate.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// A place in a schema, references followed.
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
    if (here_.contains("anyOf")) here_ = Json(here_["anyOf"][0]);  // the other one is null
    while (here_.contains("$ref")) {
      const std::string reference = here_["$ref"];
      const std::size_t hash = reference.find('#');
      if (hash > 0)
        root_ = Json::parse(schema_text(reference.substr(0, reference.find('.'))).value());
      here_ = Json(root_.at(Json::json_pointer(reference.substr(hash + 1))));
    }
  }

  Json root_;
  Json here_;
};

template <class T>
struct RecordIn {};
template <HasFields T>
struct RecordIn<T> {
  using Type = T;
  static constexpr const char* kPlace = "";
};
template <HasFields T>
struct RecordIn<std::optional<T>> : RecordIn<T> {};
template <HasFields T>
struct RecordIn<std::vector<T>> : RecordIn<T> {
  static constexpr const char* kPlace = "/items";
};

using Names = std::set<std::string>;

// `others`: keys of the record that are no fields of it.
template <class Record>
void check_fields(const SchemaPlace& schema, const std::string& path, const Names& others = {}) {
  CAPTURE(path);
  Names keys = others;
  Names required = others;
  const Record record;
  visit_fields(record, [&](const Field& field, const auto& member) {
    keys.insert(field.key);
    if (!field.has(kLater | kOmitIfEmpty)) required.insert(field.key);
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (requires { typename RecordIn<Member>::Type; }) {
      using Inner = typename RecordIn<Member>::Type;
      constexpr bool kIsPoint = std::is_same_v<Inner, PointRecord>;
      constexpr bool kIsNoise = std::is_same_v<Inner, NoiseRecord>;
      if constexpr (!kIsPoint) {
        check_fields<Inner>(
            schema.at("/properties/" + std::string(field.key) + RecordIn<Member>::kPlace),
            path + "." + field.key, kIsNoise ? Names{"status"} : Names{});
      }
    }
  });
  CHECK(schema.names("properties") == keys);
  CHECK(schema.names("required") == required);
}

Names with(Names names, const Names& others) {
  names.insert(others.begin(), others.end());
  return names;
}

TEST_CASE("every field of a point is in its schema, and nothing else") {
  check_fields<PointRecord>(
      SchemaPlace("point").at("/definitions/point"), "point",
      {"key", "model", "plan_sha256", "schedule", "counted_steps", "counts", "ops"});
}

TEST_CASE("every field around points is in the report's schema, and nothing else") {
  const Names derived = {"schema", "fingerprint"};
  check_fields<Provenance>(SchemaPlace("point"), "point file", with(derived, {"point"}));
  const SchemaPlace report("report");
  check_fields<RepeatRecord>(report.at("/properties/reference_repeats/items"), "repeats");
  check_fields<PlannedPoint>(report.at("/properties/planned/items"), "planned");
  check_fields<UnmeasuredComparison>(report.at("/properties/unmeasured/items"), "unmeasured");
}

TEST_CASE("every field of a compare record is in its schema, and nothing else") {
  check_fields<CompareRecord>(SchemaPlace("compare"), "compare", {"schema"});
}

TEST_CASE("every field of a gate record is in its schema, and nothing else") {
  check_fields<GateRecord>(SchemaPlace("gate"), "gate", {"schema"});
}

}  // namespace
}  // namespace rematch
