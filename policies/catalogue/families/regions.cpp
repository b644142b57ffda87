// Policies whose regions are not blocks. A region is a group of adjacent layers, the whole model,
// or a part of a block.
//
// Note [Split regions]
// sac_split makes attention and feed-forward separate regions, with the norms outside both.
// torchtitan did this for a while to combine flex attention with selective checkpointing (its pull
// request 1683).
#include <algorithm>
#include <array>
#include <optional>

#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/catalogue/families/families.h"

namespace rematch {
namespace {

Policy segments(int n) {
  Policy policy;
  policy.regions.kind = RegionChoice::Kind::kSegments;
  policy.regions.n = n;
  policy.no_effect_is_intended = n == 1;  // a segment of one layer is a block
  return policy;
}

Policy root() {
  Policy policy;
  policy.regions.kind = RegionChoice::Kind::kRoot;
  return policy;
}

// FastVideo's mode `ops`, exactly as in FastVideo: it counts matmuls over the whole model, and its
// list lacks aten::addmm, the op of a linear with a bias.
Policy ops_root() {
  Policy policy = root();
  policy.save = selectors({"_c10d_functional::reduce_scatter_tensor",
                           "aten::_scaled_dot_product_efficient_attention",
                           "aten::_scaled_dot_product_flash_attention"});
  policy.alternate = Alternation{selectors({"aten::mm"}), {}, Alternation::Keep::kOdd};
  policy.exact_names = true;
  return policy;
}

using scope_names::kAttention;
using scope_names::kCrossAttention;
using scope_names::kFfn;
using scope_names::kMoe;
using scope_names::kSelfAttention;

const std::vector<std::string> kAttentionScopes = {
    std::string(kAttention), std::string(kSelfAttention), std::string(kCrossAttention)};
const std::vector<std::string> kFfnScopes = {std::string(kFfn), std::string(kMoe)};

// Returns a copy of each selector for each scope. `selectors` must not have scopes.
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

bool fits_in_a_part(const Policy& policy) {
  return policy.regions.kind == RegionChoice::Kind::kBlock && !policy.inverse &&
         policy.blocks.kind == BlockChoice::Kind::kAll &&
         std::all_of(policy.save.begin(), policy.save.end(),
                     [](const Selector& selector) { return selector.scope_pattern.empty(); });
}

// Compares how two policies count matmuls, because a policy can have only one such rule. Returns
// the difference as text, or "".
std::string difference(const Policy& a, const Policy& b) {
  if (!a.alternate || !b.alternate) return "";
  if (a.alternate->keep != b.alternate->keep) {
    return "one part keeps odd matmuls and the other part keeps even matmuls; use the same rule "
           "for both parts";
  }
  if (a.alternate->exclude != b.alternate->exclude ||
      a.alternate->exclude_same_shapes != b.alternate->exclude_same_shapes) {
    return "the parts exclude different matmuls from the count; use one rule for both parts";
  }
  return "";
}

// Returns the policy of one part of a block. "none" gives a policy without regions. Returns
// Rejected if the named policy cannot apply to a single part.
std::variant<Policy, Rejected> part_of(const char* part, const std::vector<std::string>& scopes,
                                       std::string_view name) {
  auto parsed = parse_policy(name);
  if (std::holds_alternative<Rejected>(parsed) || name == "none") return parsed;
  Policy& policy = std::get<Policy>(parsed);
  if (!fits_in_a_part(policy)) {
    return Rejected{
        "sac_split: " + in_quotes(name) + " cannot apply to " + part +
        " alone; use none, full, or a policy such as sac_titan, which keeps ops of every block"};
  }
  policy.no_effect_is_intended = false;
  policy.regions = {RegionChoice::Kind::kScopes, 0, scopes, ""};
  policy.save = inside(scopes, policy.save);
  if (policy.alternate) {
    policy.alternate->selectors = inside(scopes, policy.alternate->selectors);
  }
  policy.expectations.push_back({.scopes = scopes,
                                 .warning = std::string("no block has a scope of ") + part + " (" +
                                            joined(scopes) + "), so its policy does nothing"});
  return parsed;
}

// Parses "attn: X" and "ffn: Y", in any order, with ':' or '='.
std::optional<std::array<std::string, 2>> parse_parts(const std::vector<std::string>& words) {
  std::array<std::string, 2> names;
  for (const std::string_view word : words) {
    const std::size_t sign = word.find_first_of(":=");
    if (sign == std::string_view::npos) return std::nullopt;
    const std::string_view key = trimmed(word.substr(0, sign));
    if (key != "attn" && key != "ffn") return std::nullopt;
    names[key == "attn" ? 0 : 1] = trimmed(word.substr(sign + 1));
  }
  if (words.size() != 2 || names[0].empty() || names[1].empty()) return std::nullopt;
  return names;
}

std::variant<Policy, Rejected> sac_split(const std::vector<std::string>& words) {
  const auto names = parse_parts(words);
  if (!names) {
    return Rejected{
        "sac_split needs a policy for each part: write sac_split(attn: full, ffn: sac_titan); ffn "
        "also covers experts; found (" +
        joined(words) + ")"};
  }
  const auto& [of_attention, of_ffn] = *names;
  auto attention = part_of("attention", kAttentionScopes, of_attention);
  if (auto* rejected = std::get_if<Rejected>(&attention)) return *rejected;
  auto ffn = part_of("the feed-forward", kFfnScopes, of_ffn);
  if (auto* rejected = std::get_if<Rejected>(&ffn)) return *rejected;
  Policy policy = std::get<Policy>(std::move(attention));
  const Policy& other = std::get<Policy>(ffn);
  if (of_attention == "none") {
    policy = other;
  } else if (of_ffn != "none") {
    const std::string differs = difference(policy, other);
    if (!differs.empty()) return Rejected{"sac_split: " + differs};
    append(policy.regions.patterns, other.regions.patterns);
    append(policy.save, other.save);
    append(policy.expectations, other.expectations);
    if (policy.note.empty()) policy.note = other.note;
    // the system that sac_split imitates has one early-stop switch for both parts
    policy.early_stop = policy.early_stop && other.early_stop;
    if (!policy.alternate) {
      policy.alternate = other.alternate;
    } else if (other.alternate) {
      append(policy.alternate->selectors, other.alternate->selectors);
    }
  }
  if (policy.name != "none") {
    policy.name = "sac_split(attn: " + of_attention + ", ffn: " + of_ffn + ")";
  }
  return policy;
}

// FastVideo's compiled variant splits blocks with experts into two regions, and leaves other blocks
// whole.
Policy sac_split_flex_compiled() {
  Policy policy = std::get<Policy>(parse_policy("sac_titan_2025(deepseek_v3)"));
  policy.regions.kind = RegionChoice::Kind::kScopes;
  policy.regions.patterns = {std::string(kAttention), std::string(kMoe)};
  policy.regions.only_with = kMoe;
  policy.name.clear();
  return policy;
}

Policy sac_split_flex_eager() {
  Policy policy = std::get<Policy>(sac_split({"attn: full", "ffn: sac_titan_2025(deepseek_v3)"}));
  policy.name.clear();
  return policy;
}

}  // namespace

std::vector<CatalogueEntry> region_policies() {
  return {
      {"segments(N)", "recompute N layers at a time, keep the input of each segment", segments},
      {"root", "one region for the whole model except the loss", root},
      {"ops_root",
       "one region for the whole model; keep SDPA and every second mm, matched by exact op name: "
       "FastVideo's ops mode",
       ops_root},
      {"sac_split(attn: X, ffn: Y)",
       "attention and feed-forward are separate regions, each with its own policy; norms stay "
       "outside the regions "
       "(torchtitan's pull request 1683)",
       sac_split},
      {"sac_split_flex_compiled",
       "split blocks with experts into attention and experts, and keep every second mm in each "
       "part; other blocks are one region",
       sac_split_flex_compiled},
      {"sac_split_flex_eager",
       "recompute all of attention, keep every second mm of the feed-forward",
       sac_split_flex_eager},
  };
}

}  // namespace rematch
