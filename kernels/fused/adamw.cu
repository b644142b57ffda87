// A block of threads updates one chunk of one parameter. One launch updates many parameters.
#include "kernels/fused/adamw.h"
#include "kernels/op/device.cuh"

namespace rematch::kernels::cuda {
namespace {

constexpr std::int64_t kChunk = 8192;  // elements; a multiple of every access

__host__ __device__ std::int64_t num_chunks(const AdamWTensor& tensor) {
  return (tensor.size + kChunk - 1) / kChunk;
}

struct Corrections {
  float step_size;  // learning rate / (1 - beta1^step)
  float scale;      // 1 / sqrt(1 - beta2^step)
};

__device__ Corrections corrections_of(const AdamW& op, const AdamWTensor& tensor) {
  const double step = load(tensor.step);
  const double correction1 = 1 - pow(static_cast<double>(op.beta1), step);
  const double correction2 = 1 - pow(static_cast<double>(op.beta2), step);
  return {static_cast<float>(op.learning_rate / correction1),
          static_cast<float>(1 / sqrt(correction2))};
}

// Uses the formulas of the CPU kernel for kCount elements. G is the gradient's type.
template <typename G, int kCount>
__device__ void update(const AdamW& op, const AdamWTensor& tensor, const Corrections& corrections,
                       std::int64_t first) {
  const auto gradients = load_lanes<kCount>(static_cast<const G*>(tensor.gradient) + first);
  float values[kCount];
  float moments[kCount];
  float squares[kCount];
  load_lanes(tensor.value + first, values);
  load_lanes(tensor.first_moment + first, moments);
  load_lanes(tensor.second_moment + first, squares);
  for (int lane = 0; lane < kCount; ++lane) {
    const float gradient = gradients[lane];
    moments[lane] += (gradient - moments[lane]) * (1 - op.beta1);
    squares[lane] = squares[lane] * op.beta2 + gradient * (1 - op.beta2) * gradient;
    const float size = sqrt(squares[lane]) * corrections.scale + op.epsilon;
    values[lane] = values[lane] * (1 - op.learning_rate * op.weight_decay) -
                   corrections.step_size * moments[lane] / size;
  }
  store_lanes(values, tensor.value + first);
  store_lanes(moments, tensor.first_moment + first);
  store_lanes(squares, tensor.second_moment + first);
  if (tensor.parameter != nullptr) {
    store_lanes(values, static_cast<__nv_bfloat16*>(tensor.parameter) + first);
  }
}

template <typename G, int kCount>
__global__ void rematch_adamw_update(AdamW op) {
  __shared__ Corrections corrections;
  std::int64_t chunk = blockIdx.x;
  int index = 0;
  for (; chunk >= num_chunks(op.tensors[index]); ++index) chunk -= num_chunks(op.tensors[index]);
  const AdamWTensor& tensor = op.tensors[index];
  if (threadIdx.x == 0) corrections = corrections_of(op, tensor);
  __syncthreads();
  const std::int64_t begin = chunk * kChunk;
  const std::int64_t end = begin + kChunk < tensor.size ? begin + kChunk : tensor.size;
  const std::int64_t stride = kThreads * kCount;
  for (std::int64_t i = begin + std::int64_t{threadIdx.x} * kCount; i < end; i += stride) {
    if (i + kCount <= end) {
      update<G, kCount>(op, tensor, corrections, i);
      continue;
    }
    for (std::int64_t last = i; last < end; ++last) update<G, 1>(op, tensor, corrections, last);
  }
}

template <typename G>
void launch_update(const AdamW& op, cudaStream_t stream) {
  std::int64_t num_blocks = 0;
  bool wide = true;
  for (int i = 0; i < op.num; ++i) {
    const AdamWTensor& tensor = op.tensors[i];
    num_blocks += num_chunks(tensor);
    wide = wide && are_aligned(tensor.gradient, tensor.value, tensor.first_moment,
                               tensor.second_moment, tensor.parameter);
  }
  // The count is that of bfloat16, so that every tensor is accessed by at least 16 bytes.
  if (wide) {
    rematch_adamw_update<G, 8><<<static_cast<unsigned>(num_blocks), kThreads, 0, stream>>>(op);
  } else {
    rematch_adamw_update<G, 1><<<static_cast<unsigned>(num_blocks), kThreads, 0, stream>>>(op);
  }
}

}  // namespace

int run(const AdamW& op, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (op.gradient_element == Element::kFloat32) {
    launch_update<float>(op, on);
  } else {
    launch_update<__nv_bfloat16>(op, on);
  }
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
