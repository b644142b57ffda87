// Reads and writes values for each phase as JSON: {"forward": {}, "recompute": {}, "backward": {},
// "optimizer": {}}. Every phase is always present.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>

#include "policies/base/field_value.h"
#include "policies/trace/phase.h"

namespace rematch {

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
