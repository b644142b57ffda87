#include "policies/search/region/span_options.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "policies/search/region/block_options.h"
#include "policies/search/region/offload_options.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// The maximum number of blocks in a segment that may keep values. Longer segments are useful only
// for the lowest peaks, at which they keep nothing.
constexpr int kMaxKeepers = 4;

class OptionMaker {
 public:
  explicit OptionMaker(const SearchedTrace& searched)
      : searched_(searched), map_(searched.map), space_(searched.space) {}

  SpanOptions run() {
    for (int span : map_.first_of_kind) add_kind(span);
    const int most = most_in_segment();
    for (std::size_t first = 0; first < map_.spans.size(); ++first) {
      for (int size = 2; size <= most && !space_.is_stopped(); ++size) {
        add_segment(static_cast<int>(first), size);
      }
    }
    return std::move(result_);
  }

 private:
  // Returns the maximum number of blocks in a segment. In a model of L blocks, segments of k blocks
  // hold L / k inputs and recompute k blocks at once. The best k is below sqrt(L), because an input
  // is smaller than a block's recomputed values. If blocks keep values, the best k is larger, so
  // the limit is 2 sqrt(L).
  int most_in_segment() const {
    if (space_.most_in_segment) return *space_.most_in_segment;
    // Longer segments would take more time than all other parts of the search.
    if (space_.reach == Reach::kHull) return kMaxKeepers;
    const auto num_blocks = std::count_if(map_.spans.begin(), map_.spans.end(),
                                          [](const Span& span) { return span.is_block(); });
    return static_cast<int>(std::ceil(2 * std::sqrt(static_cast<double>(num_blocks))));
  }

  void add_kind(int span) {
    if (!map_.spans[span].is_block()) {
      SpanPricer pricer(searched_, span, 1);
      result_.lists.push_back({{pricer.price({}), {}}});
      result_.gaps.emplace_back();
      saves_.emplace_back();
      return;
    }
    BlockOptions block = block_options(searched_, span);
    if (space_.reach == Reach::kHull) {
      const std::vector<SpanOption> all = std::exchange(block.options, on_hull(block.options));
      block.gap.time += gap_of_kept(all, block.options);
    }
    saves_.push_back(saves_for_segments(block.as_one_region));
    if (space_.offload) add_offloads(span, block);
    result_.lists.push_back(std::move(block.options));
    result_.gaps.push_back(block.gap);
  }

  void add_offloads(int span, BlockOptions& block) {
    SpanPricer pricer(searched_, span, 1);
    // backward needs no tensor of the block, so a region in this block has no effect
    if (!has_live_slot(pricer.graph(pricer.whole()))) {
      std::erase_if(block.options, [](const SpanOption& each) { return !each.regions.empty(); });
      return;
    }
    for (SpanOption& option : block.options) {
      const LayerOption priced = pricer.price(option.regions);
      option.figures.transient_beside = priced.transient_beside;
      option.figures.passes_on = priced.passes_on;
    }
    const std::vector<SpanOption> more =
        offload_options(searched_, span, {map_.spans[span].kind}, offloaded_sets(block.whole));
    block.options.insert(block.options.end(), more.begin(), more.end());
  }

  // Returns the save sets that may be offloaded. If there are too many, returns an even selection
  // of the sets on the convex hull.
  std::vector<std::vector<int>> offloaded_sets(const std::vector<RegionOption>& whole) const {
    std::vector<LayerOption> figures;
    for (const RegionOption& region : whole) {
      figures.push_back({region.point.kept, region.point.transient, {}, region.point.recompute});
    }
    std::vector<std::size_t> chosen(whole.size());
    std::iota(chosen.begin(), chosen.end(), 0);
    const std::size_t most = space_.most_offloaded_sets;
    if (chosen.size() > most) chosen = hull_options(figures);
    std::vector<std::vector<int>> sets;
    const std::size_t num_sets = std::min(chosen.size(), most);
    for (std::size_t i = 0; i < num_sets; ++i) {
      const std::size_t place = num_sets < 2 ? 0 : i * (chosen.size() - 1) / (num_sets - 1);
      sets.push_back(whole[chosen[place]].point.saves);
    }
    return sets;
  }

