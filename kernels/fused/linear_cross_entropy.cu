// A block of threads for each token. The matmuls around these kernels are LibTorch's.
#include "kernels/fused/linear_cross_entropy.h"
#include "kernels/op/device.cuh"

namespace rematch::kernels::cuda {
namespace {

template <typename T, int kCount>
__global__ void rematch_cross_entropy_add_logits(LogitChunk op) {
  using Sum = SumOf<T>;
  const std::int64_t row = blockIdx.x;
  const int width = static_cast<int>(op.width);
  const T* logits = static_cast<const T*>(op.logits) + row * op.width;
  const Sum before = static_cast<const Sum*>(op.maximum)[row];
  Sum own = before;
  for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += kThreads * kCount) {
    Sum values[kCount];
    load_lanes(logits + i, values);
    for (int lane = 0; lane < kCount; ++lane) own = max(own, values[lane]);
  }
  const Sum maximum = block_reduce(own, [](Sum a, Sum b) { return max(a, b); });
  Sum terms = 0;
  for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += kThreads * kCount) {
    Sum values[kCount];
    load_lanes(logits + i, values);
    for (int lane = 0; lane < kCount; ++lane) terms += exp(values[lane] - maximum);
  }
  const Sum added = block_sum(terms);
  if (threadIdx.x != 0) return;
  Sum& sum = static_cast<Sum*>(op.sum)[row];
  sum = sum * exp(before - maximum) + added;
  static_cast<Sum*>(op.maximum)[row] = maximum;
  const std::int64_t target = op.target[row] - op.first;
  if (target < 0 || target >= op.width) return;
  static_cast<Sum*>(op.target_logit)[row] = load(logits + target);
}

template <typename T, int kCount>
__global__ void rematch_cross_entropy_differentiate_logits(LogitChunkBackward op) {
  using Sum = SumOf<T>;
  const std::int64_t row = blockIdx.x;
  const int width = static_cast<int>(op.width);
  T* logits = static_cast<T*>(op.logits) + row * op.width;
  const Sum scale = *static_cast<const Sum*>(op.grad_loss) / static_cast<Sum>(op.rows);
  const Sum logsumexp = static_cast<const Sum*>(op.logsumexp)[row];
  const std::int64_t target = op.target[row] - op.first;
  for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += kThreads * kCount) {
    Sum values[kCount];
    load_lanes(logits + i, values);
    for (int lane = 0; lane < kCount; ++lane) {
      const Sum probability = exp(values[lane] - logsumexp);
      values[lane] = (i + lane == target ? probability - Sum(1) : probability) * scale;
    }
    store_lanes(values, logits + i);
  }
}

}  // namespace

int run(const LogitChunk& op, void* stream) {
  if (op.rows == 0) return cudaSuccess;
  const auto rows = static_cast<unsigned>(op.rows);
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide = are_multiples(kLanes<T>, op.width) && are_aligned(op.logits);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      rematch_cross_entropy_add_logits<T, kCount><<<rows, kThreads, 0, on>>>(op);
    });
  });
  return cudaGetLastError();
}

int run(const LogitChunkBackward& op, void* stream) {
  if (op.rows == 0) return cudaSuccess;
  const auto rows = static_cast<unsigned>(op.rows);
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide = are_multiples(kLanes<T>, op.width) && are_aligned(op.logits);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      rematch_cross_entropy_differentiate_logits<T, kCount><<<rows, kThreads, 0, on>>>(op);
    });
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
