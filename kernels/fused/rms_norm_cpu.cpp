// The CPU kernels. This file is compiled once for each instruction set.
#include "kernels/fused/rms_norm.h"

#include <cmath>

#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

template <typename T>
SumOf<T> reciprocal_rms(SumOf<T> square_sum, const RmsNorm& op) {
  using Sum = SumOf<T>;
  return Sum(1) / std::sqrt(square_sum / static_cast<Sum>(op.width) + static_cast<Sum>(op.eps));
}

template <typename T>
void normalise_row(const RmsNorm& op, const T* x, T* y) {
  using L = Lanes<T>;
  using Wide = typename L::Wide;
  Wide squares(0);
  L::for_each(op.width, [&](std::int64_t i, int count) {
    const Wide x_wide = L::load(x + i, count);
    squares = at::vec::fmadd(x_wide, x_wide, squares);
  });
  const Wide scale(reciprocal_rms<T>(L::total(squares), op));
  const T* weight = static_cast<const T*>(op.weight);
  L::for_each(op.width, [&](std::int64_t i, int count) {
    Wide result = L::load(x + i, count) * scale;
    if (weight != nullptr) result = result * L::load(weight + i, count);
    L::store(result, y + i, count);
  });
}

template <typename T>
void add_row(std::int64_t width, const T* x, const T* branch, T* sum) {
  using L = Lanes<T>;
  L::for_each(width, [&](std::int64_t i, int count) {
    L::store(L::load(x + i, count) + L::load(branch + i, count), sum + i, count);
  });
}

// Computes grad_x = r * grad_y * w - x * r^3 * mean(grad_y * w * x) + grad_sum, where r = 1 / rms
// and w is the weight. A null grad_sum is 0. Adds grad_y * x * r to weight_sums.
template <typename T>
void differentiate_row(const RmsNorm& op, const T* x, const T* grad_y, const T* grad_sum, T* grad_x,
                       SumOf<T>* weight_sums) {
  using L = Lanes<T>;
  using Wide = typename L::Wide;
  const T* weight = static_cast<const T*>(op.weight);
  const auto weighted = [&](std::int64_t i, int count) {
    const Wide grad = L::load(grad_y + i, count);
    return weight == nullptr ? grad : grad * L::load(weight + i, count);
  };
  Wide squares(0), products(0);
  L::for_each(op.width, [&](std::int64_t i, int count) {
    const Wide x_wide = L::load(x + i, count);
    squares = at::vec::fmadd(x_wide, x_wide, squares);
    products = at::vec::fmadd(weighted(i, count), x_wide, products);
  });
  const SumOf<T> r = reciprocal_rms<T>(L::total(squares), op);
  const Wide scale(r);
  const Wide pull(-L::total(products) * r * r * r / static_cast<SumOf<T>>(op.width));
  L::for_each(op.width, [&](std::int64_t i, int count) {
    const Wide x_wide = L::load(x + i, count);
    Wide result = at::vec::fmadd(x_wide, pull, weighted(i, count) * scale);
    if (grad_sum != nullptr) result = result + L::load(grad_sum + i, count);
    L::store(result, grad_x + i, count);
    if (weight_sums == nullptr) return;
    const Wide sum = Wide::loadu(weight_sums + i, count);
    const Wide product = L::load(grad_y + i, count) * x_wide;
    at::vec::fmadd(product, scale, sum).store(weight_sums + i, count);
  });
}

template <typename T>
void forward(const RmsNorm& op) {
  const T* x = static_cast<const T*>(op.x);
  const T* branch = static_cast<const T*>(op.branch);
  T* y = static_cast<T*>(op.y);
  T* sum = static_cast<T*>(op.sum);
  at::parallel_for(0, op.rows, row_grain(op.width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* normalised = x + row * op.x_stride;
      if (branch != nullptr) {
        add_row(op.width, normalised, branch + row * op.branch_stride, sum + row * op.width);
        normalised = sum + row * op.width;
      }
      normalise_row(op, normalised, y + row * op.width);
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
  for_each_row_block(/*batch=*/1, forward.rows, forward.width, [&](const RowBlock& block) {
    SumOf<T>* sums = partial == nullptr ? nullptr : partial + block.index * forward.width;
    if (sums != nullptr) std::fill_n(sums, forward.width, SumOf<T>(0));
    for (std::int64_t row = block.first; row < block.end; ++row) {
      differentiate_row(forward, x + row * forward.x_stride, grad_y + row * op.grad_stride,
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
