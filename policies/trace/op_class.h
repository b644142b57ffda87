// The coarse kinds of op used by counts, selectors and reports. One table maps dispatcher names to
// kinds, so a policy selects the same ops on every backend.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "policies/base/words.h"

namespace rematch {

enum class OpClass : std::uint8_t {
  kMatmul,             // mm, addmm, bmm, baddbmm, grouped mm
  kAttentionForward,   // forward ops of fused attention
  kAttentionBackward,  // backward ops of fused attention
  kNorm,               // fused norms
  kElementwise,
  kReduction,  // sums, means, softmax, losses
  kCopy,       // clone, cat, dtype casts, fills
  kView,       // views: no data is moved
  kEmbedding,  // gathers, scatters, indexing
  kRandom,     // random number generation
  kCollective,
  kOptimizer,
  kOther,
};

template <>
inline constexpr std::array<std::string_view, 13> kWords<OpClass> = {"matmul",
                                                                     "attention_forward",
                                                                     "attention_backward",
                                                                     "norm",
                                                                     "elementwise",
                                                                     "reduction",
                                                                     "copy",
                                                                     "view",
                                                                     "embedding",
                                                                     "random",
                                                                     "collective",
                                                                     "optimizer",
                                                                     "other"};

// `name` is the dispatcher name, "aten::mm", with or without an overload.
OpClass op_class_of(std::string_view name);

// The op that stands for a call whose ops are not recorded: see Note [Opaque calls] in
// harness/engine/record/opaque_call.h.
inline constexpr std::string_view kOpaqueOp = "rematch::opaque";

// Returns whether only replay runs the op. The engine adds such an op to its record to restore
// content that a kernel wrote without an op. A trace lists such ops too.
bool is_replay_only(std::string_view name);

// Returns whether the op leaves its output uninitialized. `name` may include an overload.
bool is_empty_factory(std::string_view name);

}  // namespace rematch
