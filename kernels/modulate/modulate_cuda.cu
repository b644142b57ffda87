// A block of threads for each row; in backward for each block of rows, whose sums over columns each
// thread keeps for its own columns.
#include "kernels/modulate/modulate_kernels.h"
#include "kernels/op/device.cuh"

namespace rematch::kernels::cuda {
namespace {

// T is x's type, U out's.
template <typename T, typename U>
__global__ void rematch_modulate_forward(Modulate op) {
  const std::int64_t batch = blockIdx.x / op.rows;
  const T* x = static_cast<const T*>(op.x) + blockIdx.x * op.width;
  const T* shift = static_cast<const T*>(op.shift) + batch * op.shift_stride;
  const T* scale = static_cast<const T*>(op.scale) + batch * op.scale_stride;
  U* out = static_cast<U*>(op.out) + blockIdx.x * op.width;
  for (std::int64_t i = threadIdx.x; i < op.width; i += kThreads) {
    store(load(x + i) * (SumOf<T>(1) + load(scale + i)) + load(shift + i), out + i);
  }
}

template <typename T, typename U>
__global__ void rematch_modulate_backward(ModulateBackward op, std::int64_t blocks_in_batch) {
  using Sum = SumOf<T>;
  const Modulate& shape = op.forward;
  const std::int64_t batch = blockIdx.x / blocks_in_batch;
  const std::int64_t first = blockIdx.x % blocks_in_batch * kRowsInBlock;
  const T* scale = static_cast<const T*>(shape.scale) + batch * shape.scale_stride;
  Sum* shift_sums = static_cast<Sum*>(op.partial) + blockIdx.x * shape.width;
  Sum* scale_sums = shift_sums + shape.batch * blocks_in_batch * shape.width;
  for (std::int64_t i = threadIdx.x; i < shape.width; i += kThreads) {
    const Sum factor = Sum(1) + load(scale + i);
    Sum shift_sum = 0;
    Sum scale_sum = 0;
    for (std::int64_t row = first; row < shape.rows && row < first + kRowsInBlock; ++row) {
      const std::int64_t place = (batch * shape.rows + row) * shape.width + i;
      const Sum grad = load(static_cast<const U*>(op.grad_out) + place);
      store(grad * factor, static_cast<T*>(op.grad_x) + place);
      shift_sum += grad;
      scale_sum += grad * load(static_cast<const T*>(shape.x) + place);
    }
    shift_sums[i] = shift_sum;
    scale_sums[i] = scale_sum;
  }
}

template <typename T>
void add_sums(const ModulateBackward& op, cudaStream_t stream) {
  const Modulate& shape = op.forward;
  const std::int64_t blocks_in_batch = num_row_blocks(shape.rows);
  const dim3 grid(blocks_for(shape.width), static_cast<unsigned>(shape.batch));
  const auto* shift_partial = static_cast<const SumOf<T>*>(op.partial);
  const auto* scale_partial = shift_partial + shape.batch * blocks_in_batch * shape.width;
  rematch_add_partial_sums<T><<<grid, kThreads, 0, stream>>>(
      shift_partial, blocks_in_batch, shape.width, static_cast<T*>(op.grad_shift));
  rematch_add_partial_sums<T><<<grid, kThreads, 0, stream>>>(
      scale_partial, blocks_in_batch, shape.width, static_cast<T*>(op.grad_scale));
}

// Calls f with null pointers of x's and out's types.
template <typename Function>
void with_types(const Modulate& op, const Function& f) {
  if (op.element == Element::kFloat32 && op.out_element == Element::kBFloat16) {
    return f(static_cast<float*>(nullptr), static_cast<__nv_bfloat16*>(nullptr));
  }
  with_type(op.element, [&](auto* type) { f(type, type); });
}

}  // namespace

int modulate(const Modulate& op, void* stream) {
  const auto num_rows = static_cast<unsigned>(op.batch * op.rows);
  if (num_rows == 0) return cudaSuccess;
  with_types(op, [&](auto* x, auto* out) {
    using T = std::remove_pointer_t<decltype(x)>;
    using U = std::remove_pointer_t<decltype(out)>;
    rematch_modulate_forward<T, U>
        <<<num_rows, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(op);
  });
  return cudaGetLastError();
}

int modulate_backward(const ModulateBackward& op, void* stream) {
  const auto num_blocks = static_cast<unsigned>(op.forward.batch * num_row_blocks(op.forward.rows));
  if (num_blocks == 0 || op.forward.width == 0) return cudaSuccess;
  with_types(op.forward, [&](auto* x, auto* out) {
    using T = std::remove_pointer_t<decltype(x)>;
    using U = std::remove_pointer_t<decltype(out)>;
    const auto on = static_cast<cudaStream_t>(stream);
    rematch_modulate_backward<T, U>
        <<<num_blocks, kThreads, 0, on>>>(op, num_row_blocks(op.forward.rows));
    add_sums<T>(op, on);
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
