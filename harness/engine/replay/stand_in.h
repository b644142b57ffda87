// Small tensors that stand in for outside ones while an op is recomputed: see Note [Side writes].
// On the CPU they lie in memory that no allocator counts, so that predicted bytes stay exact.
#pragma once

#include <ATen/core/Tensor.h>

namespace rematch {

// To be written to in place of `outside`, whose content does not matter. On meta, where nothing is
// written, `outside` itself.
at::Tensor scratch_like(const at::Tensor& outside);

// The content of `outside`; on meta, `outside` itself.
at::Tensor content_of(const at::Tensor& outside);

// The same, contiguous and on the CPU; `tensor` itself where it is that.
at::Tensor content_on_cpu(const at::Tensor& tensor);

}  // namespace rematch
