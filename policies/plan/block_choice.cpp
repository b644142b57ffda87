#include "policies/plan/block_choice.h"

#include <algorithm>
#include <array>

namespace rematch {
namespace {

using Kind = BlockChoice::Kind;
using enum ChoiceArgument;

bool is_listed(const BlockChoice& choice, int layer) {
  return std::find(choice.indices.begin(), choice.indices.end(), layer) != choice.indices.end();
}

// c: the choice; i: the layer; num: how many there are.
// clang-format off
constexpr std::array kRules = {
    BlockRule{Kind::kNone, "none", kNone, [](const BlockChoice&, int, int) { return false; }},
    BlockRule{Kind::kAll, "all", kNone, [](const BlockChoice&, int, int) { return true; }},
    // FastVideo block_skip, diffusers
    BlockRule{Kind::kNthFirst, "nth_first", kCount, [](const BlockChoice& c, int i, int) { return i % c.n == 0; }},
    // torchtune, modalities, torchtitan's retired layer mode
    BlockRule{Kind::kNthLast, "nth_last", kCount, [](const BlockChoice& c, int i, int) { return (i + 1) % c.n == 0; }},
    // all but every n-th
    BlockRule{Kind::kSkipNth, "skip_nth", kCount, [](const BlockChoice& c, int i, int) { return i % c.n != 0; }},
    // Megatron block
    BlockRule{Kind::kFirst, "first", kCount, [](const BlockChoice& c, int i, int) { return i < c.n; }},
    BlockRule{Kind::kLast, "last", kCount, [](const BlockChoice& c, int i, int num) { return i >= num - c.n; }},
    BlockRule{Kind::kOnly, "only", kList, [](const BlockChoice& c, int i, int) { return is_listed(c, i); }},
    BlockRule{Kind::kExcept, "except", kList, [](const BlockChoice& c, int i, int) { return !is_listed(c, i); }},
};
// clang-format on

}  // namespace

std::span<const BlockRule> block_rules() { return kRules; }

const BlockRule& rule_of(BlockChoice::Kind kind) {
  return *std::find_if(kRules.begin(), kRules.end(),
                       [kind](const BlockRule& rule) { return rule.kind == kind; });
}

}  // namespace rematch
