// The policy `remat`, which imitates torch_remat. The user lists the scopes and ops that recompute
// skips.
//
// Note [Saved regions] torch_remat checkpoints a block and runs it again to its end, without early
// stop. It skips the saved regions: calls that the user marked with recompute=False. The tensors
// that autograd saved in such a call are kept, except the call's inputs, which recompute produces
// again. If recompute reads a result of the call outside the call, the result is also kept
// (recompute_needs_tensor).
//
// Here a saved region is a scope or a single op. If one result of an op is needed, all its results
// are kept. Two kinds of ops in a saved region still run again: views that something reads, and ops
// whose result is written in place later. Source: torch_remat 0.2.2, _api.py.
#include <algorithm>
#include <optional>

#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/catalogue/families/families.h"

namespace rematch {
namespace {

constexpr const char* kForm = "remat(save=[attention], recompute=[])";

// Parses a saved region: a scope inside a block, such as "attention", or a selector, such as
// "ffn::matmul#2".
std::variant<Selector, Rejected> parse_region(const std::string& word) {
  if (word == "*") {
    return Rejected{
        "remat: '*' matches every scope, so nothing would be recomputed; use the policy none "
        "instead"};
  }
  const bool is_scope = word.find("::") == std::string::npos;
  return parse_selector("*." + word + (is_scope ? "::any" : ""));
}

// Parses the words "a" and "b" of "key=[a,b]". Returns nullopt if the text does not have this form.
std::optional<std::vector<std::string>> list_of(std::string_view text, std::string_view key) {
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos || trimmed(text.substr(0, sign)) != key) return std::nullopt;
  text = trimmed(text.substr(sign + 1));
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  text = trimmed(text.substr(1, text.size() - 2));
  std::vector<std::string> words;
  if (text.empty()) return words;
  const auto parts = split_at_commas(text);
  if (!parts) return std::nullopt;
  for (std::string_view part : *parts) {
    if (part.size() >= 2 && part.front() == part.back() &&
        (part.front() == '"' || part.front() == '\'')) {
      part = trimmed(part.substr(1, part.size() - 2));
    }
    if (part.empty()) return std::nullopt;
    words.emplace_back(part);
  }
  return words;
}

// Adds the regions to the policy. Also adds an expectation for each region, so that a model without
// the region gets a warning.
std::optional<Rejected> add_regions(const std::vector<std::string>& words,
                                    std::vector<Selector>& regions, Policy& policy) {
  for (const std::string& word : words) {
    auto region = parse_region(word);
    if (auto* rejected = std::get_if<Rejected>(&region)) return *rejected;
    if (std::find(regions.begin(), regions.end(), std::get<Selector>(region)) != regions.end()) {
      return Rejected{"remat names the region " + word + " twice; name it once"};
    }
    regions.push_back(std::get<Selector>(std::move(region)));
    policy.expectations.push_back({.ops = {regions.back()}});
  }
  return std::nullopt;
}

std::variant<Policy, Rejected> remat(const std::vector<std::string>& words) {
  const auto lists = parse_region_lists(words);
  if (!lists) {
    return Rejected{"remat needs the list of saved regions: write " + std::string(kForm) +
                    ", not (" + joined(words) + ")"};
  }
  if (lists->save.empty() && !lists->recompute.empty()) {
    return Rejected{"remat saves nothing, so everything is recomputed; leave out recompute"};
  }
  Policy policy;
  policy.early_stop = false;
  for (const auto& [given, regions] : {std::pair(&lists->save, &policy.save_regions),
                                       std::pair(&lists->recompute, &policy.recompute_regions)}) {
    if (auto rejected = add_regions(*given, *regions, policy)) return *std::move(rejected);
  }
  policy.name = to_string("remat", *lists);
  return policy;
}

}  // namespace

std::optional<RegionLists> parse_region_lists(const std::vector<std::string>& words) {
  RegionLists lists;
  bool has_save = false;
  bool has_recompute = false;
  for (const std::string& word : words) {
    if (auto save = list_of(word, "save"); save && !has_save) {
      lists.save = *std::move(save);
      has_save = true;
    } else if (auto recompute = list_of(word, "recompute"); recompute && !has_recompute) {
      lists.recompute = *std::move(recompute);
      has_recompute = true;
    } else {
      return std::nullopt;
    }
  }
  if (!has_save) return std::nullopt;
  return lists;
}

std::string to_string(const std::string& name, const RegionLists& lists) {
  std::string text = name + "(save=[" + joined(lists.save, ",") + "]";
  if (!lists.recompute.empty()) text += ",recompute=[" + joined(lists.recompute, ",") + "]";
  return text + ")";
}

std::vector<CatalogueEntry> remat_policies() {
  return {
      {"remat(save=[REGION,...],recompute=[REGION,...])",
       "torch_remat: recompute every block to its end, except the saved regions: scopes or "
       "selectors inside a block",
       remat},
  };
}

}  // namespace rematch
