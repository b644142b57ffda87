#include "policies/search/region/block_options.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "policies/search/region/block_cuts.h"
#include "policies/search/region/block_front.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// The maximum number of simulations for a region that is only a part of the block. A block has many
// such regions, and dividing the block already lowers the transient. Few simulations are enough.
constexpr std::size_t kMaxSimulationsInCuts = 100;
// A region exports a value if later ops of the block read it. If a region exports at most this many
// values, all subsets of these values are tried. No block of the models here exports more.
constexpr std::size_t kMaxExports = 6;

// Finds sequences of adjacent scopes inside a block, at any depth. Ignores scopes without ops.
// Plans name a region by its first and last scope, so these two scopes must open only once.
class RunFinder {
 public:
  RunFinder(const Trace& trace, const Span& block, bool single_scopes)
      : trace_(trace),
        block_(block),
        single_scopes_(single_scopes),
        times_opened_(times_opened(trace)) {}

  std::vector<LocalRange> run() {
    add_inside(*block_.scope);
    return std::move(runs_);
  }

 private:
  bool is_inside(const TracedScope& scope) const {
    return scope.first_op >= block_.range.first && scope.end_op <= block_.range.end &&
           scope.first_op < scope.end_op;
  }

  void add_inside(ScopeId parent) {
    std::vector<ScopeId> children;
    for (const ScopeId id : IdRange(parent + 1, trace_.scopes.end_id())) {
      const TracedScope& scope = trace_.scopes[id];
      if (scope.parent != parent || !is_inside(scope)) continue;
      children.push_back(id);
      add_inside(id);
    }
    for (std::size_t first = 0; first < children.size(); ++first) {
      const std::size_t end = single_scopes_ ? first + 1 : children.size();
      for (std::size_t last = first; last < end; ++last) {
        add(trace_.scopes[children[first]], trace_.scopes[children[last]]);
      }
    }
  }

  void add(const TracedScope& first, const TracedScope& last) {
    if (times_opened_[first.path] > 1 || times_opened_[last.path] > 1) return;
    const OpId start = block_.range.first;
    const LocalRange run = {first.first_op - start, last.end_op - start};
    if (std::find(runs_.begin(), runs_.end(), run) == runs_.end()) runs_.push_back(run);
  }

  const Trace& trace_;
  const Span& block_;
  bool single_scopes_;
  std::map<std::string_view, int> times_opened_;
  std::vector<LocalRange> runs_;
};

// Finds the options of a single block.
class BlockOptionFinder {
 public:
  BlockOptionFinder(const SearchedTrace& searched, int span)
      : space_(searched.space), trace_(searched.trace), pricer_(searched, span, 1) {
    const Span& block = searched.map.spans[span];
    const OpTimes& times = searched.times;
    first_op_ = block.range.first;
    if (space_.cuts) runs_ = RunFinder(trace_, block, space_.whole_modules).run();
    std::erase(runs_, pricer_.whole());
    runs_.push_back(pricer_.whole());
    const auto first = times.begin() + block.range.first.index;
    const nanoseconds time =
        std::accumulate(first, times.begin() + block.range.end.index, nanoseconds{});
    // the slack is used three times: for save sets, for their transients, and for cuts
    slack_ = nanoseconds(
        static_cast<std::int64_t>(static_cast<double>(time.count()) * space_.resolution_ratio / 3));
  }

  BlockOptions run() {
    std::vector<RegionCandidate> candidates;
    for (const LocalRange range : runs_) {
      if (space_.is_stopped()) break;
      if (has_live_slot(pricer_.graph(range)) && may_be_region(range))
        candidates.push_back(candidate(range));
    }
    BlockOptions found;
    found.options = cut_block(pricer_, candidates, slack_, space_.stop);
    std::erase_if(candidates, [&](const RegionCandidate& candidate) {
      return candidate.range != pricer_.whole();
    });
    if (!candidates.empty()) found.whole = candidates[0].options;
    found.as_one_region = cut_block(pricer_, candidates, slack_, space_.stop);
    std::erase_if(found.as_one_region,
                  [](const SpanOption& option) { return option.regions.empty(); });
    add_end(found.options, {});
    if (may_be_region(pricer_.whole())) add_end(found.options, {{pricer_.whole(), {}}});
    nanoseconds slowest{};
    for (const SpanOption& option : found.options) {
      slowest = std::max(slowest, option.figures.time);
    }
    // Times are not negative, so the gap cannot exceed the time of the slowest option.
    found.gap = {std::min(largest_time_gap() + slack_, slowest), transient_gap_};
    return found;
  }

