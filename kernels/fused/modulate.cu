// Forward has one block of threads per row. In backward, each thread sums its own columns over
// rows.
#include "kernels/fused/modulate.h"
#include "kernels/op/rows.cuh"

namespace rematch::kernels::cuda {
namespace {

// T is x's type, U is out's type.
template <typename T, typename U, int kCount>
__global__ void rematch_modulate_forward(Modulate op) {
  using Sum = SumOf<T>;
  const std::int64_t batch = blockIdx.x / op.rows;
  const int width = static_cast<int>(op.width);
  const T* x = static_cast<const T*>(op.x) + blockIdx.x * op.width;
  const T* shift = static_cast<const T*>(op.shift) + batch * op.shift_stride;
  const T* scale = static_cast<const T*>(op.scale) + batch * op.scale_stride;
  U* out = static_cast<U*>(op.out) + blockIdx.x * op.width;
  for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += kThreads * kCount) {
    Sum values[kCount];
    Sum scales[kCount];
    Sum shifts[kCount];
    load_lanes(x + i, values);
    load_lanes(scale + i, scales);
    load_lanes(shift + i, shifts);
    for (int lane = 0; lane < kCount; ++lane) {
      values[lane] = values[lane] * (Sum(1) + scales[lane]) + shifts[lane];
    }
    store_lanes(values, out + i);
  }
}

// See Note [Columns in blocks]. A thread loads two rows at once, so that more bytes are in flight.
template <typename T, typename U, int kCount>
__global__ void __launch_bounds__(kThreads, 4)
    rematch_modulate_backward(ModulateBackward op, std::int64_t blocks_in_batch) {
  using Sum = SumOf<T>;
  const Modulate& shape = op.forward;
  const ColumnPlace<kCount> own(blocks_in_batch, shape.width);
  const std::int64_t num_rows = own.is_used ? shape.rows : 0;
  const T* const scale = static_cast<const T*>(shape.scale) + own.batch * shape.scale_stride;
  Sum scales[kCount] = {};
  if (own.is_used) load_lanes(scale + own.column, scales);
  Sum sums[2 * kCount] = {};  // of shift, then of scale
  const auto place_of = [&](std::int64_t row) {
    return (own.batch * shape.rows + row) * shape.width + own.column;
  };
  const auto process = [&](std::int64_t place, const auto& values, const auto& grads) {
    Sum scaled[kCount];
    for (int lane = 0; lane < kCount; ++lane) {
      const Sum grad = grads[lane];
      sums[lane] += grad;
      sums[kCount + lane] += grad * values[lane];
      scaled[lane] = grad * (Sum(1) + scales[lane]);
    }
    store_lanes(scaled, static_cast<T*>(op.grad_x) + place);
  };
  for (std::int64_t row = own.first_row; row < num_rows; row += 2 * own.row_stride) {
    const std::int64_t place = place_of(row);
    const std::int64_t other = place_of(row + own.row_stride);
    const bool has_other = row + own.row_stride < num_rows;
    const auto values = load_lanes<kCount>(static_cast<const T*>(shape.x) + place);
    const auto grads = load_lanes<kCount>(static_cast<const U*>(op.grad_out) + place);
    Lanes<T, kCount> other_values;
    Lanes<U, kCount> other_grads;
    if (has_other) {
      other_values = load_lanes<kCount>(static_cast<const T*>(shape.x) + other);
      other_grads = load_lanes<kCount>(static_cast<const U*>(op.grad_out) + other);
    }
    process(place, values, grads);
    if (has_other) process(other, other_values, other_grads);
  }
  if (!add_over_groups<kWarp>(sums) || !own.is_used) return;
  Sum* const shift_sums = static_cast<Sum*>(op.partial) + blockIdx.x * shape.width + own.column;
  Sum total[kCount];
  for (int lane = 0; lane < kCount; ++lane) total[lane] = sums[lane];
  store_lanes(total, shift_sums);
  for (int lane = 0; lane < kCount; ++lane) total[lane] = sums[kCount + lane];
  store_lanes(total, shift_sums + shape.batch * blocks_in_batch * shape.width);
}

template <typename T>
void add_sums(const ModulateBackward& op, std::int64_t blocks_in_batch, cudaStream_t stream) {
  const Modulate& shape = op.forward;
  const dim3 grid = table_sum_grid(shape.batch, shape.width);
  const auto* shift_partial = static_cast<const SumOf<T>*>(op.partial);
  const auto* scale_partial = shift_partial + shape.batch * blocks_in_batch * shape.width;
  rematch_add_partial_sums<T><<<grid, kThreads, 0, stream>>>(
      shift_partial, blocks_in_batch, shape.width, static_cast<T*>(op.grad_shift));
  rematch_add_partial_sums<T><<<grid, kThreads, 0, stream>>>(
      scale_partial, blocks_in_batch, shape.width, static_cast<T*>(op.grad_scale));
}

// Calls f with two null pointers. Their types tell f the element types of x and out.
template <typename Function>
void with_types(const Modulate& op, const Function& f) {
  if (op.element == Element::kFloat32 && op.out_element == Element::kBFloat16) {
    return f(static_cast<float*>(nullptr), static_cast<__nv_bfloat16*>(nullptr));
  }
  with_type(op.element, [&](auto* type) { f(type, type); });
}

}  // namespace

int run(const Modulate& op, void* stream) {
  const auto num_rows = static_cast<unsigned>(op.batch * op.rows);
  if (num_rows == 0) return cudaSuccess;
  const auto on = static_cast<cudaStream_t>(stream);
  with_types(op, [&](auto* x, auto* out) {
    using T = std::remove_pointer_t<decltype(x)>;
    using U = std::remove_pointer_t<decltype(out)>;
    const bool wide = are_multiples(kLanes<T>, op.width, op.shift_stride, op.scale_stride) &&
                      are_aligned(op.x, op.shift, op.scale, op.out);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      rematch_modulate_forward<T, U, kCount><<<num_rows, kThreads, 0, on>>>(op);
    });
  });
  return cudaGetLastError();
}

int run(const ModulateBackward& op, void* stream) {
  const Modulate& shape = op.forward;
  if (shape.batch * shape.rows * shape.width == 0) return cudaSuccess;
  const std::int64_t blocks_in_batch = num_column_blocks(shape.batch, shape.rows, shape.width);
  const auto on = static_cast<cudaStream_t>(stream);
  with_types(shape, [&](auto* x, auto* out) {
    using T = std::remove_pointer_t<decltype(x)>;
    using U = std::remove_pointer_t<decltype(out)>;
    const bool wide = are_multiples(kLanes<T>, shape.width, shape.scale_stride) &&
                      are_aligned(shape.x, shape.scale, op.grad_out, op.grad_x);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      const dim3 grid = column_grid<kCount>(shape.batch, blocks_in_batch, shape.width);
      rematch_modulate_backward<T, U, kCount><<<grid, kThreads, 0, on>>>(op, blocks_in_batch);
    });
    add_sums<T>(op, blocks_in_batch, on);
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
