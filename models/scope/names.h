// The names of scopes. The names are a contract: models open their scopes by these names, and
// policies match them. The table in models/README.md explains each name; a test compares the two.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

namespace rematch::scope_names {

inline constexpr std::string_view kEmbed = "embed";
inline constexpr std::string_view kPatch = "patch";
inline constexpr std::string_view kTime = "time";
inline constexpr std::string_view kText = "text";
inline constexpr std::string_view kMask = "mask";
inline constexpr std::string_view kBlocks = "blocks";
inline constexpr std::string_view kModulation = "modulation";
inline constexpr std::string_view kAttentionNorm = "attention_norm";
inline constexpr std::string_view kAttention = "attention";
inline constexpr std::string_view kSelfAttentionNorm = "self_attention_norm";
inline constexpr std::string_view kSelfAttention = "self_attention";
inline constexpr std::string_view kCrossAttentionNorm = "cross_attention_norm";
inline constexpr std::string_view kCrossAttention = "cross_attention";
inline constexpr std::string_view kQkv = "qkv";
inline constexpr std::string_view kQkNorm = "qk_norm";
inline constexpr std::string_view kRotary = "rotary";
inline constexpr std::string_view kQuery = "query";
inline constexpr std::string_view kKvDown = "kv_down";
inline constexpr std::string_view kKvNorm = "kv_norm";
inline constexpr std::string_view kKvUp = "kv_up";
inline constexpr std::string_view kCore = "core";
inline constexpr std::string_view kOutput = "output";
inline constexpr std::string_view kFfnNorm = "ffn_norm";
inline constexpr std::string_view kFfn = "ffn";
inline constexpr std::string_view kMoe = "moe";
inline constexpr std::string_view kRouter = "router";
inline constexpr std::string_view kGate = "gate";
inline constexpr std::string_view kDispatch = "dispatch";
inline constexpr std::string_view kExperts = "experts";
inline constexpr std::string_view kSharedExperts = "shared_experts";
inline constexpr std::string_view kCombine = "combine";
inline constexpr std::string_view kAdapted = "adapted";
inline constexpr std::string_view kHead = "head";
inline constexpr std::string_view kLoss = "loss";

// All names, in the order of the table in models/README.md.
inline constexpr std::array kAll = {kEmbed,
                                    kPatch,
                                    kTime,
                                    kText,
                                    kMask,
                                    kBlocks,
                                    kModulation,
                                    kAttentionNorm,
                                    kAttention,
                                    kSelfAttentionNorm,
                                    kSelfAttention,
                                    kCrossAttentionNorm,
                                    kCrossAttention,
                                    kQkv,
                                    kQkNorm,
                                    kRotary,
                                    kQuery,
                                    kKvDown,
                                    kKvNorm,
                                    kKvUp,
                                    kCore,
                                    kOutput,
                                    kFfnNorm,
                                    kFfn,
                                    kMoe,
                                    kRouter,
                                    kGate,
                                    kDispatch,
                                    kExperts,
                                    kSharedExperts,
                                    kCombine,
                                    kAdapted,
                                    kHead,
                                    kLoss};

// Joins names to the path of a scope, such as "moe.shared_experts".
inline std::string path(std::initializer_list<std::string_view> names) {
  std::string joined;
  for (const std::string_view name : names) {
    if (!joined.empty()) joined.push_back('.');
    joined.append(name);
  }
  return joined;
}

}  // namespace rematch::scope_names
