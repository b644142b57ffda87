// The coarse kinds of op that counts, selectors and reports speak of. One table maps
// dispatcher names to them, so a policy means the same op on every backend.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rematch {

enum class OpClass : std::uint8_t {
  kMatmul,             // mm, addmm, bmm, baddbmm, grouped mm
  kAttentionForward,   // every fused attention forward
  kAttentionBackward,  // every fused attention backward
  kNorm,               // fused norms
  kElementwise,
  kReduction,  // sums, means, softmax, losses
  kCopy,       // clone, cat, dtype casts, fills
  kView,       // no data moves
  kEmbedding,  // gathers, scatters, indexing
  kRandom,     // draws from a generator
  kCollective,
  kOptimizer,
  kOther,
};

inline constexpr int kNumOpClasses = static_cast<int>(OpClass::kOther) + 1;

// `name` is the dispatcher name without overload: "aten::mm".
OpClass op_class_of(std::string_view name);

// Its output has no defined content. `name` may have an overload.
bool is_empty_factory(std::string_view name);

// The name in JSON, flags and tables: "attention_forward".
std::string_view to_string(OpClass op_class);
std::optional<OpClass> op_class_from_string(std::string_view text);

}  // namespace rematch
