// Converts records and their members to and from JSON, using JsonField. An absent or non-finite
// value is written as null. Readers throw FormatError with the member's path.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/json.h"
#include "policies/base/record_fields.h"
#include "policies/base/words.h"

namespace rematch {

void read_value(const JsonField& field, bool& value);
void read_value(const JsonField& field, int& value);
void read_value(const JsonField& field, std::int64_t& value);
void read_value(const JsonField& field, std::uint64_t& value);  // accepts integers below 2^63
void read_value(const JsonField& field, double& value);
void read_value(const JsonField& field, std::string& value);
void read_value(const JsonField& field, Bytes& value);
void read_value(const JsonField& field, std::chrono::nanoseconds& value);
void read_value(const JsonField& field, std::chrono::milliseconds& value);

// Throws FormatError, because the word in `field` is not one of `words`. The message lists all
// words, or only the nearest word if there are many.
[[noreturn]] void fail_unknown_word(const JsonField& field,
                                    const std::vector<std::string_view>& words);

template <Word T>
void read_value(const JsonField& field, T& word) {
  const std::optional<T> known = from_string<T>(field.string());
  if (!known) fail_unknown_word(field, all_words<T>());
  word = *known;
}

template <class T>
void read_value(const JsonField& field, std::vector<T>& values) {
  values.clear();
  values.reserve(field.size());
  for (const JsonField& element : field.elements()) {
    T value{};
    read_value(element, value);
    values.push_back(std::move(value));
  }
}

template <class T, std::size_t Size>
void read_value(const JsonField& field, std::array<T, Size>& values) {
  if (field.size() != Size) {
    field.fail("has " + std::to_string(field.size()) + " entries; it must have " +
               std::to_string(Size));
  }
  for (std::size_t index = 0; index < Size; ++index) read_value(field.at(index), values[index]);
}

template <class T>
void read_value(const JsonField& field, std::map<std::string, T>& values) {
  values.clear();
  for (const auto& [name, member] : field.members()) {
    T value{};
    read_value(member, value);
    values.emplace(*name, std::move(value));
  }
}

// Ignores keys that this build does not know, because a newer version of the format may define more
// keys.
template <Word Key, class T>
void read_value(const JsonField& field, std::map<Key, T>& values) {
  values.clear();
  for (const auto& [name, member] : field.members()) {
    T value{};
    read_value(member, value);
    if (const auto known = from_string<Key>(*name)) values.emplace(*known, std::move(value));
  }
}

template <class T>
void read_value(const JsonField& field, std::optional<T>& value) {
  value.reset();
  if (!field.is_null()) read_value(field, value.emplace());
}

// Returns the JSON value of a record's field. Returns nullopt if an optional field is missing; the
// member then keeps its value. Throws FormatError if a required field is missing.
std::optional<JsonField> value_of_field(const JsonField& object, const Field& field);

template <HasFields Record>
void read_fields(const JsonField& object, Record& record) {
  visit_fields(record, [&object](const Field& field, auto&& member) {
    if constexpr (!DerivedValue<std::remove_cvref_t<decltype(member)>>) {
      if (const auto value = value_of_field(object, field)) read_value(*value, member);
    }
  });
}

template <HasFields Record>
void read_value(const JsonField& field, Record& record) {
  read_fields(field, record);
}

// Used for files that people write. Throws FormatError if `object` has a key that is neither a
// field of the record nor listed in `others`.
template <HasFields Record, class... Others>
void require_known_keys(const JsonField& object, const Record& record, Others... others) {
  std::vector<std::string_view> known = {others...};
  visit_fields(record, [&](const Field& field, const auto&) { known.emplace_back(field.key); });
  object.require_known_keys(known);
}

Json to_value(double value);
inline Json to_value(Bytes bytes) { return bytes.count; }
// Every file format stores times in nanoseconds.
inline Json to_value(std::chrono::nanoseconds time) { return time.count(); }
inline Json to_value(std::nullptr_t) { return nullptr; }
inline Json to_value(const std::string& value) { return value; }
inline Json to_value(const char* value) { return value; }
inline Json to_value(bool value) { return value; }
inline Json to_value(int value) { return value; }
inline Json to_value(std::int64_t value) { return value; }
inline Json to_value(std::uint64_t value) { return value; }

template <Word T>
Json to_value(T word) {
  return to_string(word);
}

// Converts an array with one map per phase to a JSON object whose keys are the phases. Defined in
// policies/trace/by_phase.h.
template <class Key, class T, std::size_t Size>
Json to_value(const std::array<std::map<Key, T>, Size>& values);

template <class T, std::size_t Size>
Json to_value(const std::array<T, Size>& values) {
  Json json = Json::array();
  for (const T& value : values) json.push_back(to_value(value));
  return json;
}

template <class T>
Json to_value(const std::vector<T>& values) {
  Json json = Json::array();
  for (const T& value : values) json.push_back(to_value(value));
  return json;
}

template <class T>
Json to_value(const std::map<std::string, T>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = to_value(value);
  return json;
}

template <Word Key, class T>
Json to_value(const std::map<Key, T>& values) {
  Json json = Json::object();
  for (const auto& [word, value] : values) json[std::string(to_string(word))] = to_value(value);
  return json;
}

template <class T>
Json to_value(const std::optional<T>& value) {
  return value ? to_value(*value) : Json(nullptr);
}

// Writes a whole number as an integer if it is at most 2^53, which every JSON reader holds exactly.
Json number_to_json(std::optional<double> number);

template <class Member>
Json member_to_json(const Field& field, const Member& member) {
  if constexpr (requires { member.empty(); }) {
    if (field.has(kNullIfEmpty) && member.empty()) return nullptr;
  }
  if constexpr (std::convertible_to<Member, std::optional<double>>) {
    if (field.has(kWholeIfWhole)) return number_to_json(member);
  }
  return to_value(member);
}

template <class Member>
bool is_omitted(const Field& field, const Member& member) {
  if (!field.has(kOmitIfEmpty)) return false;
  if constexpr (requires { member.empty(); }) {
    return member.empty();
  } else if constexpr (requires { member.has_value(); }) {
    return !member.has_value();
  } else if constexpr (std::is_trivially_copyable_v<Member> && std::equality_comparable<Member>) {
    return member == Member();
  } else {
    return false;
  }
}

void put_field(Json& object, const Field& field, Json value);

template <HasFields Record>
Json fields_to_json(const Record& record, unsigned without = 0);

// Adds the record's fields to `json`, except fields that have one of the traits in `without`.
// Nested records leave out such fields too.
template <HasFields Record>
void write_fields(Json& json, const Record& record, unsigned without = 0) {
  visit_fields(record, [&](const Field& field, const auto& member) {
    if (field.has(without) || is_omitted(field, member)) return;
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (DerivedValue<Member>) {
      put_field(json, field, to_value(member()));
    } else {
      if constexpr (requires { fields_to_json(*member); }) {
        if (without != 0 && member) {
          return put_field(json, field, fields_to_json(*member, without));
        }
      }
      put_field(json, field, member_to_json<Member>(field, member));
    }
  });
}

template <HasFields Record>
Json fields_to_json(const Record& record, unsigned without) {
  Json json = Json::object();
  write_fields(json, record, without);
  return json;
}

template <HasFields Record>
Json to_value(const Record& record) {
  return fields_to_json(record);
}

// Makes the JSON of a whole file: the schema key, then the fields of the record.
template <HasFields Record>
Json document_of(const Schema& schema, const Record& record) {
  Json json = {{"schema", schema_name(schema)}};
  write_fields(json, record);
  return json;
}

}  // namespace rematch
