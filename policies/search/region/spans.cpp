#include "policies/search/region/spans.h"

#include <algorithm>
#include <compare>
#include <set>

namespace rematch {
namespace {

// Returns the spans of a trace in forward order.
std::vector<Span> cut(const Trace& trace, Repeats repeats) {
  std::map<std::string_view, int> openings = times_opened(trace);
  std::vector<int> blocks;
  for (std::size_t block = 0; block < trace.blocks.size(); ++block) {
    blocks.push_back(static_cast<int>(block));
  }
  const auto scope_of = [&](int block) -> const TracedScope& {
    return trace.scopes[trace.blocks[block].scope];
  };
  std::stable_sort(blocks.begin(), blocks.end(),
                   [&](int a, int b) { return scope_of(a).first_op < scope_of(b).first_op; });
  std::vector<Span> spans;
  OpId done;
  const auto add = [&](OpId end, OptionalIndex block) {
    if (end > done) {
      Span& span = spans.emplace_back();
      span.range = {done, end};
      if (block.has_value()) span.scope = trace.blocks[*block].scope;
      span.block = block;
      span.is_repeated = block.has_value() && openings[trace.scopes[*span.scope].path] > 1;
    }
    done = std::max(done, end);
  };
  for (int block : blocks) {
    const TracedScope& scope = scope_of(block);
    if (scope.first_op < done) continue;  // the block is inside another block
    if (openings[scope.path] > 1 && repeats == Repeats::kNoBlocks) continue;
    add(scope.first_op, std::nullopt);
    add(scope.end_op, block);
  }
  add(trace.ops.end_id(), std::nullopt);
  return spans;
}

// Returns whether the span may hold the storage, because it reads or saves the storage.
bool is_used(const RegionGraph& graph, StorageId id) {
  const auto is_of = [&](const RegionUse& use) {
    return graph.storage_ids[graph.values[use.value].storage] == id;
  };
  return std::any_of(graph.slots.begin(), graph.slots.end(),
                     [&](const RegionSlot& slot) { return is_of(slot.use); }) ||
         std::any_of(graph.ops.begin(), graph.ops.end(), [&](const RegionOp& op) {
           return std::any_of(op.reads.begin(), op.reads.end(), is_of);
         });
}

void find_alone(const Trace& trace, const std::vector<RegionGraph>& graphs,
                const IdTable<StorageId, OptionalIndex>& maker,
                const IdTable<StorageId, std::set<int>>& readers, SpanMap& map) {
  for (const StorageId id : maker.ids()) {
    const bool goes = maker[id].has_value() && trace.storages[id].freed_at;
    const bool is_read_once = readers[id].size() == 1 && !(goes && is_used(graphs[*maker[id]], id));
    map.is_alone.push_back(goes && (readers[id].empty() || is_read_once));
  }
}

void find_owners(const Trace& trace, const std::vector<RegionGraph>& graphs, SpanMap& map) {
  IdTable<StorageId, OptionalIndex> maker(trace.storages.size());
  IdTable<StorageId, std::set<int>> readers(trace.storages.size());
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    for (std::size_t storage = 0; storage < graphs[i].storages.size(); ++storage) {
      const StorageId id = graphs[i].storage_ids[storage];
      if (graphs[i].storages[storage].is_input) {
        readers[id].insert(static_cast<int>(i));
      } else if (!graphs[i].storages[storage].outside) {
        maker[id] = static_cast<int>(i);
      }
    }
  }
  map.owner = maker;
  map.is_shared.resize(trace.storages.size(), false);
  find_alone(trace, graphs, maker, readers, map);
  for (const StorageId id : map.owner.ids()) {
    if (readers[id].empty() || !maker[id].has_value()) continue;
    if (readers[id].size() > 1 && !map.spans[*maker[id]].is_block()) {
      map.is_shared[id] = true;
    } else {
      map.owner[id] = *readers[id].begin();
    }
  }
}

// Returns how far most_born_before() is above the bytes at the start of the span's backward. The
// result also depends on the spans that run after this span.
Bytes excess_born_before(const Trace& trace, const RegionGraph& graph) {
  return std::max(most_born_before(trace, graph) - graph.other_bytes_before, Bytes{});
}

class KindFinder {
 public:
  KindFinder(const Trace& trace, const OpTimes& times, const std::vector<RegionGraph>& graphs,
             Offloading offloading, SpanMap& map)
      : trace_(trace), times_(times), graphs_(graphs), offloading_(offloading), map_(map) {
    for (const RegionGraph& graph : graphs) excess_.push_back(excess_born_before(trace, graph));
  }

