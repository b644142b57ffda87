// Random policies and selectors for RapidCheck. They cover everything that a policy file can
// express. Small values come first.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "policies/base/json.h"
#include "policies/plan/policy.h"
#include "policies/plan/policy_json.h"
#include "tests/support/property.h"

namespace rematch {

// RapidCheck prints a counterexample as the policy file that expresses it.
inline void showValue(const Policy& policy, std::ostream& out) {
  out << policy_to_json(policy).dump();
}
inline void showValue(const Selector& selector, std::ostream& out) { out << to_string(selector); }

}  // namespace rematch

namespace rematch::testing {

inline rc::Gen<std::string> arbitrary_scope_pattern() {
  return rc::gen::element<std::string>("", "*", "*.attention", "*.ffn", "blocks.1", "blocks.*",
                                       "head", "*.moe.router.gate", "nowhere");
}

inline rc::Gen<Selector> arbitrary_selector() {
  return rc::gen::exec([] {
    Selector selector;
    selector.scope_pattern = *arbitrary_scope_pattern();
    selector.op = *rc::gen::element<std::string>(
        "matmul", "aten::mm", "aten::addmm", "attention_forward", "elementwise", "aten::mul.Tensor",
        "rematch::attention", "aten::_scaled_dot_product_flash_attention", "view", "reduction",
        "collective", "mylib::fast_op", "result", "any");
    if (*rc::gen::arbitrary<bool>()) selector.nth = *rc::gen::inRange(1, 5);
    return selector;
  });
}

inline rc::Gen<std::vector<Selector>> arbitrary_selectors() {
  return rc::gen::container<std::vector<Selector>>(arbitrary_selector());
}

inline rc::Gen<BlockChoice> arbitrary_blocks() {
  return rc::gen::exec([] {
    const BlockRule& rule = kBlockRules[*rc::gen::inRange<std::size_t>(0, kBlockRules.size())];
    BlockChoice blocks;
    blocks.kind = rule.kind;
    if (rule.argument == ChoiceArgument::kCount) blocks.n = *rc::gen::inRange(1, 7);
    if (rule.argument == ChoiceArgument::kList) {
      blocks.indices = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6));
    }
    return blocks;
  });
}

inline rc::Gen<RegionChoice> arbitrary_regions() {
  return rc::gen::exec([] {
    using Kind = RegionChoice::Kind;
    RegionChoice regions;
    regions.kind = *rc::gen::element(Kind::kBlock, Kind::kSegments, Kind::kRoot, Kind::kScopes);
    if (regions.kind == Kind::kSegments) regions.n = *rc::gen::inRange(1, 6);
    if (regions.kind == Kind::kScopes) {
      regions.patterns = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
          rc::gen::element<std::string>("attention", "ffn", "*", "moe")));
      if (*rc::gen::arbitrary<bool>()) regions.only_with = *rc::gen::element("ffn", "moe");
    }
    return regions;
  });
}

inline rc::Gen<Alternation> arbitrary_alternation() {
  return rc::gen::exec([] {
    Alternation alternate;
    alternate.selectors = *rc::gen::nonEmpty(arbitrary_selectors());
    alternate.exclude = *arbitrary_selectors();
    alternate.keep = *rc::gen::element(Alternation::Keep::kOdd, Alternation::Keep::kEven);
    alternate.exclude_same_shapes = *rc::gen::arbitrary<bool>();
    return alternate;
  });
}

inline rc::Gen<Policy> arbitrary_policy() {
  return rc::gen::exec([] {
    Policy policy;
    policy.name =
        *rc::gen::element<std::string>("mine", "a \"quoted\" name", "p\xc3\xa9ter", "x(1)");
    policy.blocks = *arbitrary_blocks();
    policy.regions = *arbitrary_regions();
    policy.inverse = *rc::gen::weightedElement<bool>({{3, false}, {1, true}});
    if (policy.inverse) {
      policy.recompute = *arbitrary_selectors();
    } else if (*rc::gen::weightedElement<bool>({{3, false}, {1, true}})) {
      policy.save_regions = *rc::gen::nonEmpty(arbitrary_selectors());
      policy.recompute_regions = *arbitrary_selectors();
      policy.save_last_add = *rc::gen::arbitrary<bool>();
    } else {
      policy.save = *arbitrary_selectors();
      if (*rc::gen::arbitrary<bool>()) policy.alternate = *arbitrary_alternation();
    }
    policy.moved_to[Store::kHost].results = *arbitrary_selectors();
    policy.exclude = *arbitrary_selectors();
    policy.exact_names = *rc::gen::arbitrary<bool>();
    policy.collectives = *rc::gen::element(CollectiveRule::kAsListed, CollectiveRule::kKeep,
                                           CollectiveRule::kReissue);
    policy.reshard_after_forward = *rc::gen::arbitrary<bool>();
    policy.moved_to[Store::kHost].saved = *rc::gen::arbitrary<bool>();
    policy.moved_to[Store::kHost].inputs = *rc::gen::arbitrary<bool>();
    policy.moved_to[Store::kHost].at_least = {*rc::gen::inRange<std::int64_t>(0, 1 << 20)};
    policy.early_stop = *rc::gen::arbitrary<bool>();
    policy.no_effect_is_intended = *rc::gen::arbitrary<bool>();
    return policy;
  });
}

}  // namespace rematch::testing
