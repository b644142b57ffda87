#include "policies/trace/collective.h"

namespace rematch {

CollectivePart collective_part(std::string_view name) {
  if (name.starts_with("_c10d_functional::wait_tensor")) return CollectivePart::kWait;
  if (name.starts_with("_c10d_functional::")) return CollectivePart::kStart;
  if (name.starts_with("c10d::")) return CollectivePart::kStartWithHandle;
  return CollectivePart::kNothing;
}

}  // namespace rematch
