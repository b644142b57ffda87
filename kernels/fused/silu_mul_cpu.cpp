// The CPU kernels. This file is compiled once for each instruction set.
#include "kernels/fused/silu_mul.h"

#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

constexpr std::int64_t kGrain = 16'384;

// exp_u20 is several times as fast as exp; its error is at most 20 units in the last place. Its
// result never overflows to infinity, so for large negative x the sigmoid is about 1e-38 instead of
// 0.
template <typename T>
typename Lanes<T>::Wide sigmoid(const typename Lanes<T>::Wide& x) {
  using Wide = typename Lanes<T>::Wide;
  const Wide one(1);
  return one / (one + x.neg().exp_u20());
}

template <typename T>
void forward(const SiluMul& op) {
  using L = Lanes<T>;
  at::parallel_for(0, op.size, kGrain, [&](std::int64_t begin, std::int64_t end) {
    const T* gate = static_cast<const T*>(op.gate) + begin;
    const T* up = static_cast<const T*>(op.up) + begin;
    T* out = static_cast<T*>(op.out) + begin;
    L::for_each(end - begin, [&](std::int64_t i, int count) {
      const auto gate_wide = L::load(gate + i, count);
      L::store(gate_wide * sigmoid<T>(gate_wide) * L::load(up + i, count), out + i, count);
    });
  });
}

// The derivative of silu(gate) is s * (1 + gate * (1 - s)), where s = sigmoid(gate).
template <typename T>
void backward(const SiluMulBackward& op) {
  using L = Lanes<T>;
  using Wide = typename L::Wide;
  at::parallel_for(0, op.size, kGrain, [&](std::int64_t begin, std::int64_t end) {
    const T* grad_out = static_cast<const T*>(op.grad_out) + begin;
    const T* gate = static_cast<const T*>(op.gate) + begin;
    const T* up = static_cast<const T*>(op.up) + begin;
    T* grad_gate = static_cast<T*>(op.grad_gate) + begin;
    T* grad_up = static_cast<T*>(op.grad_up) + begin;
    const Wide one(1);
    L::for_each(end - begin, [&](std::int64_t i, int count) {
      const Wide x = L::load(gate + i, count);
      const Wide grad = L::load(grad_out + i, count);
      const Wide s = sigmoid<T>(x);
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
