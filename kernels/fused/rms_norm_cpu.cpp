// The CPU kernels. This file is compiled once for each instruction set.
#include "kernels/fused/rms_norm.h"

#include "kernels/fused/rms_row.h"
#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

template <typename T>
void add_row(std::int64_t width, const T* x, const T* branch, T* sum) {
  using L = Lanes<T>;
  L::for_each(width, [&](std::int64_t i, int count) {
    L::store(L::load(x + i, count) + L::load(branch + i, count), sum + i, count);
  });
}

template <typename T>
void forward(const RmsNorm& op) {
  const T* x = static_cast<const T*>(op.x);
  const T* branch = static_cast<const T*>(op.branch);
  T* y = static_cast<T*>(op.y);
  T* sum = static_cast<T*>(op.sum);
  const RmsRow<T> norm = rms_row_of<T>(op);
  at::parallel_for(0, op.rows, row_grain(op.width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* normalised = x + row * op.x_stride;
      if (branch != nullptr) {
        add_row(op.width, normalised, branch + row * op.branch_stride, sum + row * op.width);
        normalised = sum + row * op.width;
      }
      norm.normalise(normalised, y + row * op.width);
    }
  });
}

template <typename T>
void backward(const RmsNormBackward& op) {
  const RmsNorm& forward = op.forward;
  const T* x = static_cast<const T*>(forward.x);
  const T* grad_y = static_cast<const T*>(op.grad_y);
  const T* grad_sum = static_cast<const T*>(op.grad_sum);
  T* grad_x = static_cast<T*>(op.grad_x);
  auto* partial = static_cast<SumOf<T>*>(op.partial);
  const RmsRow<T> norm = rms_row_of<T>(forward);
  for_each_row_block(/*batch=*/1, forward.rows, forward.width, [&](const RowBlock& block) {
    SumOf<T>* sums = partial == nullptr ? nullptr : partial + block.index * forward.width;
    if (sums != nullptr) std::fill_n(sums, forward.width, SumOf<T>(0));
    for (std::int64_t row = block.first; row < block.end; ++row) {
      norm.differentiate(x + row * forward.x_stride, grad_y + row * op.grad_stride,
                         grad_sum == nullptr ? nullptr : grad_sum + row * op.grad_sum_stride,
                         grad_x + row * forward.width, sums);
    }
  });
  if (partial == nullptr) return;
  add_partial_sums(partial, num_row_blocks(forward.rows), forward.width,
                   static_cast<T*>(op.grad_weight));
}

}  // namespace

void run(const RmsNorm& op) {
  with_type(op.element, [&]<typename T>(T*) { forward<T>(op); });
}

void run(const RmsNormBackward& op) {
  with_type(op.forward.element, [&]<typename T>(T*) { backward<T>(op); });
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
