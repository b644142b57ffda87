// One group of a sweep file: its models, policies, axes with their values, and skipped
// combinations. The reader checks that each value has the type that its axis requires. The reader
// does not check whether a model supports a combination.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/base/json.h"

namespace rematch {

// The value of an axis: a number or, if the axis is not a dimension, a word.
struct AxisValue {
  std::int64_t number = 0;
  std::string word;
  bool operator==(const AxisValue&) const = default;
};
std::string text_of(const AxisValue& value);

bool is_word_axis(std::string_view name);

using AxisValues =
    std::vector<std::pair<std::string, AxisValue>>;  // axes and their values, in the file's order

struct Axis {
  std::string name;
  std::vector<AxisValue> values;  // a single value if the axis is fixed
};

// A combination of values that is skipped.
struct Skip {
  JsonField field;
  AxisValues values;
  bool has_matched = false;
};

struct SweepGroup {
  std::string path;
  std::vector<std::string> models;
  std::vector<std::string> policies;  // canonical spellings
  std::string schedule;
  std::vector<std::int64_t> seeds;
  int num_repeats = 0;
  std::vector<Axis> axes;
  std::vector<Skip> skips;
};

// `field` must outlive the group. Throws FormatError, with the path inside the file.
SweepGroup sweep_group_from_json(const JsonField& field);

// Returns whether a skip matches the values. Marks the skips that match.
bool is_skipped(std::vector<Skip>& skips, const AxisValues& values);

}  // namespace rematch
