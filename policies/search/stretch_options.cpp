#include "policies/search/stretch_options.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
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
class BlockOptions {
 public:
  BlockOptions(const Trace& trace, const StretchMap& map, const OpTimes& times, int stretch,
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

  nanoseconds time_gap() const { return time_gap_; }
  Bytes transient_gap() const { return transient_gap_; }

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

class OptionMaker {
 public:
  OptionMaker(const Trace& trace, const StretchMap& map, const OpTimes& times,
              const SearchSpace& space)
      : trace_(trace), map_(map), times_(times), space_(space) {}

  StretchOptions run() {
    for (int stretch : map_.first_of_kind) add_kind(stretch);
    for (std::size_t first = 0; first < map_.stretches.size(); ++first) {
      for (int size = 2; size <= space_.most_in_segment && !space_.is_stopped(); ++size) {
        add_segment(static_cast<int>(first), size);
      }
    }
    return std::move(result_);
  }

 private:
  void add_kind(int stretch) {
    if (map_.stretches[stretch].scope == kNone) {
      StretchPricer pricer(trace_, map_, times_, stretch, 1);
      result_.lists.push_back({{pricer.price({}, space_.schedule, space_.early_stop), {}}});
      saves_.emplace_back();
      return;
    }
    BlockOptions block(trace_, map_, times_, stretch, space_);
    std::vector<StretchOption> options = block.run();
    nanoseconds gap = block.time_gap();
    if (space_.reach == Reach::kHull) {
      const std::vector<StretchOption> all = std::exchange(options, on_hull(options));
      gap += gap_of_kept(all, options);
    }
    result_.time_gap = std::max(result_.time_gap, gap);
    result_.transient_gap = std::max(result_.transient_gap, block.transient_gap());
    saves_.push_back(saves_for_segments(options, map_.stretches[stretch].range));
    result_.lists.push_back(std::move(options));
  }

  static std::vector<StretchOption> on_hull(const std::vector<StretchOption>& options) {
    std::vector<LayerOption> figures;
    for (const StretchOption& option : options) figures.push_back(option.figures);
    std::vector<StretchOption> kept;
    for (std::size_t index : hull_options(figures)) kept.push_back(options[index]);
    return kept;
  }

  // By how much an option of `all` is faster than the kept one that can stand in for it. Both lists
  // hold the ones that hold and need least.
  static nanoseconds gap_of_kept(const std::vector<StretchOption>& all,
                                 const std::vector<StretchOption>& kept) {
    nanoseconds gap{};
    for (const StretchOption& option : all) {
      std::optional<nanoseconds> least;
      for (const StretchOption& other : kept) {
        if (other.figures.held > option.figures.held ||
            other.figures.transient > option.figures.transient) {
          continue;
        }
        least = std::min(least.value_or(other.figures.time), other.figures.time);
      }
      if (least) gap = std::max(gap, *least - option.figures.time);
    }
    return gap;
  }

  // Nothing, and what the fastest options of one whole region for its bytes keep: segments repeat
  // it layer by layer.
  static std::vector<std::vector<int>> saves_for_segments(const std::vector<StretchOption>& options,
                                                          OpRange range) {
    std::vector<StretchOption> whole;
    const OpRange local = {0, range.end - range.first};
    for (const StretchOption& option : options) {
      if (option.regions.size() == 1 && option.regions[0].range == local) whole.push_back(option);
    }
    std::vector<std::vector<int>> saves = {{}};
    for (const StretchOption& option : on_hull(whole)) {
      if (!option.regions[0].saves.empty()) saves.push_back(option.regions[0].saves);
    }
    return saves;
  }

  // Blocks side by side, once for each row of kinds.
  void add_segment(int first, int size) {
    if (first + size > static_cast<int>(map_.stretches.size())) return;
    std::vector<int> kinds;
    for (int i = first; i < first + size; ++i) {
      if (map_.stretches[i].scope == kNone) return;
      kinds.push_back(map_.stretches[i].kind);
    }
    std::vector<StretchOption>& list = result_.lists[kinds[0]];
    if (std::any_of(list.begin(), list.end(),
                    [&](const StretchOption& known) { return known.figures.covers == kinds; })) {
      return;
    }
    StretchPricer pricer(trace_, map_, times_, first, size);
    const OpRange whole = pricer.whole();
    for (const std::vector<int>& saves : saves_[kinds[0]]) {
      StretchOption option{{}, {{whole, repeated(saves, first, size)}}};
      option.figures = pricer.price(option.regions, space_.schedule, space_.early_stop);
      option.figures.covers = kinds;
      list.push_back(std::move(option));
    }
  }

  std::vector<int> repeated(const std::vector<int>& saves, int first, int size) const {
    std::vector<int> all;
    for (int i = first; i < first + size; ++i) {
      const OpId offset = map_.stretches[i].range.first - map_.stretches[first].range.first;
      const OpId num_ops = map_.stretches[i].range.end - map_.stretches[i].range.first;
      for (int op : saves) {
        if (op < num_ops) all.push_back(offset + op);
      }
    }
    return all;
  }

  const Trace& trace_;
  const StretchMap& map_;
  const OpTimes& times_;
  SearchSpace space_;
  StretchOptions result_;
  std::vector<std::vector<std::vector<int>>> saves_;  // by kind
};

}  // namespace

StretchOptions make_options(const Trace& trace, const StretchMap& map, const OpTimes& times,
                            const SearchSpace& space) {
  return OptionMaker(trace, map, times, space).run();
}

}  // namespace rematch
