// A part of forward whose ops cannot be recorded, such as compiled code, whose kernels bypass the
// dispatcher. Inside the section, autograd keeps the tensors that it saves. The section's results
// count as tensors from outside the region, so the record holds them.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "harness/engine/interception.h"

namespace rematch {

// Sections nest on a thread; the innermost must end first.
class OpaqueSection {
 private:
  c10::impl::ExcludeDispatchKeyGuard unseen_{c10::DispatchKey::Fake};
  SavedTensorGuard saved_as_usual_{nullptr};
};

}  // namespace rematch
