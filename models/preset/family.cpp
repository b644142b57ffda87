#include "models/preset/family.h"

namespace rematch::preset {

Dimensions with(Dimensions dimensions, const Dimensions& changes) {
  for (const auto& [name, value] : changes) dimensions[name] = value;
  return dimensions;
}

Checked require_divides(const ModelSpec& spec, const std::string& divisor,
                        const std::string& number) {
  if (spec.at(number) % spec.at(divisor) == 0) return std::nullopt;
  return Rejected{divisor + " " + std::to_string(spec.at(divisor)) + " does not divide " + number +
                  " " + std::to_string(spec.at(number))};
}

Checked require_rotary_heads(const ModelSpec& spec) {
  if (Checked rejected = require_divides(spec, "heads", "dim")) return rejected;
  const std::int64_t head_dim = spec.at("dim") / spec.at("heads");
  if (head_dim % 2 == 0) return std::nullopt;
  return Rejected{"dim / heads = " + std::to_string(head_dim) +
                  " is odd, but rotary embedding turns pairs; change dim or heads"};
}

Checked require_experts(const ModelSpec& spec) {
  if (spec.at("top_k") > spec.at("experts")) {
    return Rejected{"top_k " + std::to_string(spec.at("top_k")) + " is more than experts " +
                    std::to_string(spec.at("experts"))};
  }
  constexpr std::int64_t kRowElements = 8;  // 16 bytes of bfloat16
  for (const char* width : {"dim", "expert_ffn"}) {
    if (spec.at(width) % kRowElements == 0) continue;
    return Rejected{std::string(width) + " " + std::to_string(spec.at(width)) +
                    " is not a multiple of 8, which grouped matmuls need"};
  }
  return std::nullopt;
}

}  // namespace rematch::preset
