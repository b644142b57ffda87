// Which batch size (or number of tokens) a device is best used with: the largest that some plan
// fits into a budget, and the one whose fastest plan makes the most tokens a second. Knows neither
// models nor traces: asks for every load that it wants to know of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace rematch {

// The load under the fastest plan within the budget; nothing if no plan fits.
using TokensPerSecond = std::function<std::optional<double>(std::int64_t load)>;

struct TriedLoad {
  std::int64_t load = 0;
  std::optional<double> tokens_per_second;
};

struct LargestLoad {
  std::vector<TriedLoad> tried;         // by load, each once
  std::optional<std::int64_t> largest;  // that fits; nothing: not even the least does
  std::optional<std::int64_t> best;     // most tokens a second; the smaller of equals
  bool is_complete = true;  // false: stopped, and these are the largest and the best of `tried`
};

// Note [Which loads are tried]
// A load that does not fit is taken for a bound: larger ones are not asked for. The largest that
// fits is found by halving. For the best, loads are tried evenly spaced between the least and that
// one, then between the neighbours of the best so far, until its neighbours are next to it. With
// kLoadsAtOnce or fewer that fit, every one is tried; with more, a best one that lies between two
// tried ones that are worse on both sides may be missed.
inline constexpr std::int64_t kLoadsAtOnce = 16;
// Once `is_stopped` says true no more loads are asked for, and the answer to the last is not used.
LargestLoad find_largest_load(
    std::int64_t least, std::int64_t most, const TokensPerSecond& ask,
    const std::function<bool()>& is_stopped = [] { return false; });

}  // namespace rematch
