// The entries of the catalogue by family, and helpers that their factories share. Private to
// policies/catalogue; other code includes catalogue.h.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/scope/names.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"

namespace rematch {

std::vector<CatalogueEntry> layer_policies();
std::vector<CatalogueEntry> save_list_policies();
std::vector<CatalogueEntry> alternating_policies();
std::vector<CatalogueEntry> region_policies();
std::vector<CatalogueEntry> module_policies();
std::vector<CatalogueEntry> maxtext_policies();
std::vector<CatalogueEntry> collective_policies();
std::vector<CatalogueEntry> offloading_policies();
std::vector<CatalogueEntry> remat_policies();
std::vector<CatalogueEntry> titan_region_policies();

// The names that users may list in recompute_modules, offload_modules, sac_modalities and
// remat_titan.
std::vector<std::string_view> recomputable_modules();
std::vector<std::string_view> offloadable_modules();
std::vector<std::string_view> modalities_keys();
std::vector<std::string_view> titan_region_names();

// The arguments "save=[a,b]" and "recompute=[c]" of a policy that names regions.
struct RegionLists {
  std::vector<std::string> save;
  std::vector<std::string> recompute;
};
// Parses the lists `save` and `recompute`; `recompute` may be missing. Returns nullopt if `words`
// contain anything else.
std::optional<RegionLists> parse_region_lists(const std::vector<std::string>& words);
// Returns the call in its canonical spelling.
std::string to_string(const std::string& name, const RegionLists& lists);

// Parses a policy inside another policy, such as `full` in `keep_collectives(full)`. `words` must
// be the inner policy's name. Returns the inner policy, renamed `name(word)`. Rejects a policy
// file. The error tells the user to set the keys `file_keys` in that file instead.
std::variant<Policy, Rejected> policy_within(const std::string& name,
                                             const std::vector<std::string>& words,
                                             const std::string& file_keys);

// Returns the text of a selector inside scopes: in_scope({kMoe, kExperts}, "matmul#1") is
// "*.moe.experts::matmul#1".
inline std::string in_scope(std::initializer_list<std::string_view> names, std::string_view op) {
  return "*." + scope_names::path(names) + "::" + std::string(op);
}

// Like in_scope(), but also matches scopes whose names end in the first of `names`:
// "*attention.output::result" matches self_attention and cross_attention.
inline std::string in_any_scope(std::initializer_list<std::string_view> names,
                                std::string_view op) {
  return "*" + scope_names::path(names) + "::" + std::string(op);
}

// Parses the catalogue's own selectors, written as text: "*.ffn::matmul#1".
std::vector<Selector> selectors(const std::vector<std::string_view>& texts);

// Selects the inputs of attention: query and key after norm and rotary embedding, and value.
const std::vector<Selector>& query_key_value();

// Returns a policy under which every block is a region that keeps the selected ops and recomputes
// the rest.
Policy keeping(const std::vector<std::string_view>& texts);

// Returns an error if `module` is a module of Megatron-LM that no model here has, and nullopt
// otherwise.
std::optional<Rejected> absent_module(const std::string& policy, const std::string& module);

// Returns one expectation for each module that recompute_modules accepts: the model has the module.
std::vector<Policy::Expectation> module_expectations();

template <typename Item>
void append(std::vector<Item>& all, const std::vector<Item>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace rematch
