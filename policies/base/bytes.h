// An amount of memory. It has its own type, so that an amount cannot be passed where a count is
// expected.
#pragma once

#include <compare>
#include <cstdint>

namespace rematch {

struct Bytes {
  std::int64_t count = 0;
  auto operator<=>(const Bytes&) const = default;
  Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
  Bytes& operator-=(Bytes other) {
    count -= other.count;
    return *this;
  }
  friend Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend Bytes operator*(Bytes a, std::int64_t times) { return {a.count * times}; }
};

// Rounds up to a multiple of `multiple` bytes, as allocators do.
constexpr Bytes round_up(Bytes bytes, std::int64_t multiple) {
  return {(bytes.count + multiple - 1) / multiple * multiple};
}

}  // namespace rematch
