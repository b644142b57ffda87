// The CPU kernels. This file is compiled once for each instruction set. A row between norm and
// rotation stays in a buffer of one row, which fits in the cache.
#include "kernels/fused/rms_norm_rope.h"

#include <vector>

#include "kernels/fused/rms_row.h"
#include "kernels/op/pairs.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

// Rotates all heads of a row by the angles of its token.
template <typename T, typename U>
void turn_row(const RmsNormRope& op, std::int64_t row, const T* x, SumOf<T> direction, U* out) {
  const std::int64_t token = row % op.tokens;
  const auto* cosine = static_cast<const SumOf<T>*>(op.cosine) + token * op.pairs;
  const auto* sine = static_cast<const SumOf<T>*>(op.sine) + token * op.pairs;
  for (std::int64_t first = 0; first < op.width; first += 2 * op.pairs) {
    turn_pairs(x + first, cosine, sine, direction, op.pairs, out + first);
  }
}

template <typename T>
void forward(const RmsNormRope& op) {
  const T* x = static_cast<const T*>(op.x);
  T* y = static_cast<T*>(op.y);
  const RmsRow<T> norm = rms_row_of<T>(op);
  at::parallel_for(0, op.rows, row_grain(op.width), [&](std::int64_t begin, std::int64_t end) {
    std::vector<SumOf<T>> normalised(static_cast<std::size_t>(op.width));
    for (std::int64_t row = begin; row < end; ++row) {
      norm.normalise(x + row * op.x_stride, normalised.data());
      turn_row(op, row, normalised.data(), SumOf<T>(1), y + row * op.width);
    }
  });
}

template <typename T>
void backward(const RmsNormRopeBackward& op) {
  const RmsNormRope& forward = op.forward;
  const T* x = static_cast<const T*>(forward.x);
  const T* grad_y = static_cast<const T*>(op.grad_y);
  T* grad_x = static_cast<T*>(op.grad_x);
  auto* partial = static_cast<SumOf<T>*>(op.partial);
  const RmsRow<T> norm = rms_row_of<T>(forward);
  for_each_row_block(/*batch=*/1, forward.rows, forward.width, [&](const RowBlock& block) {
    std::vector<SumOf<T>> grad(static_cast<std::size_t>(forward.width));
    SumOf<T>* sums = partial == nullptr ? nullptr : partial + block.index * forward.width;
    if (sums != nullptr) std::fill_n(sums, forward.width, SumOf<T>(0));
    for (std::int64_t row = block.first; row < block.end; ++row) {
      turn_row(forward, row, grad_y + row * op.grad_stride, SumOf<T>(-1), grad.data());
      norm.differentiate(x + row * forward.x_stride, grad.data(), /*grad_sum=*/nullptr,
                         grad_x + row * forward.width, sums);
    }
  });
  if (partial == nullptr) return;
  add_partial_sums(partial, num_row_blocks(forward.rows), forward.width,
                   static_cast<T*>(op.grad_weight));
}

}  // namespace

void run(const RmsNormRope& op) {
  with_type(op.element, [&]<typename T>(T*) { forward<T>(op); });
}

void run(const RmsNormRopeBackward& op) {
  with_type(op.forward.element, [&]<typename T>(T*) { backward<T>(op); });
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