  void run() {
    for (std::size_t i = 0; i < map_.spans.size(); ++i) {
      const auto same =
          std::find_if(map_.first_of_kind.begin(), map_.first_of_kind.end(),
                       [&](int other) { return is_same(static_cast<std::size_t>(other), i); });
      map_.spans[i].kind = static_cast<int>(same - map_.first_of_kind.begin());
      if (same == map_.first_of_kind.end()) map_.first_of_kind.push_back(static_cast<int>(i));
    }
  }

 private:
  bool is_same(std::size_t a, std::size_t b) const {
    const Span& first = map_.spans[a];
    const Span& second = map_.spans[b];
    if (first.is_block() != second.is_block() || first.is_repeated != second.is_repeated ||
        excess_[a] != excess_[b] || !same_behaviour(graphs_[a], graphs_[b])) {
      return false;
    }
    if (first.is_block() && trace_.blocks[*first.block].list != trace_.blocks[*second.block].list) {
      return false;
    }
    for (int op = 0; op < first.range.end - first.range.first; ++op) {
      const OpId x = first.range.first + op;
      const OpId y = second.range.first + op;
      if (times_[x] != times_[y] || trace_.ops[x].name != trace_.ops[y].name ||
          scope_inside(first, x) != scope_inside(second, y)) {
        return false;
      }
    }
    for (std::size_t storage = 0; storage < graphs_[a].storage_ids.size(); ++storage) {
      if (owner_from(a, storage) != owner_from(b, storage)) return false;
      if (offloading_ == Offloading::kAllowed && can_leave(a, storage) != can_leave(b, storage)) {
        return false;
      }
    }
    return true;
  }

  std::string_view scope_inside(const Span& span, OpId op) const {
    const std::optional<ScopeId> scope = trace_.ops[op].scope;
    if (!span.is_block() || !scope) return {};
    return std::string_view(trace_.scopes[*scope].path)
        .substr(trace_.scopes[*span.scope].path.size());
  }

  // Returns whether the span that owns the storage is `span`, an earlier span, or a later span.
  // Returns nullopt if the storage has no owner.
  std::optional<std::strong_ordering> owner_from(std::size_t span, std::size_t storage) const {
    const OptionalIndex owner = map_.owner[graphs_[span].storage_ids[storage]];
    if (!owner.has_value()) return std::nullopt;
    return *owner <=> static_cast<int>(span);
  }

  // Returns whether offloading the storage frees device memory.
  bool can_leave(std::size_t span, std::size_t storage) const {
    const StorageId id = graphs_[span].storage_ids[storage];
    return map_.owner[id] == static_cast<int>(span) && map_.is_alone[id];
  }

  const Trace& trace_;
  const OpTimes& times_;
  const std::vector<RegionGraph>& graphs_;
  Offloading offloading_;
  std::vector<Bytes> excess_;  // indexed by span: see excess_born_before()
  SpanMap& map_;
};

}  // namespace

std::map<std::string_view, int> times_opened(const Trace& trace) {
  std::map<std::string_view, int> openings;
  for (const TracedScope& scope : trace.scopes) {
    if (scope.first_op < scope.end_op) ++openings[scope.path];
  }
  return openings;
}

Bytes most_born_before(const Trace& trace, const RegionGraph& graph) {
  std::set<PackId> own;
  for (const RegionSlot& slot : graph.slots) own.insert(slot.pack);
  Bytes most;
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) {
      most = std::max(most, event.other_bytes);
    } else if (own.contains(*event.pack)) {
      return most;
    } else {
      most = {};
    }
  }
  return {};
}

SpanMap make_spans(const Trace& trace, const OpTimes& times, Repeats repeats,
                   Offloading offloading) {
  SpanMap map{.index = TraceIndex(trace), .spans = cut(trace, repeats)};
  std::vector<RegionGraph> graphs;
  for (Span& span : map.spans) {
    graphs.push_back(map.index.graph(span.range));
    span.born = graphs.back().other_bytes_before;
  }
  find_owners(trace, graphs, map);
  KindFinder(trace, times, graphs, offloading, map).run();
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) {
      map.most_born = std::max(map.most_born, event.other_bytes);
    }
  }
  return map;
}

}  // namespace rematch
