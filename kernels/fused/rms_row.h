// The RMS norm of one row and its gradient, for the CPU kernels of rms_norm and rms_norm_rope.
// Include this header only where lanes.h may be included.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {

// A norm of rows of `width` elements. A null weight is 1.
template <typename T>
struct RmsRow {
  std::int64_t width;
  double eps;
  const T* weight;

  SumOf<T> reciprocal_rms(SumOf<T> square_sum) const {
    using Sum = SumOf<T>;
    return Sum(1) / std::sqrt(square_sum / static_cast<Sum>(width) + static_cast<Sum>(eps));
  }

  // Computes y = x / rms(x) * weight. Y is T or SumOf<T>.
  template <typename Y>
  void normalise(const T* x, Y* y) const {
    using L = Lanes<T>;
    using Wide = typename L::Wide;
    Wide squares(0);
    L::for_each(width, [&](std::int64_t i, int count) {
      const Wide x_wide = L::load(x + i, count);
      squares = at::vec::fmadd(x_wide, x_wide, squares);
    });
    const Wide scale(reciprocal_rms(L::total(squares)));
    L::for_each(width, [&](std::int64_t i, int count) {
      Wide result = L::load(x + i, count) * scale;
      if (weight != nullptr) result = result * L::load(weight + i, count);
      L::store(result, y + i, count);
    });
  }

  // Computes grad_x = r * grad_y * w - x * r^3 * mean(grad_y * w * x) + grad_sum, where r = 1 / rms
  // and w is the weight. A null grad_sum is 0. Adds grad_y * x * r to weight_sums, unless null. G
  // is T or SumOf<T>.
  template <typename G>
  void differentiate(const T* x, const G* grad_y, const T* grad_sum, T* grad_x,
                     SumOf<T>* weight_sums) const {
    using L = Lanes<T>;
    using Wide = typename L::Wide;
    const auto weighted = [&](std::int64_t i, int count) {
      const Wide grad = L::load(grad_y + i, count);
      return weight == nullptr ? grad : grad * L::load(weight + i, count);
    };
    Wide squares(0), products(0);
    L::for_each(width, [&](std::int64_t i, int count) {
      const Wide x_wide = L::load(x + i, count);
      squares = at::vec::fmadd(x_wide, x_wide, squares);
      products = at::vec::fmadd(weighted(i, count), x_wide, products);
    });
    const SumOf<T> r = reciprocal_rms(L::total(squares));
    const Wide scale(r);
    const Wide pull(-L::total(products) * r * r * r / static_cast<SumOf<T>>(width));
    L::for_each(width, [&](std::int64_t i, int count) {
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
};

// Returns the norm of the rows of `op`, which is an RmsNorm or an RmsNormRope.
template <typename T, typename Op>
RmsRow<T> rms_row_of(const Op& op) {
  return {op.width, op.eps, static_cast<const T*>(op.weight)};
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
