// Defines how a policy chooses layers from each list of blocks. A new choice needs an enumerator, a
// row with its name and rule in the table here, and an entry in reports/schema/policy.schema.json.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rematch {

// `indices` are layer indices from 0. `n` is the number that some choices take, such as
// nth_first(2).
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

// The argument that a choice has in a policy file: nothing, a number, or a list.
enum class ChoiceArgument : std::uint8_t { kNone, kCount, kList };

struct BlockRule {
  BlockChoice::Kind kind;
  std::string_view name;  // name in JSON
  ChoiceArgument argument;
  // Returns whether choice `c` includes layer `i` of `num` layers.
  bool (*chooses)(const BlockChoice& c, int i, int num);
};

inline bool is_listed(const BlockChoice& choice, int layer) {
  return std::find(choice.indices.begin(), choice.indices.end(), layer) != choice.indices.end();
}

// clang-format off
inline constexpr std::array kBlockRules = [] {
  using Choice = BlockChoice;
  using Kind = BlockChoice::Kind;
  using Takes = ChoiceArgument;
  return std::array{
    BlockRule{Kind::kNone, "none", Takes::kNone, [](const Choice&, int, int) { return false; }},
    BlockRule{Kind::kAll, "all", Takes::kNone, [](const Choice&, int, int) { return true; }},
    // FastVideo's block_skip and diffusers use this rule.
    BlockRule{Kind::kNthFirst, "nth_first", Takes::kCount, [](const Choice& c, int i, int) { return i % c.n == 0; }},
    // The frameworks torchtune and modalities use this rule. torchtitan used it until March 2026.
    BlockRule{Kind::kNthLast, "nth_last", Takes::kCount, [](const Choice& c, int i, int) { return (i + 1) % c.n == 0; }},
    // Chooses all layers except every n-th.
    BlockRule{Kind::kSkipNth, "skip_nth", Takes::kCount, [](const Choice& c, int i, int) { return i % c.n != 0; }},
    // Megatron-LM's method "block" uses this rule.
    BlockRule{Kind::kFirst, "first", Takes::kCount, [](const Choice& c, int i, int) { return i < c.n; }},
    BlockRule{Kind::kLast, "last", Takes::kCount, [](const Choice& c, int i, int num) { return i >= num - c.n; }},
    BlockRule{Kind::kOnly, "only", Takes::kList, [](const Choice& c, int i, int) { return is_listed(c, i); }},
    BlockRule{Kind::kExcept, "except", Takes::kList, [](const Choice& c, int i, int) { return !is_listed(c, i); }},
  };
}();
// clang-format on

inline const BlockRule& rule_of(BlockChoice::Kind kind) {
  return *std::find_if(kBlockRules.begin(), kBlockRules.end(),
                       [kind](const BlockRule& rule) { return rule.kind == kind; });
}

}  // namespace rematch
