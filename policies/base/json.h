// Shared by the readers of all formats: the JSON type, the version rule, and typed access to keys
// that names the place of a mistake.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/base/json_fwd.h"

// Compiled once, with json.cpp.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace rematch {

// Throws FormatError unless `json` is of this kind and of the major version this build reads. A
// newer minor version passes: it only adds keys, which readers ignore or keep.
void require_schema(const Json& json, std::string_view kind);

// One line of ASCII. Takes any text: bytes that are no UTF-8 become U+FFFD.
std::string line_of(const Json& json);

// Adds a member with a key that the object does not have: the library's own way looks for it first,
// and copies all members with what is in them whenever the object grows, because keys are const.
Json& add_member(Json::object_t& object, std::string key, Json value);

// A place in a JSON document. Every accessor throws FormatError with its path if the document has
// something else there. Refers to the document, which must outlive it and not change; the path is
// looked for in it when it is asked for, so that reading what is right costs nothing.
class JsonField {
 public:
  static constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

  // The document, or a part of one that stands at `root_path` in the whole, which must outlive it
  // too.
  explicit JsonField(const Json& root, const std::string* root_path = nullptr)
      : value_(&root), root_(&root), root_path_(root_path) {}

  const Json& json() const { return *value_; }
  std::string path() const;
  bool is_null() const { return value_->is_null(); }

  // For objects: a key that must be there, or may be.
  JsonField at(std::string_view key) const;
  // A key that must be there, by its name or by the one that earlier minor versions gave it.
  JsonField at(std::string_view key, std::string_view former_key) const;
  std::optional<JsonField> find(std::string_view key) const;
  void require_object() const;
  std::vector<std::pair<const std::string*, JsonField>> members() const;
  // For files that people write: an unknown key is a typing mistake, so it is refused, with the
  // nearest known one. Machine-written formats let unknown keys pass.
  void require_known_keys(const std::vector<std::string_view>& known) const;

  // For arrays.
  std::size_t size() const;
  JsonField at(std::size_t index) const;
  std::vector<JsonField> elements() const;

  std::int64_t integer(std::int64_t min = kMin, std::int64_t max = kMax) const;
  std::int32_t integer32(std::int32_t min = std::numeric_limits<std::int32_t>::min(),
                         std::int32_t max = std::numeric_limits<std::int32_t>::max()) const;
  // An unsigned quantity: 0 to kLargestInteger.
  std::int64_t count() const;
  double number() const;
  bool boolean() const;
  const std::string& string() const;
  std::vector<std::string> strings() const;

  // Throws FormatError: path and problem.
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  JsonField(const Json& value, const JsonField& parent)
      : value_(&value), root_(parent.root_), root_path_(parent.root_path_) {}
  [[noreturn]] void fail_type(std::string_view expected) const;

  const Json* value_;
  const Json* root_;
  const std::string* root_path_;  // null: empty
};

// The file formats' kinds and versions, and the largest integer that every reader of JSON holds
// exactly.

// Readers that hold numbers as doubles are exact up to here (RFC 8259, section 6).
inline constexpr std::int64_t kLargestInteger = std::int64_t{1} << 53;

// A format, with the version that this build writes. Another minor version is read: it only adds
// keys.
struct Schema {
  std::string_view kind;
  int minor = 0;

  static constexpr int kMajor = 1;  // of every format
};

inline constexpr Schema kTraceSchema{"trace", 1};
inline constexpr Schema kProfileSchema{"profile", 2};
inline constexpr Schema kLinksSchema{"links"};
inline constexpr Schema kPolicySchema{"policy"};
inline constexpr Schema kPlanSchema{"plan"};
inline constexpr Schema kFrontSchema{"front"};
inline constexpr Schema kLoadsSchema{"loads"};
inline constexpr Schema kPointSchema{"point"};
inline constexpr Schema kReportSchema{"report"};
inline constexpr Schema kCompareSchema{"compare"};
inline constexpr Schema kGateSchema{"gate", 1};
inline constexpr Schema kSweepSchema{"sweep"};
inline constexpr Schema kSweepPlanSchema{"sweep_plan"};
inline constexpr Schema kClaimSchema{"claim"};

// "rematch.gate/1.": what the schema key of every version that this build reads starts with.
std::string schema_prefix(std::string_view kind);

// "rematch.gate/1.1": what this build writes.
std::string schema_name(const Schema& schema);

}  // namespace rematch
