// A part of forward that cannot be recorded, because its kernels bypass the dispatcher, as in
// compiled code. Inside the section, autograd itself keeps the tensors that it saves. The record
// treats the section's results as tensors from outside the region.
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
