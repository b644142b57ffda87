// Forward has one block of threads per row. In backward, each thread sums its own columns over
// rows.
#include "kernels/fused/gated_add.h"
#include "kernels/op/rows.cuh"

namespace rematch::kernels::cuda {
namespace {

// T is x's type, U is the gate's type.
template <typename T, typename U, int kCount>
__global__ void rematch_gated_add_forward(GatedAdd op) {
  using Sum = SumOf<T>;
  const int width = static_cast<int>(op.width);
  const std::int64_t first = blockIdx.x * op.width;
  const U* gate = static_cast<const U*>(op.gate) + blockIdx.x / op.rows * op.gate_stride;
  for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += kThreads * kCount) {
    const auto x = load_lanes<kCount>(static_cast<const T*>(op.x) + first + i);
    const auto branch = load_lanes<kCount>(static_cast<const T*>(op.branch) + first + i);
    const auto gates = load_lanes<kCount>(gate + i);
    Sum values[kCount];
    for (int lane = 0; lane < kCount; ++lane) values[lane] = x[lane] + branch[lane] * gates[lane];
    store_lanes(values, static_cast<T*>(op.out) + first + i);
  }
}

// See Note [Columns in blocks]. A thread loads its gate once.
template <typename T, typename U, int kCount>
__global__ void __launch_bounds__(kThreads, 5)
    rematch_gated_add_backward(GatedAddBackward op, std::int64_t blocks_in_batch) {
  using Sum = SumOf<T>;
  const GatedAdd& shape = op.forward;
  const ColumnPlace<kCount> own(blocks_in_batch, shape.width);
  const std::int64_t num_rows = own.is_used ? shape.rows : 0;
  const U* const gate = static_cast<const U*>(shape.gate) + own.batch * shape.gate_stride;
  Sum gates[kCount] = {};
  if (own.is_used) load_lanes(gate + own.column, gates);
  Sum gate_sum[kCount] = {};
  for (std::int64_t row = own.first_row; row < num_rows; row += own.row_stride) {
    const std::int64_t place = (own.batch * shape.rows + row) * shape.width + own.column;
    const auto branch = load_lanes<kCount>(static_cast<const T*>(shape.branch) + place);
    const auto grads = load_lanes<kCount>(static_cast<const T*>(op.grad_out) + place);
    Sum scaled[kCount];
    for (int lane = 0; lane < kCount; ++lane) {
      const Sum grad = grads[lane];
      gate_sum[lane] += grad * branch[lane];
      scaled[lane] = grad * gates[lane];
    }
    store_lanes(scaled, static_cast<T*>(op.grad_branch) + place);
  }
  if (!add_over_groups<kWarp>(gate_sum) || !own.is_used) return;
  store_lanes(gate_sum, static_cast<Sum*>(op.partial) + blockIdx.x * shape.width + own.column);
}

}  // namespace

int run(const GatedAdd& op, void* stream) {
  const auto num_rows = static_cast<unsigned>(op.batch * op.rows);
  if (num_rows == 0) return cudaSuccess;
  const auto on = static_cast<cudaStream_t>(stream);
  with_table_type(op.element, op.gate_element, [&](auto* x, auto* gate) {
    using T = std::remove_pointer_t<decltype(x)>;
    using U = std::remove_pointer_t<decltype(gate)>;
    const bool wide = are_multiples(kLanes<T>, op.width, op.gate_stride) &&
                      are_aligned(op.x, op.branch, op.gate, op.out);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      rematch_gated_add_forward<T, U, kCount><<<num_rows, kThreads, 0, on>>>(op);
    });
  });
  return cudaGetLastError();
}

int run(const GatedAddBackward& op, void* stream) {
  const GatedAdd& shape = op.forward;
  if (shape.batch * shape.rows * shape.width == 0) return cudaSuccess;
  const std::int64_t blocks_in_batch = num_column_blocks(shape.batch, shape.rows, shape.width);
  const auto on = static_cast<cudaStream_t>(stream);
  with_table_type(shape.element, shape.gate_element, [&](auto* x, auto* gate) {
    using T = std::remove_pointer_t<decltype(x)>;
    using U = std::remove_pointer_t<decltype(gate)>;
    const bool wide = are_multiples(kLanes<T>, shape.width, shape.gate_stride) &&
                      are_aligned(shape.branch, shape.gate, op.grad_out, op.grad_branch);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      const dim3 grid = column_grid<kCount>(shape.batch, blocks_in_batch, shape.width);
      rematch_gated_add_backward<T, U, kCount><<<grid, kThreads, 0, on>>>(op, blocks_in_batch);
    });
    const dim3 sums = table_sum_grid(shape.batch, shape.width);
    rematch_add_partial_sums<U><<<sums, kThreads, 0, on>>>(static_cast<const SumOf<U>*>(op.partial),
                                                           blocks_in_batch, shape.width,
                                                           static_cast<U*>(op.grad_gate));
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
