// A reference implementation of attention, composed of ATen ops, for any dtype. Also selects the
// backend of the attention ops.
#pragma once

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <cstdint>
#include <optional>

#include "kernels/attention/backend.h"

namespace rematch::testing {

// Selects one attention backend in its constructor. Its destructor enables all backends again.
class WithBackend {
 public:
  explicit WithBackend(AttentionBackend backend) { use_attention_backend(backend); }
  ~WithBackend() {
    at::globalContext().setSDPUseFlash(true);
    at::globalContext().setSDPUseCuDNN(true);
    at::globalContext().setSDPUseMemEfficient(true);
  }
  WithBackend(const WithBackend&) = delete;
  WithBackend& operator=(const WithBackend&) = delete;
};

// Returns softmax(q k^T scale + mask) v. If k and v have fewer heads than q, query heads share
// them. Computes in float32, or in double for double inputs, and rounds only the result.
inline at::Tensor composed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const at::Tensor& mask,
                                     std::optional<double> scale = std::nullopt) {
  const at::ScalarType sums = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const std::int64_t shared = q.size(1) / k.size(1);
  const at::Tensor keys = at::repeat_interleave(k.to(sums), shared, /*dim=*/1);
  const at::Tensor values = at::repeat_interleave(v.to(sums), shared, /*dim=*/1);
  const double factor = scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(3))));
  const at::Tensor scores = at::matmul(q.to(sums), keys.transpose(2, 3)) * factor + mask.to(sums);
  return at::matmul(at::softmax(scores, /*dim=*/-1), values).to(q.scalar_type());
}

}  // namespace rematch::testing