  static std::vector<SpanOption> on_hull(const std::vector<SpanOption>& options) {
    std::vector<LayerOption> figures;
    for (const SpanOption& option : options) figures.push_back(option.figures);
    std::vector<SpanOption> kept;
    for (std::size_t index : hull_options(figures)) kept.push_back(options[index]);
    return kept;
  }

  // Returns the largest time lost by replacing an option of `all` with a kept option. The kept
  // option must not have more held bytes or a higher transient.
  static nanoseconds gap_of_kept(const std::vector<SpanOption>& all,
                                 const std::vector<SpanOption>& kept) {
    nanoseconds gap{};
    for (const SpanOption& option : all) {
      std::optional<nanoseconds> least;
      for (const SpanOption& other : kept) {
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

  // Returns the save sets for the layers of a segment: the empty set, and the sets of the
  // one-region options on the convex hull. All layers of a segment have the same save set.
  static std::vector<std::vector<int>> saves_for_segments(
      const std::vector<SpanOption>& as_one_region) {
    std::vector<std::vector<int>> saves = {{}};
    for (const SpanOption& option : on_hull(as_one_region)) {
      if (!option.regions[0].saves.empty()) saves.push_back(option.regions[0].saves);
    }
    return saves;
  }

  // Adds the options for segments of adjacent blocks, once for each sequence of span kinds.
  void add_segment(int first, int size) {
    if (first + size > static_cast<int>(map_.spans.size())) return;
    std::vector<int> kinds;
    for (int i = first; i < first + size; ++i) {
      // A region ends when its last scope closes for the first time. In a block that runs several
      // times, this may be the wrong run.
      if (!map_.spans[i].is_block() || map_.spans[i].is_repeated) return;
      kinds.push_back(map_.spans[i].kind);
    }
    std::vector<SpanOption>& list = result_.lists[kinds[0]];
    if (std::any_of(list.begin(), list.end(),
                    [&](const SpanOption& known) { return known.figures.covers == kinds; })) {
      return;
    }
    SpanPricer pricer(searched_, first, size);
    const LocalRange whole = pricer.whole();
    if (space_.offload && !has_live_slot(pricer.graph(whole))) return;
    for (const std::vector<int>& saves : saves_[kinds[0]]) {
      if (size > kMaxKeepers && !saves.empty()) continue;
      SpanOption option{{}, {{whole, repeated(saves, first, size)}}};
      option.figures = pricer.price(option.regions);
      option.figures.covers = kinds;
      list.push_back(std::move(option));
    }
    if (!space_.offload) return;
    const std::vector<SpanOption> more = offload_options(searched_, first, kinds, {{}});
    list.insert(list.end(), more.begin(), more.end());
  }

  std::vector<int> repeated(const std::vector<int>& saves, int first, int size) const {
    std::vector<int> all;
    for (int i = first; i < first + size; ++i) {
      const int offset = map_.spans[i].range.first - map_.spans[first].range.first;
      const int num_ops = map_.spans[i].range.end - map_.spans[i].range.first;
      for (int op : saves) {
        if (op < num_ops) all.push_back(offset + op);
      }
    }
    return all;
  }

  const SearchedTrace& searched_;
  const SpanMap& map_;
  const SearchSpace& space_;
  SpanOptions result_;
  std::vector<std::vector<std::vector<int>>> saves_;  // indexed by kind
};

}  // namespace

SpanOptions make_options(const SearchedTrace& searched) { return OptionMaker(searched).run(); }

MixProblem mix_problem(const SpanMap& map, const SpanOptions& options) {
  MixProblem problem;
  for (const std::vector<SpanOption>& list : options.lists) {
    problem.lists.emplace_back();
    for (const SpanOption& option : list) problem.lists.back().push_back(option.figures);
  }
  for (const Span& span : map.spans) {
    problem.list_of_layer.push_back(span.kind);
    problem.gradients.push_back(span.born);
  }
  problem.floor = map.most_born;
  return problem;
}

MixProblem relaxed_mix_problem(const SpanMap& map, const SpanOptions& options) {
  MixProblem problem = mix_problem(map, options);
  for (std::size_t kind = 0; kind < problem.lists.size(); ++kind) {
    const OptionGap& gap = options.gaps[kind];
    for (LayerOption& option : problem.lists[kind]) {
      if (option.num_layers > 1) continue;
      option.time = std::max(option.time - gap.time, std::chrono::nanoseconds{});
      option.transient -= gap.transient;
    }
  }
  return problem;
}

}  // namespace rematch
