#include "policies/search/block_options.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "policies/search/block_front.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// Drops what another option of as many layers is as good as in everything, or slower by at most
// `slack`. Sorted by held bytes, an option stays if its transient is below that of all so far that
// are no slower: these form a staircase of times to lowest transients.
void keep_undominated(std::vector<StretchOption>& options, nanoseconds slack) {
  std::stable_sort(options.begin(), options.end(),
                   [](const StretchOption& a, const StretchOption& b) {
                     return std::tie(a.figures.held, a.figures.time, a.figures.transient) <
                            std::tie(b.figures.held, b.figures.time, b.figures.transient);
                   });
  std::map<nanoseconds, Bytes> lowest;  // by time, descending transients
  std::vector<StretchOption> kept;
  for (StretchOption& option : options) {
    const auto slower = lowest.upper_bound(option.figures.time + slack);
    const Bytes transient = option.figures.transient;
    if (slower != lowest.begin() && std::prev(slower)->second <= transient) continue;
    auto worse = lowest.lower_bound(option.figures.time);
    while (worse != lowest.end() && worse->second >= transient) worse = lowest.erase(worse);
    lowest[option.figures.time] = transient;
    kept.push_back(std::move(option));
  }
  options = std::move(kept);
}

// Scopes that are a block's direct children, with ops in them, in forward order; ranges local.
std::vector<OpRange> children_of(const Trace& trace, const Stretch& stretch) {
  std::vector<OpRange> children;
  OpId done = stretch.range.first;
  for (ScopeId id = stretch.scope + 1; id < static_cast<ScopeId>(trace.scopes.size()); ++id) {
    const TracedScope& scope = trace.scopes[id];
    if (scope.parent != stretch.scope || scope.first_op == scope.end_op) continue;
    if (scope.first_op < done || scope.end_op > stretch.range.end) continue;
    children.push_back({scope.first_op - stretch.range.first, scope.end_op - stretch.range.first});
    done = scope.end_op;
  }
  return children;
}

// A cut lowers the transient by itself, and there are many.
constexpr std::size_t kMaxSimulationsInCuts = 100;

// The options of one block, alone.
class BlockOptionFinder {
 public:
  BlockOptionFinder(const Trace& trace, const StretchMap& map, const OpTimes& times, int stretch,
                    const SearchSpace& space)
      : space_(space),
        pricer_(trace, map, times, stretch, 1),
        children_(children_of(trace, map.stretches[stretch])) {
    const OpRange range = map.stretches[stretch].range;
    const nanoseconds time =
        std::accumulate(times.begin() + range.first, times.begin() + range.end, nanoseconds{});
    // A third each for the save sets of a region, their transients, and the regions of a cut.
    slack_ = nanoseconds(
        static_cast<std::int64_t>(static_cast<double>(time.count()) * space.resolution_ratio / 3));
  }

  std::vector<StretchOption> run() {
    add_cut({});
    const OpRange whole = pricer_.whole();
    if (!space_.is_stopped()) add_cut({whole});
    if (space_.cuts) {
      std::vector<OpRange> regions;
      cut_from(0, whole, regions);
    }
    std::vector<StretchOption> ends = {options_.front(), option_without_saves()};
    keep_undominated(options_, slack_);
    time_gap_ += slack_;
    for (StretchOption& end : ends) {  // whatever the resolution, none and full are there
      if (std::none_of(options_.begin(), options_.end(), [&](const StretchOption& option) {
            return option.regions == end.regions;
          })) {
        options_.push_back(std::move(end));
      }
    }
    return std::move(options_);
  }

  const BlockFront& front(OpRange range) {
    const auto [found, is_new] = fronts_.try_emplace({range.first, range.end});
    if (is_new) {
      const SaveSetCosts costs = pricer_.costs(range, space_.schedule, space_.early_stop);
      BlockFrontLimits limits;
      limits.time_slack = slack_;
      if (range != pricer_.whole()) limits.max_simulations = kMaxSimulationsInCuts;
      if (space_.reach == Reach::kHull) {
        limits.hull_only = true;
        limits.max_simulations = 0;
      }
      found->second = find_block_front(pricer_.graph(range), costs, limits);
      transient_gap_ = std::max(transient_gap_, found->second.transient_gap);
    }
    return found->second;
  }

