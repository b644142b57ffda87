// Rotation of pairs of adjacent elements, for CPU kernels. Include this header only where lanes.h
// may be included.
#pragma once

#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {

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

// Rotates each pair (2i, 2i+1) of x by an angle, or back if `direction` is -1.
template <typename T, typename U>
void turn_pairs(const T* x, const SumOf<T>* cosine, const SumOf<T>* sine, SumOf<T> direction,
                std::int64_t pairs, U* out) {
  using Sum = SumOf<T>;
  static_assert(std::is_same_v<Sum, SumOf<U>>);
  using Vector = at::vec::Vectorized<Sum>;
  constexpr std::int64_t kPairs = Vector::size();
  std::int64_t pair = 0;
  for (; pair + kPairs <= pairs; pair += kPairs) {
    const Two<T> two = load_two(x + 2 * pair);
    const auto [even, odd] = at::vec::deinterleave2(two[0], two[1]);
    const Vector c = Vector::loadu(cosine + pair);
    const Vector s = Vector::loadu(sine + pair) * Vector(direction);
    const auto [low, high] = at::vec::interleave2(even * c - odd * s, even * s + odd * c);
    store_two(Two<U>(low, high), out + 2 * pair);
  }
  for (; pair < pairs; ++pair) {
    const auto even = static_cast<Sum>(x[2 * pair]);
    const auto odd = static_cast<Sum>(x[2 * pair + 1]);
    const Sum c = cosine[pair];
    const Sum s = sine[pair] * direction;
    out[2 * pair] = static_cast<U>(even * c - odd * s);
    out[2 * pair + 1] = static_cast<U>(even * s + odd * c);
  }
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
