// Attention and feed-forward as regions of their own, norms outside both: what torchtitan did for a
// while where flex attention met selective checkpointing (its pull request 1683).
#include <array>
#include <optional>

#include "policies/catalogue/call.h"
#include "policies/catalogue/families.h"
#include "policies/trace/in_quotes.h"
#include "policies/trace/split_at_commas.h"

namespace rematch {
namespace {

const std::vector<std::string> kAttentionScopes = {"attention", "self_attention",
                                                   "cross_attention"};
const std::vector<std::string> kFfnScopes = {"ffn", "moe"};

// `selectors`, none of which has a scope, inside each of the scopes only.
std::vector<Selector> inside(const std::vector<std::string>& scopes,
                             const std::vector<Selector>& selectors) {
  std::vector<Selector> narrowed;
  for (const std::string& scope : scopes) {
    for (const Selector& selector : selectors) {
      narrowed.push_back({"*." + scope, selector.op, selector.nth});
    }
  }
  return narrowed;
}

bool has_scope(const std::vector<Selector>& selectors) {
  for (const Selector& selector : selectors) {
    if (!selector.scope_pattern.empty()) return true;
  }
  return false;
}

bool fits_in_a_part(const Policy& policy) {
  return policy.regions.kind == RegionChoice::Kind::kBlock && !policy.inverse &&
         policy.blocks.kind == BlockChoice::Kind::kAll && !has_scope(policy.save);
}

// How the parts count matmuls, which a policy says once for all its regions: "" if they agree.
std::string difference(const Policy& a, const Policy& b) {
  if (!a.alternate || !b.alternate) return "";
  if (a.alternate->keep != b.alternate->keep) {
    return "one part keeps odd matmuls and the other even ones; use one parity";
  }
  if (a.alternate->exclude != b.alternate->exclude ||
      a.alternate->exclude_same_shapes != b.alternate->exclude_same_shapes) {
    return "the parts leave different matmuls uncounted; use one rule for both";
  }
  return "";
}

// One part under its own policy; no regions: none. Rejected: a policy that cannot rule a part.
std::variant<Policy, Rejected> part_of(const char* part, const std::vector<std::string>& scopes,
                                       std::string_view name) {
  auto parsed = parse_policy(name);
  if (std::holds_alternative<Rejected>(parsed) || name == "none") return parsed;
  Policy& policy = std::get<Policy>(parsed);
  if (!fits_in_a_part(policy)) {
    return Rejected{"sac_split: " + in_quotes(name) + " cannot rule " + part +
                    " alone; use none, full, or a policy that keeps ops of every block, such as "
                    "sac_titan"};
  }
  policy.no_effect_is_intended = false;
  policy.regions = {RegionChoice::Kind::kScopes, 0, scopes, ""};
  policy.save = inside(scopes, policy.save);
  if (policy.alternate) {
    policy.alternate->selectors = inside(scopes, policy.alternate->selectors);
  }
  return parsed;
}

template <typename Item>
void append(std::vector<Item>& all, const std::vector<Item>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// "attn: X, ffn: Y", with ':' or '='.
std::optional<std::array<std::string, 2>> parse_parts(std::string_view arguments) {
  const auto parts = split_at_commas(arguments);
  if (!parts || parts->size() != 2) return std::nullopt;
  std::array<std::string, 2> names;
  for (const std::string_view part : *parts) {
    const std::size_t sign = part.find_first_of(":=");
    if (sign == std::string_view::npos) return std::nullopt;
    const std::string_view key = trimmed(part.substr(0, sign));
    if (key != "attn" && key != "ffn") return std::nullopt;
    names[key == "attn" ? 0 : 1] = trimmed(part.substr(sign + 1));
  }
  if (names[0].empty() || names[1].empty()) return std::nullopt;
  return names;
}

std::variant<Policy, Rejected> sac_split(std::string_view arguments) {
  const auto names = parse_parts(arguments);
  if (!names) {
    return Rejected{
        "sac_split needs a policy for each part: write sac_split(attn: full, ffn: "
        "sac_titan), not (" +
        std::string(arguments) + ")"};
  }
  auto attention = part_of("attention", kAttentionScopes, (*names)[0]);
  if (auto* rejected = std::get_if<Rejected>(&attention)) return *rejected;
  auto ffn = part_of("the feed-forward", kFfnScopes, (*names)[1]);
  if (auto* rejected = std::get_if<Rejected>(&ffn)) return *rejected;
  Policy policy = std::get<Policy>(std::move(attention));
  const Policy& other = std::get<Policy>(ffn);
  if ((*names)[0] == "none") {
    policy = other;
  } else if ((*names)[1] != "none") {
    const std::string differs = difference(policy, other);
    if (!differs.empty()) return Rejected{"sac_split: " + differs};
    append(policy.regions.patterns, other.regions.patterns);
    append(policy.save, other.save);
    policy.early_stop = policy.early_stop && other.early_stop;  // one switch, as in the source
    if (!policy.alternate) {
      policy.alternate = other.alternate;
    } else if (other.alternate) {
      append(policy.alternate->selectors, other.alternate->selectors);
    }
  }
  if (policy.name != "none") {
    policy.name = "sac_split(attn: " + (*names)[0] + ", ffn: " + (*names)[1] + ")";
  }
  return policy;
}

// Compiled: blocks with experts in two regions, others in one.
Policy sac_split_flex_compiled(const std::vector<int>&) {
  Policy policy = std::get<Policy>(parse_policy("sac_titan_2025(deepseek_v3)"));
  policy.regions.kind = RegionChoice::Kind::kScopes;
  policy.regions.patterns = {"attention", "moe"};
  policy.regions.only_with = "moe";
  return policy;
}

Policy sac_split_flex_eager(const std::vector<int>&) {
  return std::get<Policy>(sac_split("attn: full, ffn: sac_titan_2025(deepseek_v3)"));
}

}  // namespace

const std::vector<PolicyFamilyEntry>& split_policies() {
  static const std::vector<PolicyFamilyEntry> entries = {
      {{"sac_split", "(attn: X, ffn: Y)",
        "attention and feed-forward as regions of their own, each under a policy; norms outside",
        "torchtitan pull request 1683"},
       PolicyArguments::kText,
       nullptr,
       sac_split,
       "attn: full, ffn: sac_titan"},
      {{"sac_split_flex_compiled", "",
        "blocks with experts: attention and experts apart, each keeping every second mm; others "
        "whole",
        "torchtitan pull request 1683, compiled"},
       PolicyArguments::kNoArguments,
       sac_split_flex_compiled},
      {{"sac_split_flex_eager", "",
        "attention recomputed whole, of the feed-forward every second mm kept",
        "torchtitan pull request 1683, eager"},
       PolicyArguments::kNoArguments,
       sac_split_flex_eager},
  };
  return entries;
}

}  // namespace rematch