  OptionGap gap() const { return {time_gap_, transient_gap_}; }

 private:
  // Every choice of regions over the children from `child` on.
  void cut_from(std::size_t child, OpRange whole, std::vector<OpRange>& regions) {
    if (space_.is_stopped()) return;
    if (child == children_.size()) {
      const bool is_whole = regions.size() == 1 && regions[0] == whole;
      if (!regions.empty() && !is_whole) add_cut(regions);
      return;
    }
    cut_from(child + 1, whole, regions);
    for (std::size_t last = child; last < children_.size(); ++last) {
      regions.push_back({children_[child].first, children_[last].end});
      if (!pricer_.graph(regions.back()).slots.empty()) cut_from(last + 1, whole, regions);
      regions.pop_back();
    }
  }

  // All combinations of what the regions of one cut keep, from the last piece to the first, as
  // Note [The peak of a mix] says. Whose storage is whose depends on the cut only.
  void add_cut(const std::vector<OpRange>& ranges) {
    std::vector<PickedRegion> picked;
    for (OpRange range : ranges) picked.push_back({range, {}});
    const std::vector<PieceFigures> pieces =
        pricer_.pieces_of(picked, space_.schedule, space_.early_stop);
    std::vector<StretchOption> found(1);
    std::size_t region = ranges.size();
    for (std::size_t i = pieces.size(); i-- > 0;) {
      if (!pieces[i].is_region) {
        for (StretchOption& option : found) prepend(pieces[i], option);
      } else {
        found = with_region(pieces[i], ranges[--region], found);
        keep_undominated(found, {});
      }
    }
    nanoseconds gap{};
    for (OpRange range : ranges) gap += front(range).time_gap;
    time_gap_ = std::max(time_gap_, gap);
    const LayerOption base = pricer_.option_of({});
    for (StretchOption& option : found) {
      option.figures.transient += base.transient;
      std::reverse(option.regions.begin(), option.regions.end());
      options_.push_back(std::move(option));
    }
  }

  static void prepend(const PieceFigures& piece, StretchOption& option) {
    option.figures.transient = std::max(piece.transient, piece.held + option.figures.transient);
    option.figures.held += piece.held;
  }

  std::vector<StretchOption> with_region(const PieceFigures& unkept, OpRange range,
                                         const std::vector<StretchOption>& rest) {
    const Bytes nothing = front(range).points.empty() ? Bytes{} : price_nothing(range);
    std::vector<StretchOption> all;
    for (const BlockPoint& point : front(range).points) {
      PieceFigures piece = unkept;
      piece.held += point.saved - nothing;
      piece.transient = piece.inputs + std::max(point.transient, point.saved + piece.born_before);
      for (const StretchOption& before : rest) {
        all.push_back(before);
        prepend(piece, all.back());
        all.back().figures.time += point.recompute;
        all.back().regions.push_back({range, point.saves});
      }
    }
    return all;
  }

  StretchOption option_without_saves() {
    StretchOption option{{}, {{pricer_.whole(), {}}}};
    option.figures = pricer_.price(option.regions, space_.schedule, space_.early_stop);
    return option;
  }

  // Constants of the region, which it holds whatever it keeps.
  Bytes price_nothing(OpRange range) {
    const SaveSetCosts costs = pricer_.costs(range, space_.schedule, space_.early_stop);
    return price_save_set(pricer_.graph(range), costs, {}).saved;
  }

  SearchSpace space_;
  StretchPricer pricer_;
  std::vector<OpRange> children_;
  std::map<std::pair<OpId, OpId>, BlockFront> fronts_;
  std::vector<StretchOption> options_;
  nanoseconds slack_{};
  nanoseconds time_gap_{};
  Bytes transient_gap_;
};

}  // namespace

BlockOptions block_options(const Trace& trace, const StretchMap& map, const OpTimes& times,
                           int stretch, const SearchSpace& space) {
  BlockOptionFinder finder(trace, map, times, stretch, space);
  BlockOptions found;
  found.options = finder.run();
  found.gap = finder.gap();
  nanoseconds slowest{};
  for (const StretchOption& option : found.options) {
    slowest = std::max(slowest, option.figures.time);
  }
  found.gap.time = std::min(found.gap.time, slowest);  // no way takes less than no time
  return found;
}

}  // namespace rematch
