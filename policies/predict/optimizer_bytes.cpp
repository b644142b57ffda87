#include "policies/predict/optimizer_bytes.h"

#include <algorithm>

namespace rematch {

OptimizerBytes optimizer_bytes(const Trace& trace, OptimizerModel optimizer) {
  OptimizerBytes bytes;
  if (optimizer == OptimizerModel::kNothing) return bytes;
  constexpr std::int64_t kFloat32Bytes = 4;
  for (const TracedParameters& kind : trace.parameters) {
    const Bytes copy{kFloat32Bytes * kind.elements};
    const bool needs_master = kind.dtype != "float32";
    const std::int64_t num_copies = needs_master ? 3 : 2;
    bytes.state += Bytes{kind.count * (num_copies * copy.count + kFloat32Bytes)};
    if (needs_master && kind.count > 0) bytes.temporary = std::max(bytes.temporary, copy);
  }
  return bytes;
}

}  // namespace rematch
