// Checks that policies use only scope names that models open, because other names would match
// nothing.
#include "models/scope/names.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "policies/catalogue/catalogue.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// Returns a call of every catalogue entry. The arguments cover all of the entry's selectors.
std::vector<std::string> catalogue_calls() {
  std::vector<std::string> calls;
  for (const CatalogueEntry& entry : catalogue()) {
    std::string call(entry.name);
    if (entry.parameters == "(N)") call += "(2)";
    if (entry.parameters == "([I,...])") call += "([2])";
    if (entry.parameters == "(MODEL)") call += "(deepseek_v3)";
    if (entry.parameters == "(KEY,...)") call += "(aten.mm)";
    if (entry.parameters == "(attn: X, ffn: Y)") call += "(attn: full, ffn: sac_titan)";
    if (entry.name == "recompute_modules") {
      calls.push_back(call + "([core_attn,mlp,moe,shared_experts])");
      call += "([core_attn,mlp,moe,shared_experts,layernorm,moe_act,mla_up_proj])";
    }
    if (entry.name == "offload_modules") {
      call +=
          "([layer_input,attn_norm,qkv_linear,core_attn,attn_proj,mlp_norm,expert_fc1,moe_act])";
    }
    if (entry.name == "remat_titan") call += "(save=[*])";
    if (entry.name == "remat_custom") {
      call +=
          "(context=device,query_proj=device,key_proj=device,value_proj=device,out_proj=device,"
          "mlpwi_0=device,mlpwi_1=device,mlpwo=device,moe_mlpwi_0=device,moe_mlpwi_1=device,"
          "moe_mlpwo=offload,kv_wa_proj=device)";
    }
    if (entry.name == "remat") call += "(save=[attention,ffn::matmul#1],recompute=[ffn])";
    if (entry.parameters == "([SCOPE,...])") call += "([attention.output])";
    if (entry.parameters == "(POLICY)") call += "(attn_only_self)";
    if (entry.parameters == "(SELECTOR,...)") call += "(attention_forward)";
    calls.push_back(call);
  }
  return calls;
}

std::vector<std::string> patterns_of(const Policy& policy) {
  std::vector<std::string> patterns = policy.regions.patterns;
  const auto add = [&](const std::vector<Selector>& selectors) {
    for (const Selector& selector : selectors) patterns.push_back(selector.scope_pattern);
  };
  patterns.push_back(policy.regions.only_with);
  add(policy.save);
  add(policy.moved_to[Store::kHost].results);
  add(policy.exclude);
  add(policy.recompute);
  add(policy.save_regions);
  add(policy.recompute_regions);
  if (policy.alternate) add(policy.alternate->selectors);
  if (policy.alternate) add(policy.alternate->exclude);
  for (const Policy::Expectation& expected : policy.expectations) {
    patterns.insert(patterns.end(), expected.scopes.begin(), expected.scopes.end());
    add(expected.ops);
  }
  return patterns;
}

// Returns the names in a pattern, such as attention and output for "*attention.output*".
std::vector<std::string> names_in(std::string pattern) {
  std::erase(pattern, '*');
  std::vector<std::string> names;
  std::istringstream parts(pattern);
  for (std::string name; std::getline(parts, name, '.');) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

TEST_CASE("catalogue policies mention only scopes that models open") {
  std::set<std::string> matched;
  for (const std::string& call : catalogue_calls()) {
    CAPTURE(call);
    auto parsed = parse_policy(call);
    REQUIRE(std::holds_alternative<Policy>(parsed));
    for (const std::string& pattern : patterns_of(std::get<Policy>(parsed))) {
      CAPTURE(pattern);
      for (const std::string& name : names_in(pattern)) {
        CHECK(std::count(scope_names::kAll.begin(), scope_names::kAll.end(), name) == 1);
        matched.insert(name);
      }
    }
  }
  CHECK(matched.size() > 20);
}

}  // namespace
}  // namespace rematch
