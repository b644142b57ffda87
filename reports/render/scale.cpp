#include "reports/render/scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "reports/render/format.h"

namespace rematch {
namespace {

constexpr double kSmallestRatio = 1e-12;

struct Unit {
  const char* name;
  double size;
};

Unit unit_of(Quantity quantity, double largest) {
  static constexpr std::array kBytes = {Unit{"B", 1}, Unit{"KiB", 1024.0}, Unit{"MiB", 1048576.0},
                                        Unit{"GiB", 1073741824.0}, Unit{"TiB", 1099511627776.0}};
  static constexpr std::array kTimes = {Unit{"ns", 1}, Unit{"us", 1e3}, Unit{"ms", 1e6},
                                        Unit{"s", 1e9}, Unit{"s", 1e9}};
  if (quantity == Quantity::kCount || quantity == Quantity::kNumber) return {"", 1};
  const auto& units = quantity == Quantity::kBytes ? kBytes : kTimes;
  Unit chosen = units[0];
  for (const Unit& unit : units) {
    if (largest >= unit.size) chosen = unit;
  }
  return chosen;
}

// The smallest of 1, 2 and 5 times a power of ten that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// 1, 2, 5, 10, 20 and so on, both ways; the zeroth is 1.
double one_two_five(int index) {
  constexpr std::array kFactors = {1.0, 2.0, 5.0};
  const int decade = static_cast<int>(std::floor(index / 3.0));
  return kFactors.at(static_cast<std::size_t>(index - 3 * decade)) * std::pow(10, decade);
}

// The last of every `stride`-th of them that is at most `value`.
int last_at_most(double value, int stride) {
  int index = stride * static_cast<int>(std::floor(3 * std::log10(value) / stride) - 1);
  while (one_two_five(index + stride) <= value * (1 + 1e-9)) index += stride;
  return index;
}

// Powers of ten where 1, 2 and 5 of each would be too many, then every other of these.
Axis decades_axis(double low, double high, int most_ticks) {
  int stride = 1;
  int first = 0;
  int last = 0;
  for (;; stride = stride == 1 ? 3 : 2 * stride) {
    first = last_at_most(low, stride);
    last = last_at_most(high, stride);
    if (one_two_five(last) < high * (1 - 1e-9)) last += stride;
    if (last - first <= most_ticks * stride) break;
  }
  Axis axis{one_two_five(first), one_two_five(last), {}, "", Spacing::kLogarithmic};
  for (int index = first; index <= last; index += stride) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%g", one_two_five(index));
    axis.ticks.push_back({one_two_five(index), text.data()});
  }
  return axis;
}

int decimals_of(double step) {
  return step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
}

}  // namespace

Axis make_axis(Quantity quantity, double low, double high, int most_ticks) {
  if (!std::isfinite(low) || !std::isfinite(high)) low = high = 0;
  if (low > high) std::swap(low, high);
  if (high - low <= 1e-9 * std::max(std::abs(low), std::abs(high))) {
    const double margin = std::max(0.05 * std::abs(high), quantity == Quantity::kNumber ? 1e-6 : 1);
    low = low >= 0 ? std::max(0.0, low - margin) : low - margin;
    high += margin;
  }
  const Unit unit = unit_of(quantity, std::max(std::abs(low), std::abs(high)));
  double step = round_step((high - low) / unit.size / std::max(1, most_ticks));
  if (quantity == Quantity::kCount) step = std::max(1.0, step);
  const double first = std::floor(low / unit.size / step + 1e-9);
  const double last = std::ceil(high / unit.size / step - 1e-9);
  Axis axis{first * step * unit.size, last * step * unit.size, {}, unit.name};
  const auto ticks = static_cast<int>(last - first) + 1;
  for (int tick = 0; tick < ticks; ++tick) {
    const double index = first + tick;
    axis.ticks.push_back(
        {index * step * unit.size, format_fixed(index * step + 0.0, decimals_of(step))});
  }
  return axis;
}

Axis make_ratio_axis(double low, double high, int most_ticks) {
  // Below this ratio of its ends a logarithmic axis looks like a linear one.
  constexpr double kRoundNumbersBelow = 2.5;
  const auto bring_in = [](double end) {
    return std::isfinite(end) ? std::clamp(end, kSmallestRatio, 1 / kSmallestRatio) : 1;
  };
  low = bring_in(low);
  high = bring_in(high);
  if (low > high) std::swap(low, high);
  if (high / low < 1 + 1e-9) {
    low *= 0.95;
    high *= 1.05;
  }
  Axis axis = make_axis(Quantity::kNumber, low, high, most_ticks);
  axis.spacing = Spacing::kLogarithmic;
  const bool is_narrow = high / low < kRoundNumbersBelow && axis.low > 0;
  return is_narrow ? axis : decades_axis(low, high, std::max(1, most_ticks));
}

}  // namespace rematch
