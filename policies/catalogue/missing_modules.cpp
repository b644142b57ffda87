#include "policies/catalogue/missing_modules.h"

#include <functional>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/catalogue/call.h"
#include "policies/catalogue/families/families.h"
#include "policies/catalogue/place_regions.h"
#include "policies/catalogue/systems.h"
#include "policies/catalogue/treat_ops.h"
#include "policies/trace/joined.h"

namespace rematch {
namespace {

bool has_module(const Trace& trace, std::string_view module) {
  const auto parsed = parse_policy("recompute_modules([" + std::string(module) + "])");
  const Policy& alone = std::get<Policy>(parsed);
  const auto placed = place_regions(alone, trace);
  const auto* regions = std::get_if<std::vector<PlacedRegion>>(&placed);
  if (regions == nullptr) return false;
  std::vector<OpRange> ranges;
  for (const PlacedRegion& region : *regions) ranges.push_back(region.range);
  return !OpTreater(alone, trace).check_matches(ranges);
}

}  // namespace

std::vector<std::string> modules_named_by(const Policy& policy) {
  const std::string spelling = catalogue_spelling(policy.name);
  const std::optional<Call> call = parse_call(spelling);
  if (!call || call->name != "recompute_modules" || !is_what_its_name_says(policy)) return {};
  return parse_words(call->arguments.value_or("")).value_or(std::vector<std::string>{});
}

std::optional<std::string> missing_modules(const Policy& policy, const Trace& trace) {
  const auto is_missing = [&trace](std::string_view module) { return !has_module(trace, module); };
  std::vector<std::string> missing = modules_named_by(policy);
  std::erase_if(missing, std::not_fn(is_missing));
  if (missing.empty()) return std::nullopt;
  std::vector<std::string_view> present = module_names();
  std::erase_if(present, is_missing);
  return policy.name + ": " + trace.model + " has no " + joined(missing, ", no ") +
         ", so nothing is recomputed for that; of the modules it has " +
         (present.empty() ? "none" : joined(present));
}

}  // namespace rematch
