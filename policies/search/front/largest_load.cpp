#include "policies/search/front/largest_load.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace rematch {
namespace {

class LoadFinder {
 public:
  LoadFinder(std::int64_t least, std::int64_t most, const TokensPerSecond& ask,
             const std::function<bool()>& is_stopped)
      : least_(least), most_(most), ask_(ask), is_stopped_(is_stopped) {}

  LargestLoad run() {
    LargestLoad found;
    try {
      if (fits(least_)) {
        try_between(least_, largest());
        refine();
      }
    } catch (const Stopped&) {
      found.is_complete = false;
    }
    for (const auto& [load, rate] : tried_) {
      found.tried.push_back({load, rate});
      if (rate) found.largest = load;
    }
    if (found.largest) found.best = best()->first;
    return found;
  }

 private:
  struct Stopped {};
  using Tried = std::map<std::int64_t, std::optional<double>>;

  bool fits(std::int64_t load) {
    if (const auto known = tried_.find(load); known != tried_.end())
      return known->second.has_value();
    if (is_stopped_()) throw Stopped();
    const std::optional<double> rate = ask_(load);
    if (is_stopped_()) throw Stopped();
    tried_.emplace(load, rate);
    return rate.has_value();
  }

  std::int64_t largest() {
    if (fits(most_)) return most_;
    std::int64_t low = least_;  // fits
    std::int64_t high = most_;  // does not
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return low;
  }

  void try_between(std::int64_t low, std::int64_t high) {
    const std::int64_t parts = std::min(high - low, kLoadsAtOnce - 1);
    for (std::int64_t part = 0; part <= parts && parts > 0; ++part) {
      fits(low + (high - low) * part / parts);
    }
  }

  void refine() {
    for (;;) {
      const auto at = best();
      const std::int64_t low = at == tried_.begin() ? at->first : std::prev(at)->first;
      const auto next = std::next(at);
      const bool is_last = next == tried_.end() || !next->second;
      const std::int64_t high = is_last ? at->first : next->first;
      const std::size_t before = tried_.size();
      try_between(low, at->first);
      try_between(at->first, high);
      if (tried_.size() == before) return;
    }
  }

  Tried::const_iterator best() const {
    auto best = tried_.begin();
    for (auto it = tried_.begin(); it != tried_.end(); ++it) {
      if (it->second && (!best->second || *it->second > *best->second)) best = it;
    }
    return best;
  }

  std::int64_t least_;
  std::int64_t most_;
  const TokensPerSecond& ask_;
  const std::function<bool()>& is_stopped_;
  Tried tried_;
};

}  // namespace

LargestLoad find_largest_load(std::int64_t least, std::int64_t most, const TokensPerSecond& ask,
                              const std::function<bool()>& is_stopped) {
  return LoadFinder(least, most, ask, is_stopped).run();
}

}  // namespace rematch
