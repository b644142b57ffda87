// The CPU kernel. This file is compiled once for each instruction set.
#include "kernels/fused/rope.h"

#include "kernels/op/pairs.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

template <typename T>
void forward(const Rope& op) {
  const std::int64_t width = op.heads * op.pairs * 2;
  const std::int64_t rows = op.batch * op.tokens;
  at::parallel_for(0, rows, row_grain(width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t token = row % op.tokens;
      const T* x =
          static_cast<const T*>(op.x) + row / op.tokens * op.batch_stride + token * op.token_stride;
      const auto* cosine = static_cast<const SumOf<T>*>(op.cosine) + token * op.pairs;
      const auto* sine = static_cast<const SumOf<T>*>(op.sine) + token * op.pairs;
      T* out = static_cast<T*>(op.out) + row * width;
      for (std::int64_t head = 0; head < op.heads; ++head) {
        turn_pairs(x + head * op.head_stride, cosine, sine, static_cast<SumOf<T>>(op.direction),
                   op.pairs, out + head * op.pairs * 2);
      }
    }
  });
}

}  // namespace

void run(const Rope& op) {
  with_type(op.element, [&]<typename T>(T*) { forward<T>(op); });
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
