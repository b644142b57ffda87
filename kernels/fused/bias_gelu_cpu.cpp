// The CPU kernels. This file is compiled once for each instruction set.
#include "kernels/fused/bias_gelu.h"

#include "kernels/op/sigmoid.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

// GELU's tanh approximation is x * sigmoid(2u), where u = kSlope * (x + kCubic * x^3).
constexpr double kSlope = 0.79788456080286536;  // sqrt(2 / pi)
constexpr double kCubic = 0.044715;

// Returns 2 * kSlope * (1 + factor * kCubic * x^2).
template <typename T>
typename Lanes<T>::Wide bend(const typename Lanes<T>::Wide& x, double factor) {
  using Wide = typename Lanes<T>::Wide;
  const Wide slope(static_cast<SumOf<T>>(2 * kSlope));
  const Wide cubic(static_cast<SumOf<T>>(2 * kSlope * kCubic * factor));
  return at::vec::fmadd(x * x, cubic, slope);
}

template <typename T>
void forward(const BiasGelu& op) {
  using L = Lanes<T>;
  const T* bias = static_cast<const T*>(op.bias);
  at::parallel_for(0, op.rows, row_grain(op.width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* x = static_cast<const T*>(op.x) + row * op.width;
      T* y = static_cast<T*>(op.y) + row * op.width;
      L::for_each(op.width, [&](std::int64_t i, int count) {
        const auto sum = L::load(x + i, count) + L::load(bias + i, count);
        L::store(sum * sigmoid(sum * bend<T>(sum, 1)), y + i, count);
      });
    }
  });
}

// The derivative of x * s is s + x * s * (1 - s) * (2u)', where s = sigmoid(2u). Adds the gradients
// of x to `sums`, unless it is null.
template <typename T>
void differentiate_gelu_row(std::int64_t width, const T* x, const T* bias, const T* grad_y,
                            T* grad_x, SumOf<T>* sums) {
  using L = Lanes<T>;
  using Wide = typename L::Wide;
  const Wide one(1);
  L::for_each(width, [&](std::int64_t i, int count) {
    const Wide sum = L::load(x + i, count) + L::load(bias + i, count);
    const Wide s = sigmoid(sum * bend<T>(sum, 1));
    const Wide slope = s * at::vec::fmadd(sum * bend<T>(sum, 3), one - s, one);
    const Wide grad = L::load(grad_y + i, count) * slope;
    L::store(grad, grad_x + i, count);
    if (sums != nullptr) (Wide::loadu(sums + i, count) + grad).store(sums + i, count);
  });
}

template <typename T>
void backward(const BiasGeluBackward& op) {
  const BiasGelu& forward = op.forward;
  const std::int64_t width = forward.width;
  auto* partial = static_cast<SumOf<T>*>(op.partial);
  for_each_row_block(/*batch=*/1, forward.rows, width, [&](const RowBlock& block) {
    SumOf<T>* sums = partial == nullptr ? nullptr : partial + block.index * width;
    if (sums != nullptr) std::fill_n(sums, width, SumOf<T>(0));
    for (std::int64_t row = block.first; row < block.end; ++row) {
      const std::int64_t offset = row * width;
      differentiate_gelu_row(
          width, static_cast<const T*>(forward.x) + offset, static_cast<const T*>(forward.bias),
          static_cast<const T*>(op.grad_y) + offset, static_cast<T*>(op.grad_x) + offset, sums);
    }
  });
  if (partial == nullptr) return;
  add_partial_sums(partial, num_row_blocks(forward.rows), width, static_cast<T*>(op.grad_bias));
}

}  // namespace

void run(const BiasGelu& op) {
  with_type(op.element, [&]<typename T>(T*) { forward<T>(op); });
}

void run(const BiasGeluBackward& op) {
  with_type(op.forward.element, [&]<typename T>(T*) { backward<T>(op); });
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
