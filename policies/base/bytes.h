// An amount of memory. Its own type, so it cannot be passed where a count is meant.
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
};

}  // namespace rematch
