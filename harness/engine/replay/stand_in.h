// Tensors that are passed to a recomputed op in place of outside tensors.
#pragma once

#include <ATen/core/Tensor.h>

namespace rematch {

// Scratch memory that an op writes instead of `outside`: see Note [Side writes]. On the CPU,
// counting allocators ignore this memory, because it lives only while the op runs. On device meta
// nothing is written, so this function returns `outside` itself.
at::Tensor scratch_like(const at::Tensor& outside);

// A copy of the content of `outside`, with the same strides, unless the elements of `outside`
// overlap.
at::Tensor content_of(const at::Tensor& outside);

// The content of `tensor`, contiguous and on the CPU. Returns `tensor` itself if it is already
// contiguous and on the CPU.
at::Tensor content_on_cpu(const at::Tensor& tensor);

}  // namespace rematch
