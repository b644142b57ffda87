// A thread for each pair.
#include "kernels/op/device.cuh"
#include "kernels/rope/rope_kernels.h"

namespace rematch::kernels::cuda {
namespace {

template <typename T>
__global__ void rematch_rope_turn(Rope op) {
  using Sum = SumOf<T>;
  const std::int64_t index = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (index >= op.batch * op.tokens * op.heads * op.pairs) return;
  const std::int64_t pair = index % op.pairs;
  const std::int64_t head = index / op.pairs % op.heads;
  const std::int64_t token = index / (op.pairs * op.heads) % op.tokens;
  const std::int64_t batch = index / (op.pairs * op.heads * op.tokens);
  const T* x = static_cast<const T*>(op.x) + batch * op.batch_stride + token * op.token_stride +
               head * op.head_stride + 2 * pair;
  const Sum even = load(x);
  const Sum odd = load(x + 1);
  const Sum c = static_cast<const Sum*>(op.cosine)[token * op.pairs + pair];
  const Sum s =
      static_cast<const Sum*>(op.sine)[token * op.pairs + pair] * static_cast<Sum>(op.direction);
  T* out = static_cast<T*>(op.out) + 2 * index;
  store(even * c - odd * s, out);
  store(even * s + odd * c, out + 1);
}

}  // namespace

int rope(const Rope& op, void* stream) {
  const std::int64_t size = op.batch * op.tokens * op.heads * op.pairs;
  if (size == 0) return cudaSuccess;
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    rematch_rope_turn<T><<<blocks_for(size), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(op);
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
