#include "tests/support/hazards/plan_families.h"

#include <random>
#include <utility>
#include <variant>

#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "tests/support/networks.h"
#include "tests/support/random_plan.h"
#include "tests/support/seeds.h"

namespace rematch::testing::hazards {
namespace {

constexpr std::uint32_t kMasks = 2;
constexpr std::uint32_t kRandomPlans = 3;

PlanFamily of_policy(const std::string& name, const Policy& policy) {
  return {name, [policy](const Trace&, const Resolver& resolver) -> std::optional<Plan> {
            auto result = resolver.resolve(policy, NoEffect::kAllow);
            if (std::holds_alternative<Rejected>(result)) return std::nullopt;
            return std::get<Plan>(std::move(result));
          }};
}

PlanFamily named(const std::string& policy) {
  return of_policy(policy, std::get<Policy>(parse_policy(policy)));
}

PlanFamily keeping(const std::string& selector) {
  Policy policy{.name = "save " + selector};
  policy.save = {std::get<Selector>(parse_selector(selector))};
  return of_policy(policy.name, policy);
}

// Keeps every useful result, except the results of the ops that `selector` picks.
PlanFamily recomputing(const std::string& selector) {
  Policy policy{.name = "recompute " + selector};
  policy.inverse = true;
  policy.recompute = {std::get<Selector>(parse_selector(selector))};
  return of_policy(policy.name, policy);
}

// Makes a region for each scope inside the blocks that matches one of the patterns.
PlanFamily scopes(const std::vector<std::string>& patterns) {
  Policy policy{.name = "scopes"};
  for (const std::string& pattern : patterns) policy.name += " " + pattern;
  policy.regions = {.kind = RegionChoice::Kind::kScopes, .patterns = patterns};
  return of_policy(policy.name, policy);
}

PlanFamily every_second(const std::string& selector) {
  Policy policy{.name = "every second " + selector};
  policy.alternate = Alternation{.selectors = {std::get<Selector>(parse_selector(selector))}};
  return of_policy(policy.name, policy);
}

PlanFamily mask(const std::string& name, const std::function<bool(int layer, int op)>& save,
                bool early_stop) {
  return {name, [=](const Trace& trace, const Resolver&) {
            return plan_of_blocks(trace, save, early_stop);
          }};
}

std::vector<PlanFamily> by_name() {
  std::vector<PlanFamily> families = {
      {"none", [](const Trace&, const Resolver&) { return Plan{}; }}};
  for (const char* policy :
       {"full", "full_nostop", "nth_first(2)", "nth_last(2)", "skip_nth(2)", "segments(2)", "root",
        "attn_only", "save_mm", "save_compute", "sac_titan", "only_list([1])"}) {
    families.push_back(named(policy));
  }
  return families;
}

std::vector<PlanFamily> by_choice() {
  std::vector<PlanFamily> families;
  for (const char* selector :
       {"matmul", "attention_forward", "norm", "elementwise", "reduction", "copy", "embedding",
        "random", "other", "aten::mm", "aten::sin", "aten::clone"}) {
    families.push_back(keeping(selector));
  }
  for (const char* selector : {"matmul", "elementwise"}) {
    families.push_back(recomputing(selector));
  }
  families.push_back(every_second("elementwise"));
  families.push_back(every_second("matmul"));
  families.push_back(scopes({"core"}));
  families.push_back(scopes({"tail"}));
  families.push_back(scopes({"core", "tail"}));
  families.push_back(scopes({"core.*"}));
  return families;
}

std::vector<PlanFamily> by_mask() {
  std::vector<PlanFamily> families = {
      mask(
          "save all", [](int, int) { return true; }, true),
      mask(
          "save every second", [](int, int op) { return op % 2 == 0; }, true),
      mask(
          "save every third", [](int, int op) { return op % 3 == 1; }, false),
  };
  for (std::uint32_t seed = 0; seed < num_seeds(kMasks); ++seed) {
    families.push_back(mask(
        "mask " + std::to_string(seed),
        [seed](int layer, int op) {
          std::mt19937 bits(seed * 7919U + static_cast<std::uint32_t>(layer * 131 + op));
          return (bits() & 1U) != 0;
        },
        seed % 2 == 0));
  }
  for (std::uint32_t seed = 0; seed < num_seeds(kRandomPlans); ++seed) {
    families.push_back(
        {"random plan " + std::to_string(seed),
         [seed](const Trace& trace, const Resolver&) { return random_plan(trace, seed); }});
  }
  return families;
}

}  // namespace

const std::vector<PlanFamily>& plan_families() {
  static const std::vector<PlanFamily> all = [] {
    std::vector<PlanFamily> families = by_name();
    for (const auto& more : {by_choice(), by_mask()}) {
      families.insert(families.end(), more.begin(), more.end());
    }
    for (PlanFamily& family : families) {
      family.for_every_backward = family.name == "full" || family.name == "full_nostop" ||
                                  family.name == "save every second" ||
                                  family.name == "random plan 1" || family.name == "scopes core.*";
    }
    return families;
  }();
  return all;
}

}  // namespace rematch::testing::hazards
