// Whether a traced model was built with --ops fused.
#pragma once

#include <string_view>

#include "policies/trace/trace.h"

namespace rematch {

// The dimension that is 1 if a model was built with fused ops. Absent: ATen's ops.
inline constexpr std::string_view kFusedOpsDimension = "fused_ops";

// With fused ops, training updates all parameters with one op, rematch::adamw_. It reads gradients
// as they are. Otherwise the update needs a float32 copy of a gradient of another dtype.
inline bool is_built_with_fused_ops(const Trace& trace) {
  const auto found = trace.dimensions.find(std::string(kFusedOpsDimension));
  return found != trace.dimensions.end() && found->second == 1;
}

}  // namespace rematch
