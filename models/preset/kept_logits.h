// The option of language models whose fused loss keeps its logits for backward.
#pragma once

#include <string_view>

namespace rematch {

inline constexpr std::string_view kKeptLogitsName = "kept_logits";

}  // namespace rematch
