// Computes the front of a block in the simplest way: simulates every save set.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include "policies/search/region/block_front.h"

namespace rematch::testing {

// The costs of a save set: saved bytes, recompute nanoseconds and transient bytes.
using Triple = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

inline Triple triple_of(const BlockPoint& point) {
  return {point.saved.count, point.recompute.count(), point.transient.count};
}

// Returns whether backward or recompute may read an output of the op. Keeping any other op only
// holds bytes that nothing reads. Under whole_region, it also avoids running the op again.
inline bool is_demanded(const RegionGraph& graph, int op) {
  const auto is_output = [&](const RegionUse& use) {
    return graph.values[use.value].producer == op;
  };
  for (int slot : demanded_slots(graph)) {
    if (is_output(graph.slots[slot].use)) return true;
  }
  return std::any_of(graph.ops.begin(), graph.ops.begin() + graph.stop,
                     [&](const RegionOp& reader) {
                       return std::any_of(reader.reads.begin(), reader.reads.end(), is_output);
                     });
}

// Prices every save set and returns the costs of each. A save set contains only ops that allocate
// their outputs and, under whole_region, only ops for which is_demanded() is true.
inline std::vector<Triple> all_save_sets(const RegionGraph& graph, const SaveSetCosts& costs) {
  std::vector<int> ops;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    if (!graph.ops[op].is_view && graph.ops[op].writes.empty() &&
        (costs.schedule == Schedule::kOnDemand || is_demanded(graph, static_cast<int>(op)))) {
      ops.push_back(static_cast<int>(op));
    }
  }
  std::vector<Triple> found;
  for (std::uint32_t chosen = 0; chosen < (1U << ops.size()); ++chosen) {
    std::vector<int> saves;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if ((chosen >> i & 1) != 0) saves.push_back(ops[i]);
    }
    found.push_back(triple_of(price_save_set(graph, costs, saves)));
  }
  return found;
}

inline bool is_no_worse(const Triple& a, const Triple& b) {
  return std::get<0>(a) <= std::get<0>(b) && std::get<1>(a) <= std::get<1>(b) &&
         std::get<2>(a) <= std::get<2>(b);
}

// Returns the costs that no other element of `all` dominates, without duplicates.
inline std::vector<Triple> undominated(std::vector<Triple> all) {
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<Triple> best;
  for (const Triple& candidate : all) {
    if (std::none_of(all.begin(), all.end(), [&](const Triple& other) {
          return other != candidate && is_no_worse(other, candidate);
        })) {
      best.push_back(candidate);
    }
  }
  return best;
}

}  // namespace rematch::testing
