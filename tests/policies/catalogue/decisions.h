// What a policy decides for the ops of a region, as text that a table can hold.
#pragma once

#include <string>
#include <string_view>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "tests/support/catch.h"

namespace rematch::testing {

inline Policy policy_of(std::string_view text) {
  auto parsed = parse_policy(text);
  if (const auto* rejected = std::get_if<Rejected>(&parsed)) FAIL(rejected->message);
  return std::get<Policy>(std::move(parsed));
}

inline Plan plan_of(std::string_view text, const Trace& trace) {
  auto plan = resolve(policy_of(text), trace, NoEffect::kAllow);
  if (const auto* rejected = std::get_if<Rejected>(&plan)) FAIL(rejected->message);
  return std::get<Plan>(std::move(plan));
}

inline std::string rejection_of(std::string_view text) {
  const auto parsed = parse_policy(text);
  const auto* rejected = std::get_if<Rejected>(&parsed);
  return rejected == nullptr ? "accepted" : rejected->message;
}

// 'S' for a saved and 'r' for a recomputed op, over the ops of that name, in order.
inline std::string decisions(const RegionType& type, std::string_view op_name) {
  std::string text;
  for (const PlannedOp& op : type.ops) {
    if (op.name == op_name) text += op.treatment == Treatment::kSave ? 'S' : 'r';
  }
  return text;
}

}  // namespace rematch::testing
