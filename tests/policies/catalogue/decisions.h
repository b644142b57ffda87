// Test helpers that make policies and plans, and list the ops that a plan saves.
#pragma once

#include <string>
#include <string_view>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/catalogue/systems.h"
#include "policies/plan/policy_json.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {

inline Policy policy_of(std::string_view text) {
  auto parsed = parse_policy(text);
  if (const auto* rejected = std::get_if<Rejected>(&parsed)) FAIL(rejected->message);
  return std::get<Policy>(std::move(parsed));
}

// Writes the policy to a policy file, and returns the policy that is read back.
inline Policy from_file(const Policy& policy) {
  const ScratchFolder folder;
  const std::string path = folder.file("policy.json");
  write_json_file(path, policy_to_json(policy));
  return policy_of(path);
}

// Returns a system's spelling, such as "selective_op(K)", with valid values instead of placeholder
// letters.
inline std::string typed(const SystemEntry& entry) {
  std::string text(entry.spelling);
  const auto fill = [&text](std::string_view hole, const std::string& value) {
    const std::size_t at = text.find(hole);
    if (at != std::string::npos) text.replace(at, hole.size(), value);
  };
  fill("selective_op(K)", "selective_op(aten.mm,aten.max)");
  fill("save_ops_keys=K", "save_ops_keys=[aten.mm,aten.max]");
  fill("selective_2025(M)", "selective_2025(llama3)");
  fill("recompute_modules=M", "recompute_modules=[mlp]");
  fill("offload_modules=M", "offload_modules=[core_attn]");
  fill("ac_mode=M", "ac_mode=anything");
  fill("save_ops=S", "save_ops=attention_forward");
  fill("skip_layers=L", "skip_layers=[0,2]");
  fill("remat(save=S)", "remat(save=[ffn])");
  fill("save_regions=S", "save_regions=[\"attention.*\"]");
  fill("recompute_regions=R", "recompute_regions=['attention.wo.*']");
  fill("custom(T)", "custom(out_proj=device,moe_mlpwo=offload)");
  fill("checkpointing.save=S", "checkpointing.save=[aten::mm]");
  fill("for_vit=P", "for_vit=minimal");
  fill("by_fqns=F", "by_fqns=[output]");
  fill("checkpointing_modules=M", "checkpointing_modules=[FFN]");
  for (const char* number : {"=N", "=F", "=M"}) fill(number, "=2");
  return text;
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

inline constexpr std::string_view kMm = "aten::mm";

// Returns one letter for each op of this name, in order: 'S' for a saved op, 'r' for a recomputed
// op.
inline std::string decisions(const RegionType& type, std::string_view op_name) {
  std::string text;
  for (const PlannedOp& op : type.ops) {
    if (op.name == op_name) text += op.treatment == Treatment::kSave ? 'S' : 'r';
  }
  return text;
}

}  // namespace rematch::testing
