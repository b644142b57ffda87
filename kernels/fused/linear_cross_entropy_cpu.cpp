// The CPU kernels. This file is compiled once for each instruction set.
#include "kernels/fused/linear_cross_entropy.h"

#include <cmath>

#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

template <typename T>
SumOf<T> largest(const T* logits, std::int64_t width, SumOf<T> start) {
  using L = Lanes<T>;
  using Wide = typename L::Wide;
  Wide result(start);
  L::for_each(width, [&](std::int64_t i, int count) {
    result = Wide::set(result, at::vec::maximum(result, L::load(logits + i, count)), count);
  });
  return at::vec::vec_reduce_all<SumOf<T>>(
      [](const auto& a, const auto& b) { return at::vec::maximum(a, b); }, result);
}

template <typename T>
SumOf<T> sum_of_exponentials(const T* logits, std::int64_t width, SumOf<T> maximum) {
  using L = Lanes<T>;
  using Wide = typename L::Wide;
  Wide result(0);
  L::for_each(width, [&](std::int64_t i, int count) {
    const Wide term = (L::load(logits + i, count) - Wide(maximum)).exp();
    result = Wide::set(result, result + term, count);
  });
  return L::total(result);
}

template <typename T>
void forward(const LogitChunk& op) {
  using Sum = SumOf<T>;
  at::parallel_for(0, op.rows, row_grain(op.width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* logits = static_cast<const T*>(op.logits) + row * op.width;
      Sum& maximum = static_cast<Sum*>(op.maximum)[row];
      Sum& sum = static_cast<Sum*>(op.sum)[row];
      const Sum before = maximum;
      maximum = largest(logits, op.width, before);
      sum = sum * std::exp(before - maximum) + sum_of_exponentials(logits, op.width, maximum);
      const std::int64_t target = op.target[row] - op.first;
      if (target < 0 || target >= op.width) continue;
      static_cast<Sum*>(op.target_logit)[row] = static_cast<Sum>(logits[target]);
    }
  });
}

template <typename T>
void backward(const LogitChunkBackward& op) {
  using L = Lanes<T>;
  using Sum = SumOf<T>;
  using Wide = typename L::Wide;
  const Sum scale = *static_cast<const Sum*>(op.grad_loss) / static_cast<Sum>(op.rows);
  at::parallel_for(0, op.rows, row_grain(op.width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      T* gradients = static_cast<T*>(op.logits) + row * op.width;
      const T* logits =
          op.kept == nullptr ? gradients : static_cast<const T*>(op.kept) + row * op.width;
      const Sum logsumexp = static_cast<const Sum*>(op.logsumexp)[row];
      const std::int64_t target = op.target[row] - op.first;
      const bool has_target = target >= 0 && target < op.width;
      Sum at_target = 0;
      if (has_target) {
        at_target = (std::exp(static_cast<Sum>(logits[target]) - logsumexp) - Sum(1)) * scale;
      }
      L::for_each(op.width, [&](std::int64_t i, int count) {
        const Wide probability = (L::load(logits + i, count) - Wide(logsumexp)).exp();
        L::store(probability * Wide(scale), gradients + i, count);
      });
      if (has_target) gradients[target] = static_cast<T>(at_target);
    }
  });
}

}  // namespace

void run(const LogitChunk& op) {
  with_type(op.element, [&]<typename T>(T*) { forward<T>(op); });
}

void run(const LogitChunkBackward& op) {
  with_type(op.element, [&]<typename T>(T*) { backward<T>(op); });
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
