// The CPU kernel. This file is compiled once for each instruction set.
#include "kernels/fused/rope.h"

#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

// Two vector registers whose elements have the type in which sums are computed.
template <typename T>
using Two = at::vec::VectorizedN<SumOf<T>, 2>;

template <typename T>
Two<T> load_two(const T* from) {
  if constexpr (Lanes<T>::kRegisters == 2) {
    return Lanes<T>::load(from);
  } else {
    return Two<T>::loadu(from);
  }
}

template <typename T>
void store_two(const Two<T>& two, T* to) {
  if constexpr (Lanes<T>::kRegisters == 2) {
    Lanes<T>::store(two, to);
  } else {
    two.store(to);
  }
}

template <typename T>
void turn(const T* x, const SumOf<T>* cosine, const SumOf<T>* sine, SumOf<T> direction,
          std::int64_t pairs, T* out) {
  using Sum = SumOf<T>;
  using Vector = at::vec::Vectorized<Sum>;
  constexpr std::int64_t kPairs = Vector::size();
  std::int64_t pair = 0;
  for (; pair + kPairs <= pairs; pair += kPairs) {
    const Two<T> two = load_two(x + 2 * pair);
    const auto [even, odd] = at::vec::deinterleave2(two[0], two[1]);
    const Vector c = Vector::loadu(cosine + pair);
    const Vector s = Vector::loadu(sine + pair) * Vector(direction);
    const auto [low, high] = at::vec::interleave2(even * c - odd * s, even * s + odd * c);
    store_two(Two<T>(low, high), out + 2 * pair);
  }
  for (; pair < pairs; ++pair) {
    const auto even = static_cast<Sum>(x[2 * pair]);
    const auto odd = static_cast<Sum>(x[2 * pair + 1]);
    const Sum c = cosine[pair];
    const Sum s = sine[pair] * direction;
    out[2 * pair] = static_cast<T>(even * c - odd * s);
    out[2 * pair + 1] = static_cast<T>(even * s + odd * c);
  }
}

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
        turn(x + head * op.head_stride, cosine, sine, static_cast<SumOf<T>>(op.direction), op.pairs,
             out + head * op.pairs * 2);
      }
    }
  });
}

}  // namespace

void run(const Rope& op) {
  with_type(op.element, [&]<typename T>(T*) { forward<T>(op); });
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
