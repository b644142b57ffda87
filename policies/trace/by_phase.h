// JSON of what is kept by phase: {"forward": {}, "recompute": {}, "backward": {}, "optimizer": {}},
// every phase always there.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "policies/base/field_value.h"
#include "policies/trace/op_class.h"
#include "policies/trace/phase.h"

namespace rematch {

inline void read_value(const JsonField& field, Phase& phase) {
  phase = read_word<Phase>(field, "not a phase");
}

// Classes that this build does not know are left out; the point keeps them as unknown members.
template <class T>
void read_value(const JsonField& field, std::map<OpClass, T>& classes) {
  std::map<std::string, T> named;
  read_value(field, named);
  classes.clear();
  for (const auto& [name, value] : named) {
    if (const std::optional<OpClass> known = from_string<OpClass>(name)) classes[*known] = value;
  }
}

template <class T>
Json to_value(const std::map<OpClass, T>& classes) {
  Json json = Json::object();
  for (const auto& [op_class, value] : classes) {
    json[std::string(to_string(op_class))] = to_value(value);
  }
  return json;
}

template <class Key, class T, std::size_t Size>
Json to_value(const std::array<std::map<Key, T>, Size>& values) {
  static_assert(Size == kNumPhases);
  Json json = Json::object();
  for (const Phase phase : kPhases) {
    json[std::string(to_string(phase))] = to_value(values[static_cast<std::size_t>(phase)]);
  }
  return json;
}

template <class Key, class T>
void read_value(const JsonField& field, std::array<std::map<Key, T>, kNumPhases>& values) {
  for (const Phase phase : kPhases) {
    read_value(field.at(to_string(phase)), values[static_cast<std::size_t>(phase)]);
  }
}

}  // namespace rematch
