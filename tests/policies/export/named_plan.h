// The plan of a named policy, for tests of what is exported.
#pragma once

#include <string_view>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "tests/support/catch.h"

namespace rematch::testing {

inline Plan named_plan(std::string_view policy, const Trace& trace) {
  const auto parsed = parse_policy(policy);
  if (const auto* rejected = std::get_if<Rejected>(&parsed)) FAIL(rejected->message);
  const auto plan = resolve(std::get<Policy>(parsed), trace, NoEffect::kAllow);
  if (const auto* rejected = std::get_if<Rejected>(&plan)) FAIL(rejected->message);
  return std::get<Plan>(plan);
}

}  // namespace rematch::testing
