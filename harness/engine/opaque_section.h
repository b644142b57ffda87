// A part of forward whose ops cannot be recorded: compiled code, whose kernels bypass the
// dispatcher. Inside the section, autograd keeps the tensors that it saves, and nothing is
// recorded. The region treats the section's results as tensors from outside, which the record
// holds.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "harness/engine/interception.h"

namespace rematch {

// Sections of a thread nest. The innermost ends first.
class OpaqueSection {
 private:
  c10::impl::ExcludeDispatchKeyGuard unseen_{c10::DispatchKey::Fake};
  SavedTensorGuard saved_as_usual_{nullptr};
};

}  // namespace rematch
