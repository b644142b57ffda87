// The CPU kernels. This file is compiled once for each instruction set.
#include "kernels/fused/silu_mul.h"

#include "kernels/op/sigmoid.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

constexpr std::int64_t kGrain = 16'384;

// Splits the elements into runs that are adjacent in all arrays. Calls f(first, of_gate, count) for
// each run: the run begins at element `first` of dense arrays, and at `of_gate` of the other
// arrays.
template <typename Op, typename Function>
void for_each_run(const Op& op, const Function& f) {
  if (op.width == 0) {
    at::parallel_for(0, op.size, kGrain,
                     [&](std::int64_t begin, std::int64_t end) { f(begin, begin, end - begin); });
    return;
  }
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / op.width);
  at::parallel_for(0, op.size / op.width, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      f(row * op.width, 2 * row * op.width, op.width);
    }
  });
}

template <typename T>
void forward(const SiluMul& op) {
  using L = Lanes<T>;
  for_each_run(op, [&](std::int64_t first, std::int64_t of_gate, std::int64_t size) {
    const T* gate = static_cast<const T*>(op.gate) + of_gate;
    const T* up = static_cast<const T*>(op.up) + of_gate;
    T* out = static_cast<T*>(op.out) + first;
    L::for_each(size, [&](std::int64_t i, int count) {
      const auto gate_wide = L::load(gate + i, count);
      L::store(gate_wide * sigmoid(gate_wide) * L::load(up + i, count), out + i, count);
    });
  });
}

// The derivative of silu(gate) is s * (1 + gate * (1 - s)), where s = sigmoid(gate).
template <typename T>
void backward(const SiluMulBackward& op) {
  using L = Lanes<T>;
  using Wide = typename L::Wide;
  for_each_run(op, [&](std::int64_t first, std::int64_t of_gate, std::int64_t size) {
    const T* grad_out = static_cast<const T*>(op.grad_out) + first;
    const T* gate = static_cast<const T*>(op.gate) + of_gate;
    const T* up = static_cast<const T*>(op.up) + of_gate;
    T* grad_gate = static_cast<T*>(op.grad_gate) + of_gate;
    T* grad_up = static_cast<T*>(op.grad_up) + of_gate;
    const Wide one(1);
    L::for_each(size, [&](std::int64_t i, int count) {
      const Wide x = L::load(gate + i, count);
      const Wide grad = L::load(grad_out + i, count);
      const Wide s = sigmoid(x);
      const Wide slope = s * at::vec::fmadd(x, one - s, one);
      L::store(grad * x * s, grad_up + i, count);
      L::store(grad * L::load(up + i, count) * slope, grad_gate + i, count);
    });
  });
}

}  // namespace

void run(const SiluMul& op) {
  with_type(op.element, [&]<typename T>(T*) { forward<T>(op); });
}

void run(const SiluMulBackward& op) {
  with_type(op.element, [&]<typename T>(T*) { backward<T>(op); });
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
