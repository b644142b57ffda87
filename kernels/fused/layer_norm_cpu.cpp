// The CPU kernels. This file is compiled once for each instruction set.
#include "kernels/fused/layer_norm.h"

#include <cmath>

#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

// T is x's type, U is the type of scale and shift.
template <typename T, typename U>
struct LayerNormLanes : WideLanes<T, U> {
  using L = WideLanes<T, U>;
  using Wide = typename L::Wide;
  using Sum = typename L::Sum;

  // Lanes from `count` on are 0, so that they add nothing to a sum.
  static Wide first_lanes(const Wide& wide, int count) {
    return count == L::kCount ? wide : Wide::set(Wide(0), wide, count);
  }

  static Sum mean_of(const LayerNorm& op, const T* x) {
    Wide sums(0);
    L::for_each(op.width, [&](std::int64_t i, int count) {
      sums = sums + first_lanes(L::load(x + i, count), count);
    });
    return L::total(sums) / static_cast<Sum>(op.width);
  }

  // Returns 1 / sqrt(variance + eps). `squares` are of x - mean: a difference of sums of x would
  // lose digits.
  static Sum reciprocal_deviation(const LayerNorm& op, const Wide& squares) {
    const Sum variance = L::total(squares) / static_cast<Sum>(op.width);
    return Sum(1) / std::sqrt(variance + static_cast<Sum>(op.eps));
  }
};

template <typename T, typename U>
void forward(const LayerNorm& op) {
  using L = LayerNormLanes<T, U>;
  using Wide = typename L::Wide;
  const Wide offset(static_cast<typename L::Sum>(op.offset));
  const std::int64_t num_rows = op.batch * op.rows;
  at::parallel_for(0, num_rows, row_grain(op.width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* x = static_cast<const T*>(op.x) + row * op.width;
      const U* scale = static_cast<const U*>(op.scale) + row / op.rows * op.scale_stride;
      const U* shift = static_cast<const U*>(op.shift) + row / op.rows * op.shift_stride;
      T* y = static_cast<T*>(op.y) + row * op.width;
      const Wide mean(L::mean_of(op, x));
      Wide squares(0);
      L::for_each(op.width, [&](std::int64_t i, int count) {
        const Wide centred = L::first_lanes(L::load(x + i, count) - mean, count);
        squares = at::vec::fmadd(centred, centred, squares);
      });
      const Wide reciprocal(L::reciprocal_deviation(op, squares));
      L::for_each(op.width, [&](std::int64_t i, int count) {
        const Wide normalised = (L::load(x + i, count) - mean) * reciprocal;
        const Wide factor = offset + L::load(scale + i, count);
        L::store(at::vec::fmadd(normalised, factor, L::load(shift + i, count)), y + i, count);
      });
    }
  });
}

// Computes grad_x = r * (g - mean(g) - n * mean(g * n)) for one row, where r = 1 / sqrt(variance +
// eps), n is the normalised row and g = grad_y * (offset + scale). Adds grad_y * n to scale_sums,
// and grad_y to shift_sums.
template <typename T, typename U>
void differentiate_row(const LayerNorm& op, const T* x, const U* scale, const T* grad_y, T* grad_x,
                       SumOf<T>* scale_sums, SumOf<T>* shift_sums) {
  using L = LayerNormLanes<T, U>;
  using Wide = typename L::Wide;
  using Sum = typename L::Sum;
  const auto width = static_cast<Sum>(op.width);
  const Wide offset(static_cast<Sum>(op.offset));
  const Wide mean(L::mean_of(op, x));
  Wide squares(0), sums(0), products(0);
  L::for_each(op.width, [&](std::int64_t i, int count) {
    const Wide centred = L::first_lanes(L::load(x + i, count) - mean, count);
    const Wide factor = offset + L::load(scale + i, count);
    const Wide weighted = L::first_lanes(L::load(grad_y + i, count) * factor, count);
    squares = at::vec::fmadd(centred, centred, squares);
    sums = sums + weighted;
    products = at::vec::fmadd(weighted, centred, products);
  });
  const Sum r = L::reciprocal_deviation(op, squares);
  const Wide reciprocal(r);
  const Wide mean_weighted(L::total(sums) / width);
  const Wide slope(-L::total(products) * r / width);
  L::for_each(op.width, [&](std::int64_t i, int count) {
    const Wide grad = L::load(grad_y + i, count);
    const Wide normalised = (L::load(x + i, count) - mean) * reciprocal;
    const Wide weighted = grad * (offset + L::load(scale + i, count));
    const Wide scale_sum = Wide::loadu(scale_sums + i, count);
    const Wide shift_sum = Wide::loadu(shift_sums + i, count);
    at::vec::fmadd(grad, normalised, scale_sum).store(scale_sums + i, count);
    (shift_sum + grad).store(shift_sums + i, count);
    L::store(at::vec::fmadd(normalised, slope, weighted - mean_weighted) * reciprocal, grad_x + i,
             count);
  });
}

template <typename T, typename U>
void backward(const LayerNormBackward& op) {
  const LayerNorm& forward = op.forward;
  const std::int64_t width = forward.width;
  const std::int64_t blocks_in_batch = num_row_blocks(forward.rows);
  const std::int64_t num_blocks = forward.batch * blocks_in_batch;
  auto* scale_partial = static_cast<SumOf<T>*>(op.partial);
  SumOf<T>* shift_partial = scale_partial + num_blocks * width;
  for_each_row_block(forward.batch, forward.rows, width, [&](const RowBlock& block) {
    const U* scale = static_cast<const U*>(forward.scale) + block.batch * forward.scale_stride;
    SumOf<T>* scale_sums = scale_partial + block.index * width;
    SumOf<T>* shift_sums = shift_partial + block.index * width;
    std::fill_n(scale_sums, width, SumOf<T>(0));
    std::fill_n(shift_sums, width, SumOf<T>(0));
    for (std::int64_t row = block.first; row < block.end; ++row) {
      const std::int64_t place = row * width;
      differentiate_row(forward, static_cast<const T*>(forward.x) + place, scale,
                        static_cast<const T*>(op.grad_y) + place,
                        static_cast<T*>(op.grad_x) + place, scale_sums, shift_sums);
    }
  });
  for (std::int64_t batch = 0; batch < forward.batch; ++batch) {
    const std::int64_t first = batch * blocks_in_batch * width;
    add_partial_sums(scale_partial + first, blocks_in_batch, width,
                     static_cast<U*>(op.grad_scale) + batch * width);
    add_partial_sums(shift_partial + first, blocks_in_batch, width,
                     static_cast<U*>(op.grad_shift) + batch * width);
  }
}

}  // namespace

void run(const LayerNorm& op) {
  with_table_type(op.element, op.table_element,
                  [&]<typename T, typename U>(T*, U*) { forward<T, U>(op); });
}

void run(const LayerNormBackward& op) {
  with_table_type(op.forward.element, op.forward.table_element,
                  [&]<typename T, typename U>(T*, U*) { backward<T, U>(op); });
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
