// Which layers of each block list a policy governs. A choice is an enumerator here, a line of the
// table in block_choice.cpp, which spells it and decides, and an entry in
// reports/schema/policy.schema.json.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rematch {

// `indices` and `n` are layer indices from 0.
struct BlockChoice {
  enum class Kind : std::uint8_t {
    kNone,
    kAll,
    kNthFirst,
    kNthLast,
    kSkipNth,
    kFirst,
    kLast,
    kOnly,
    kExcept,
  };
  Kind kind = Kind::kAll;
  int n = 0;
  std::vector<int> indices;
  bool operator==(const BlockChoice&) const = default;
};

// What a choice is written with in a policy file: nothing, N, or a list.
enum class ChoiceArgument : std::uint8_t { kNone, kCount, kList };

struct BlockRule {
  BlockChoice::Kind kind;
  std::string_view name;  // in JSON
  ChoiceArgument argument;
  bool (*chooses)(const BlockChoice& choice, int layer, int num_layers);
};

std::span<const BlockRule> block_rules();
const BlockRule& rule_of(BlockChoice::Kind kind);

}  // namespace rematch
