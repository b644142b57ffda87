// The CPU kernels. This file is compiled once for each instruction set.
#include "kernels/fused/gated_add.h"

#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

// T is x's type, U is the gate's type.
template <typename T, typename U>
void forward(const GatedAdd& op) {
  using L = WideLanes<T, U>;
  const std::int64_t num_rows = op.batch * op.rows;
  at::parallel_for(0, num_rows, row_grain(op.width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* x = static_cast<const T*>(op.x) + row * op.width;
      const T* branch = static_cast<const T*>(op.branch) + row * op.width;
      const U* gate = static_cast<const U*>(op.gate) + row / op.rows * op.gate_stride;
      T* out = static_cast<T*>(op.out) + row * op.width;
      L::for_each(op.width, [&](std::int64_t i, int count) {
        L::store(at::vec::fmadd(L::load(branch + i, count), L::load(gate + i, count),
                                L::load(x + i, count)),
                 out + i, count);
      });
    }
  });
}

// Computes grad_branch = grad_out * gate for one row. Adds grad_out * branch to gate_sums.
template <typename T, typename U>
void differentiate_row(std::int64_t width, const T* branch, const U* gate, const T* grad_out,
                       T* grad_branch, SumOf<T>* gate_sums) {
  using L = WideLanes<T, U>;
  using Wide = typename L::Wide;
  L::for_each(width, [&](std::int64_t i, int count) {
    const Wide grad = L::load(grad_out + i, count);
    L::store(grad * L::load(gate + i, count), grad_branch + i, count);
    at::vec::fmadd(grad, L::load(branch + i, count), Wide::loadu(gate_sums + i, count))
        .store(gate_sums + i, count);
  });
}

template <typename T, typename U>
void backward(const GatedAddBackward& op) {
  const GatedAdd& forward = op.forward;
  const std::int64_t width = forward.width;
  const std::int64_t blocks_in_batch = num_row_blocks(forward.rows);
  auto* partial = static_cast<SumOf<T>*>(op.partial);
  for_each_row_block(forward.batch, forward.rows, width, [&](const RowBlock& block) {
    const U* gate = static_cast<const U*>(forward.gate) + block.batch * forward.gate_stride;
    SumOf<T>* sums = partial + block.index * width;
    std::fill_n(sums, width, SumOf<T>(0));
    for (std::int64_t row = block.first; row < block.end; ++row) {
      const std::int64_t offset = row * width;
      differentiate_row(width, static_cast<const T*>(forward.branch) + offset, gate,
                        static_cast<const T*>(op.grad_out) + offset,
                        static_cast<T*>(op.grad_branch) + offset, sums);
    }
  });
  for (std::int64_t batch = 0; batch < forward.batch; ++batch) {
    add_partial_sums(partial + batch * blocks_in_batch * width, blocks_in_batch, width,
                     static_cast<U*>(op.grad_gate) + batch * width);
  }
}

}  // namespace

void run(const GatedAdd& op) {
  with_table_type(op.element, op.gate_element,
                  [&]<typename T, typename U>(T*, U*) { forward<T, U>(op); });
}

void run(const GatedAddBackward& op) {
  with_table_type(op.forward.element, op.forward.gate_element,
                  [&]<typename T, typename U>(T*, U*) { backward<T, U>(op); });
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
