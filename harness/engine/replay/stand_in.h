// Small tensors that replace outside tensors while an op is recomputed: see Note [Side writes]. On
// the CPU they use memory that no allocator counts, so that predicted bytes stay exact.
#pragma once

#include <ATen/core/Tensor.h>

namespace rematch {

// A tensor whose content does not matter, for an op to write to instead of `outside`. On meta
// nothing is written, so this returns `outside` itself.
at::Tensor scratch_like(const at::Tensor& outside);

// A copy of the content of `outside`. On meta, `outside` itself.
at::Tensor content_of(const at::Tensor& outside);

// The content of `tensor`, contiguous and on the CPU. Returns `tensor` itself if it is already
// contiguous and on the CPU.
at::Tensor content_on_cpu(const at::Tensor& tensor);

}  // namespace rematch
