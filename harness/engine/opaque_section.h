// A stretch of forward whose ops no record can hold: compiled code, whose kernels run beside the
// dispatcher. Inside, autograd keeps what it saves, and nothing is recorded. What comes out of it
// is to the region as a tensor from outside, which the record holds.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "harness/engine/interception.h"

namespace rematch {

// Sections of a thread nest, and end from the innermost to the outermost.
class OpaqueSection {
 private:
  c10::impl::ExcludeDispatchKeyGuard unseen_{c10::DispatchKey::Fake};
  SavedTensorGuard saved_as_usual_{nullptr};
};

}  // namespace rematch
