// Shared by the readers of all formats: the JSON type, the version rule, and typed access to keys.
// Errors name the place in the document.
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

// nlohmann's class template is instantiated once, in json.cpp.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace rematch {

// Throws FormatError unless `json` is a file of the format `kind`, in the major version that this
// build reads. Accepts newer minor versions, because they only add keys. Readers ignore or keep
// such keys.
void require_schema(const Json& json, std::string_view kind);

// Returns the JSON as one line of ASCII. Accepts any text: bytes that are not UTF-8 become U+FFFD.
std::string line_of(const Json& json);

// Appends a member to an object that does not have the key yet. This is faster than the library's
// insertion, which searches for the key and deep-copies all members when the object grows.
Json& add_member(Json::object_t& object, std::string key, Json value);

// A value in a JSON document, which must outlive the field and must not change. Every accessor
// throws FormatError with the path if the value has another type. The path is computed only for an
// error, so reading a valid document costs nothing extra.
class JsonField {
 public:
  static constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

  // Refers to a whole document, or to the part of a document at `root_path`. `root_path` must
  // outlive the field too.
  explicit JsonField(const Json& root, const std::string* root_path = nullptr)
      : value_(&root), root_(&root), root_path_(root_path) {}

  const Json& json() const { return *value_; }
  std::string path() const;
  bool is_null() const { return value_->is_null(); }

  // For objects. at() requires the key; find() allows it to be absent.
  JsonField at(std::string_view key) const;
  // Requires a key. It may have its current name, or the name that earlier minor versions used.
  JsonField at(std::string_view key, std::string_view former_key) const;
  std::optional<JsonField> find(std::string_view key) const;
  void require_object() const;
  std::vector<std::pair<const std::string*, JsonField>> members() const;
  // For files that people write. An unknown key is probably a typing mistake, so it throws
  // FormatError and suggests the nearest known key. Machine-written formats accept unknown keys.
  void require_known_keys(const std::vector<std::string_view>& known) const;

  // For arrays: the number of elements, and access by index.
  std::size_t size() const;
  JsonField at(std::size_t index) const;
  std::vector<JsonField> elements() const;

  std::int64_t integer(std::int64_t min = kMin, std::int64_t max = kMax) const;
  std::int32_t integer32(std::int32_t min = std::numeric_limits<std::int32_t>::min(),
                         std::int32_t max = std::numeric_limits<std::int32_t>::max()) const;
  // Reads an unsigned quantity: 0 to kLargestInteger.
  std::int64_t count() const;
  double number() const;
  bool boolean() const;
  const std::string& string() const;
  std::vector<std::string> strings() const;

  // Throws FormatError with the path and the problem.
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  JsonField(const Json& value, const JsonField& parent)
      : value_(&value), root_(parent.root_), root_path_(parent.root_path_) {}
  [[noreturn]] void fail_type(std::string_view expected) const;

  const Json* value_;
  const Json* root_;
  const std::string* root_path_;  // null if the root path is empty
};

// Readers that hold numbers as doubles are exact up to this integer (RFC 8259, section 6).
inline constexpr std::int64_t kLargestInteger = std::int64_t{1} << 53;

// A file format, with the minor version that this build writes. Files of other minor versions can
// be read, because a minor version only adds keys.
struct Schema {
  std::string_view kind;
  int minor = 0;

  static constexpr int kMajor = 1;  // major version, which is the same for every format
};

inline constexpr Schema kTraceSchema{"trace", 1};
inline constexpr Schema kProfileSchema{"profile", 2};
inline constexpr Schema kLinksSchema{"links"};
inline constexpr Schema kCeilingsSchema{"ceilings"};
inline constexpr Schema kPolicySchema{"policy"};
inline constexpr Schema kPlanSchema{"plan"};
inline constexpr Schema kFrontSchema{"front"};
inline constexpr Schema kLoadsSchema{"loads"};
inline constexpr Schema kPointSchema{"point"};
inline constexpr Schema kReportSchema{"report"};
inline constexpr Schema kCompareSchema{"compare"};
inline constexpr Schema kGateSchema{"gate", 1};
inline constexpr Schema kSweepSchema{"sweep"};
inline constexpr Schema kSweepPlanSchema{"sweep_plan", 1};
inline constexpr Schema kClaimSchema{"claim"};

// Returns the start of every schema key of this kind that this build can read, such as
// "rematch.gate/1.".
std::string schema_prefix(std::string_view kind);

// Returns the schema key that this build writes, such as "rematch.gate/1.1".
std::string schema_name(const Schema& schema);

}  // namespace rematch
