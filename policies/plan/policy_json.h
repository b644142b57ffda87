// Policies as files, "rematch.policy/1.0". A user writes one to try a rule that the catalogue does
// not have. Reading is strict: an unknown key is a typing mistake and throws FormatError.
//
// For example:
//   {"schema": "rematch.policy/1.0", "name": "mine", "blocks": {"nth_last": 2}, "regions": "block",
//    "save": ["attention_forward", "*.ffn::matmul#1"], "early_stop": true}
//
// The keys and their values:
// - blocks: "all", "none", {"nth_first" | "nth_last" | "skip_nth" | "first" | "last": N}, or
//   {"only" | "except": [layer indices]}
// - regions: "block", "root", {"segments": N}, or {"scopes": ["attention", "ffn"]}
// - save, offload, exclude, recompute: lists of selectors
// - inverse, no_effect_is_intended: true or false
// - exact_names: if true, a fused attention op matches only by its own name
// - alternate: {"selectors": [...], "exclude": [...], "keep": "odd" | "even",
//   "exclude_same_shapes": true}
// - offload_saved: if true, results that would be kept on the device are kept on the host instead
// - offload_inputs: if true, inputs of regions are also kept on the host
// - offload_at_least_bytes: a number; smaller tensors stay on the device
// - offload_demanded_only: true or false; whether results that only recompute reads stay on the
//   device
// - split_only_with: a scope; every block without it is one region, even if "regions" splits blocks
#pragma once

#include <string>
#include <variant>

#include "policies/base/json_fwd.h"
#include "policies/base/rejected.h"
#include "policies/plan/policy.h"

namespace rematch {

Json policy_to_json(const Policy& policy);

// Reads a policy. Throws FormatError with the JSON path of the fault.
Policy policy_from_json(const Json& json);

// Reads a policy from a file. Returns Rejected with a one-line message if the file cannot be used.
std::variant<Policy, Rejected> read_policy_file(const std::string& path);

}  // namespace rematch
