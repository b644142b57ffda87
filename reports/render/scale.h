// From quantities to positions: linear scales, and axes whose ticks are round numbers in a unit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace rematch {

struct Scale {
  double low = 0;
  double high = 1;
  double start = 0;  // position of `low`
  double end = 1;    // position of `high`

  // Values off the axis stay at its end, so nothing leaves a plot.
  double operator()(double value) const {
    return start + std::clamp((value - low) / (high - low), 0.0, 1.0) * (end - start);
  }
};

// kBytes is counted in bytes, kDuration in nanoseconds.
enum class Quantity : std::uint8_t { kBytes, kDuration, kCount, kNumber };

struct Tick {
  double value = 0;
  std::string text;
};

struct Axis {
  double low = 0;
  double high = 1;
  std::vector<Tick> ticks;  // in order, between low and high
  std::string unit;         // "MiB", "ms"; empty for counts and numbers
};

// An axis on which all of [low, high] has a place, at most `most_ticks` + 1 of them. Equal or not
// finite ends are widened to something that can be drawn.
Axis make_axis(Quantity quantity, double low, double high, int most_ticks);

}  // namespace rematch
