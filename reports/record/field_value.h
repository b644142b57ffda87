// Members of a JSON object into C++ types and back, on top of JsonField: what is absent or not
// finite is null. Readers throw FormatError with the member's path.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/trace/bytes.h"
#include "policies/trace/json.h"

namespace rematch {

void read_value(const JsonField& field, bool& value);
void read_value(const JsonField& field, int& value);
void read_value(const JsonField& field, std::int64_t& value);
void read_value(const JsonField& field, std::uint64_t& value);  // below 2^63
void read_value(const JsonField& field, double& value);
void read_value(const JsonField& field, std::string& value);
void read_value(const JsonField& field, Bytes& value);
void read_value(const JsonField& field, std::chrono::nanoseconds& value);

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

// Elements of a list, one by one.
template <class T>
void read_list(const JsonField& field, std::vector<T>& values, T (*read)(const JsonField&)) {
  for (const JsonField& element : field.elements()) values.push_back(read(element));
}

template <class T>
void read_value(const JsonField& field, std::optional<T>& value) {
  value.reset();
  if (!field.is_null()) read_value(field, value.emplace());
}

// The member `name`, which must be there.
template <class T>
void read_member(const JsonField& object, const char* name, T& value) {
  read_value(object.at(name), value);
}

// null reads as the empty string.
void read_text(const JsonField& object, const char* name, std::string& value);

// The member `name` unless it is null.
std::optional<JsonField> non_null_member(const JsonField& object, const char* name);

Json to_value(double value);
inline Json to_value(Bytes bytes) { return bytes.count; }
inline Json to_value(std::chrono::nanoseconds time) { return time.count(); }
inline Json to_value(const std::string& value) { return value; }
inline Json to_value(bool value) { return value; }
inline Json to_value(int value) { return value; }
inline Json to_value(std::int64_t value) { return value; }

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

template <class T>
Json to_value(const std::optional<T>& value) {
  return value ? to_value(*value) : Json(nullptr);
}

template <class T>
Json list_to_json(const std::vector<T>& values, Json (*write)(const T&)) {
  Json json = Json::array();
  for (const T& value : values) json.push_back(write(value));
  return json;
}

Json text_or_null(const std::string& text);

}  // namespace rematch
