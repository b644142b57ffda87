// One block of threads per token. The heads of a token are adjacent in `out`.
#include "kernels/fused/rope.h"
#include "kernels/op/device.cuh"

namespace rematch::kernels::cuda {
namespace {

// Handles kCount elements at a time, always whole pairs. One access reads kAccess elements.
template <typename T, int kCount, int kAccess>
__global__ void rematch_rope_turn(Rope op) {
  using Sum = SumOf<T>;
  constexpr int kPairs = kCount / 2;
  const std::int64_t token = blockIdx.x % op.tokens;
  const std::int64_t batch = blockIdx.x / op.tokens;
  const T* x = static_cast<const T*>(op.x) + batch * op.batch_stride + token * op.token_stride;
  const Sum* cosine = static_cast<const Sum*>(op.cosine) + token * op.pairs;
  const Sum* sine = static_cast<const Sum*>(op.sine) + token * op.pairs;
  const int head_width = static_cast<int>(op.pairs) * 2;
  const int width = static_cast<int>(op.heads) * head_width;
  T* out = static_cast<T*>(op.out) + std::int64_t{blockIdx.x} * width;
  for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += kThreads * kCount) {
    const int head = i / head_width;
    const int within = i - head * head_width;
    const T* from = x + head * op.head_stride + within;
    Sum values[kCount];
    for (int at = 0; at < kCount; at += kAccess) {
      Sum some[kAccess];
      load_lanes(from + at, some);
      for (int lane = 0; lane < kAccess; ++lane) values[at + lane] = some[lane];
    }
    Sum turned[kCount];
    for (int pair = 0; pair < kPairs; ++pair) {
      const Sum c = load(cosine + within / 2 + pair);
      const Sum s = load(sine + within / 2 + pair) * static_cast<Sum>(op.direction);
      turned[2 * pair] = values[2 * pair] * c - values[2 * pair + 1] * s;
      turned[2 * pair + 1] = values[2 * pair] * s + values[2 * pair + 1] * c;
    }
    store_lanes(turned, out + i);
  }
}

}  // namespace

int run(const Rope& op, void* stream) {
  const auto num_blocks = static_cast<unsigned>(op.batch * op.tokens);
  if (num_blocks == 0 || op.heads * op.pairs == 0) return cudaSuccess;
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    constexpr int kCount = kLanes<T>;
    const bool wide =
        are_multiples(kCount, op.batch_stride, op.token_stride, op.head_stride, 2 * op.pairs) &&
        are_aligned(op.x, op.out);
    if (wide) {
      rematch_rope_turn<T, kCount, kCount><<<num_blocks, kThreads, 0, on>>>(op);
    } else {
      rematch_rope_turn<T, 2, 1><<<num_blocks, kThreads, 0, on>>>(op);
    }
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