 private:
  // Returns the options of a region. Keeping a storage is free if a later piece of the block holds
  // it too; see Note [Who pays for a storage]. Later pieces are not known yet, so this function
  // computes a front for every set of storages that may be free.
  RegionCandidate candidate(LocalRange range) {
    RegionCandidate found{range, {}};
    SaveSetCosts costs = pricer_.costs(range);
    if (space_.whole_modules) costs.never_saved = draws_before_others(range);
    const std::vector<int> exports = exports_of(range, costs);
    if (exports.size() > kMaxExports) time_gaps_[range.end].push_back({range.first, kUnknown});
    const std::size_t num_tried = std::min(exports.size(), kMaxExports);
    SimulatedSets simulated;
    std::set<std::vector<int>> chosen_sets;
    for (std::uint32_t chosen = 0; chosen < 1U << num_tried; ++chosen) {
      SaveSetCosts priced = costs;
      for (std::size_t i = 0; i < num_tried; ++i) {
        if ((chosen >> i & 1) != 0) priced.free_storages[exports[i]] = true;
      }
      const BlockFront front =
          find_block_front(pricer_.graph(range), priced, limits(range), &simulated);
      time_gaps_[range.end].push_back({range.first, front.time_gap});
      transient_gap_ = std::max(transient_gap_, front.transient_gap);
      for (const BlockPoint& point : front.points) {
        if (!chosen_sets.insert(point.saves).second) continue;
        found.options.push_back(pricer_.option_of(range, point));
      }
    }
    return found;
  }

  // Returns whether the range may be a region. With whole_modules, a range that writes to tensors
  // from outside must not be a region, because torch would repeat the writes.
  bool may_be_region(LocalRange range) {
    const std::vector<RegionOp>& ops = pricer_.graph(range).ops;
    return !space_.whole_modules ||
           std::none_of(ops.begin(), ops.end(), [](const RegionOp& op) { return op.side_effect; });
  }

  // Returns the ops of the range that draw random numbers, except the last one. See Note [A kept
  // draw shifts later draws].
  std::vector<bool> draws_before_others(LocalRange range) const {
    std::vector<bool> draws(static_cast<std::size_t>(range.end - range.first));
    bool is_last = true;
    for (std::size_t op = draws.size(); op-- > 0;) {
      const OpId id = first_op_ + range.first + static_cast<int>(op);
      if (!trace_.ops[id].draws_random) continue;
      draws[op] = !is_last;
      is_last = false;
    }
    return draws;
  }

  // Returns the local storages that the region can keep and that later ops of the block read.
  std::vector<int> exports_of(LocalRange range, const SaveSetCosts& costs) {
    const RegionGraph& graph = pricer_.graph(range);
    const std::vector<StorageId> read_behind =
        input_storages(pricer_.graph({range.end, pricer_.whole().end}));
    std::set<int> exports;
    for (const int op : savable_ops(graph, costs)) {
      for (const int output : graph.ops[static_cast<std::size_t>(op)].outputs) {
        const int storage = graph.values[static_cast<std::size_t>(output)].storage;
        const auto place = static_cast<std::size_t>(storage);
        const bool is_read =
            std::binary_search(read_behind.begin(), read_behind.end(), graph.storage_ids[place]);
        if (is_read && !costs.free_storages[place]) exports.insert(storage);
      }
    }
    return {exports.begin(), exports.end()};
  }

  BlockFrontLimits limits(LocalRange range) const {
    BlockFrontLimits limits;
    limits.time_slack = slack_;
    if (range != pricer_.whole()) limits.max_simulations = kMaxSimulationsInCuts;
    if (space_.reach == Reach::kHull) {
      limits.hull_only = true;
      limits.max_simulations = 0;
    }
    return limits;
  }

  // Adds an option unless the list already contains it. This guarantees that `none` and `full` are
  // in the list.
  void add_end(std::vector<SpanOption>& options, std::vector<RegionSaves> regions) {
    if (std::any_of(options.begin(), options.end(),
                    [&](const SpanOption& option) { return option.regions == regions; })) {
      return;
    }
    const LayerOption figures = pricer_.price(regions);
    options.push_back({figures, std::move(regions)});
  }

  // Returns the largest sum of time gaps over the regions of any cut.
  nanoseconds largest_time_gap() const {
    // the largest sum so far, indexed by the op where the cut's last region ends
    std::map<int, nanoseconds> largest = {{0, {}}};
    for (const auto& [end, gaps] : time_gaps_) {
      nanoseconds most = largest.rbegin()->second;
      for (const auto& [first, gap] : gaps) {
        most = std::max(most, std::prev(largest.upper_bound(first))->second + gap);
      }
      largest[end] = most;
    }
    return largest.rbegin()->second;
  }

  static constexpr nanoseconds kUnknown = std::chrono::hours(1);

  const SearchSpace& space_;
  const Trace& trace_;
  SpanPricer pricer_;
  OpId first_op_;
  std::vector<LocalRange> runs_;
  // Key: the op where regions end. Value: the first op and the time gap of each of these regions.
  std::map<int, std::vector<std::pair<int, nanoseconds>>> time_gaps_;
  nanoseconds slack_{};
  Bytes transient_gap_;
};

}  // namespace

BlockOptions block_options(const SearchedTrace& searched, int span) {
  return BlockOptionFinder(searched, span).run();
}

}  // namespace rematch
