// From quantities to positions: scales, and axes whose ticks are round numbers in a unit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace rematch {

// Logarithmic: equal ratios are equally far apart, which half and twice ask for.
enum class Spacing : std::uint8_t { kLinear, kLogarithmic };

struct Scale {
  double low = 0;
  double high = 1;
  double start = 0;  // position of `low`
  double end = 1;    // position of `high`
  Spacing spacing = Spacing::kLinear;

  // Values off the axis stay at its end, so nothing leaves a plot.
  double operator()(double value) const {
    return start + std::clamp(part_below(value), 0.0, 1.0) * (end - start);
  }
  bool holds(double value) const { return value >= low && value <= high; }

 private:
  double part_below(double value) const {
    if (spacing == Spacing::kLinear) return (value - low) / (high - low);
    return value <= low ? 0 : std::log(value / low) / std::log(high / low);
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
  Spacing spacing = Spacing::kLinear;
};

// An axis on which all of [low, high] has a place, at most `most_ticks` + 1 of them. Equal or not
// finite ends are widened to something that can be drawn.
Axis make_axis(Quantity quantity, double low, double high, int most_ticks);

// A logarithmic axis for ratios, which never reaches 0. Ends that are not above 0 and finite are
// brought there.
Axis make_ratio_axis(double low, double high, int most_ticks);

}  // namespace rematch
