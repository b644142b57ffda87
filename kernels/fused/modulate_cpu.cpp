// The CPU kernels. This file is compiled once for each instruction set.
#include "kernels/fused/modulate.h"

#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

// T is x's type, U is out's type.
template <typename T, typename U>
void forward(const Modulate& op) {
  using L = WideLanes<T, U>;
  using Wide = typename L::Wide;
  const std::int64_t num_rows = op.batch * op.rows;
  at::parallel_for(0, num_rows, row_grain(op.width), [&](std::int64_t begin, std::int64_t end) {
    const Wide one(1);
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t batch = row / op.rows;
      const T* x = static_cast<const T*>(op.x) + row * op.width;
      const T* shift = static_cast<const T*>(op.shift) + batch * op.shift_stride;
      const T* scale = static_cast<const T*>(op.scale) + batch * op.scale_stride;
      U* out = static_cast<U*>(op.out) + row * op.width;
      L::for_each(op.width, [&](std::int64_t i, int count) {
        const Wide factor = one + L::load(scale + i, count);
        L::store(at::vec::fmadd(L::load(x + i, count), factor, L::load(shift + i, count)), out + i,
                 count);
      });
    }
  });
}

// Computes grad_x = grad_out * (1 + scale) for one row. Adds grad_out to shift_sums, and
// grad_out * x to scale_sums.
template <typename T, typename U>
void differentiate_row(std::int64_t width, const T* x, const T* scale, const U* grad_out, T* grad_x,
                       SumOf<T>* shift_sums, SumOf<T>* scale_sums) {
  using L = WideLanes<T, U>;
  using Wide = typename L::Wide;
  const Wide one(1);
  L::for_each(width, [&](std::int64_t i, int count) {
    const Wide grad = L::load(grad_out + i, count);
    L::store(grad * (one + L::load(scale + i, count)), grad_x + i, count);
    (Wide::loadu(shift_sums + i, count) + grad).store(shift_sums + i, count);
    at::vec::fmadd(grad, L::load(x + i, count), Wide::loadu(scale_sums + i, count))
        .store(scale_sums + i, count);
  });
}

template <typename T, typename U>
void backward(const ModulateBackward& op) {
  const Modulate& forward = op.forward;
  const std::int64_t width = forward.width;
  const std::int64_t blocks_in_batch = num_row_blocks(forward.rows);
  const std::int64_t num_blocks = forward.batch * blocks_in_batch;
  auto* shift_partial = static_cast<SumOf<T>*>(op.partial);
  SumOf<T>* scale_partial = shift_partial + num_blocks * width;
  for_each_row_block(forward.batch, forward.rows, width, [&](const RowBlock& block) {
    const T* scale = static_cast<const T*>(forward.scale) + block.batch * forward.scale_stride;
    SumOf<T>* shift_sums = shift_partial + block.index * width;
    SumOf<T>* scale_sums = scale_partial + block.index * width;
    std::fill_n(shift_sums, width, SumOf<T>(0));
    std::fill_n(scale_sums, width, SumOf<T>(0));
    for (std::int64_t row = block.first; row < block.end; ++row) {
      const std::int64_t offset = row * width;
      differentiate_row(width, static_cast<const T*>(forward.x) + offset, scale,
                        static_cast<const U*>(op.grad_out) + offset,
                        static_cast<T*>(op.grad_x) + offset, shift_sums, scale_sums);
    }
  });
  for (std::int64_t batch = 0; batch < forward.batch; ++batch) {
    const std::int64_t offset = batch * blocks_in_batch * width;
    add_partial_sums(shift_partial + offset, blocks_in_batch, width,
                     static_cast<T*>(op.grad_shift) + batch * width);
    add_partial_sums(scale_partial + offset, blocks_in_batch, width,
                     static_cast<T*>(op.grad_scale) + batch * width);
  }
}

// Calls f with two null pointers. Their types tell f the element types of x and out.
template <typename Function>
void with_types(const Modulate& op, const Function& f) {
  if (op.element == Element::kFloat32 && op.out_element == Element::kBFloat16) {
    return f(static_cast<float*>(nullptr), static_cast<c10::BFloat16*>(nullptr));
  }
  with_type(op.element, [&](auto* type) { f(type, type); });
}

}  // namespace

void run(const Modulate& op) {
  with_types(op, [&]<typename T, typename U>(T*, U*) { forward<T, U>(op); });
}

void run(const ModulateBackward& op) {
  with_types(op.forward, [&]<typename T, typename U>(T*, U*) { backward<T, U>(op); });
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
