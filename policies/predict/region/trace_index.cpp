#include "policies/predict/region/trace_index.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "policies/predict/device/roofline.h"
#include "policies/replay/demand.h"
#include "policies/trace/collective.h"
#include "policies/trace/op_class.h"

namespace rematch {
namespace {

bool reads(const TracedOp& op, ValueId value) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [value](const TracedUse& use) { return use.value == value; });
}

bool writes(const TracedOp& op, StorageId storage) {
  return std::find(op.writes.begin(), op.writes.end(), storage) != op.writes.end();
}

// Returns whether the op's autograd formula saves the op's floating-point result.
bool saves_its_result(const TracedOp& op) {
  static constexpr std::string_view kNames[] = {
      "aten::exp",        "aten::sigmoid",  "aten::tanh",         "aten::sqrt", "aten::rsqrt",
      "aten::reciprocal", "aten::_softmax", "aten::_log_softmax", "aten::relu", "aten::cumprod"};
  static constexpr std::string_view kNamesInPlace[] = {
      "aten::exp_",        "aten::sigmoid_", "aten::tanh_",       "aten::sqrt_", "aten::rsqrt_",
      "aten::reciprocal_", "aten::relu_",    "aten::leaky_relu_", "aten::elu_",  "aten::hardtanh_"};
  const auto contains = [&op](const auto& names) {
    return std::find(std::begin(names), std::end(names), op.name) != std::end(names);
  };
  return op.op_class == OpClass::kAttentionForward || contains(kNames) || contains(kNamesInPlace);
}

// Decides whether a pack between two ops belongs to the first op, which packs its outputs, or to
// the second, which packs its inputs. Call is_of_op_before() for each pack between the two ops, in
// order.
class EdgePacks {
 public:
  EdgePacks(const Trace& trace, OpId at_op) : trace_(trace), at_op_(at_op) {}

  bool is_of_op_before(const TracedPack& pack) {
    if (at_op_ == OpId()) return false;
    const TracedOp& op_before = trace_.ops[at_op_ - 1];
    // the recorder added op_before, either for this pack or for an earlier op
    if (is_replay_only(op_before.name)) {
      const StorageId storage = trace_.values[pack.value].storage;
      return trace_.values[op_before.inputs.front().value].storage == storage;
    }
    if (!is_result_of_op_before(pack.value)) return false;
    const bool next_reads = trace_.ops.contains(at_op_) && reads(trace_.ops[at_op_], pack.value);
    if (!next_reads) return true;
    return saves_its_result(trace_.ops[at_op_ - 1]) && seen_[pack.value]++ == 0;
  }

 private:
  // An op that writes in place returns its argument, whose producer is an earlier op.
  bool is_result_of_op_before(ValueId value) const {
    const TracedOp& before = trace_.ops[at_op_ - 1];
    return trace_.values[value].producer == at_op_ - 1 ||
           (reads(before, value) && writes(before, trace_.values[value].storage));
  }

  const Trace& trace_;
  OpId at_op_;
  std::map<ValueId, int> seen_;
};

class GraphBuilder {
 public:
  GraphBuilder(const Trace& trace, OpRange range) : trace_(trace) { graph_.range = range; }

  RegionGraph build(const IdTable<PackId, TraceIndex::PackEvents>& pack_events) {
    for (const OpId op : graph_.range.ids()) add_op(op);
    add_slots();
    note_side_effects();
    note_copies();
    note_constants();
    note_readers();
    add_events(pack_events);
    return std::move(graph_);
  }

 private:
  int value(ValueId id) {
    const auto [found, is_new] = values_.try_emplace(id, static_cast<int>(graph_.values.size()));
    if (!is_new) return found->second;
    const TracedValue& traced = trace_.values[id];
    const bool inside = traced.producer >= graph_.range.first &&
                        traced.producer < graph_.range.end && !views_of_outside_.contains(id);
    const int index = found->second;
    graph_.values.emplace_back();
    if (inside) graph_.values[index].producer = *traced.producer - graph_.range.first;
    const int storage_index = storage(traced.storage);
    graph_.values[index].storage = storage_index;
    if (inside) return index;
    if (!traced.producer && is_made_here(storage_index)) {
      graph_.values[index].constant = true;  // the tensor appeared without an op
      return index;
    }
    graph_.storages[storage_index].outside = true;
    graph_.storages[storage_index].is_input |= is_activation(id);
    return index;
  }

  bool is_made_here(int storage) const {
    return std::any_of(graph_.values.begin(), graph_.values.end(), [&](const RegionValue& value) {
      return value.storage == storage && value.producer.has_value();
    });
  }

  int storage(StorageId id) {
    const auto [found, is_new] =
        storages_.try_emplace(id, static_cast<int>(graph_.storages.size()));
    if (is_new) {
      graph_.storages.push_back({.bytes = trace_.storages[id].bytes});
      graph_.storage_ids.push_back(id);
    }
    return found->second;
  }

  void add_op(OpId id) {
    const TracedOp& traced = trace_.ops[id];
    RegionOp op;
    op.is_view = traced.is_view;
    for (const TracedUse& use : traced.inputs) op.reads.push_back({value(use.value), use.version});
    // A region restores only views of its own storages. Views of other storages come from outside.
    const bool is_of_outside = is_replay_only(traced.name) && traced.is_view &&
                               graph_.storages[storage_of(op.reads.front())].outside;
    if (is_of_outside) views_of_outside_.insert(traced.outputs.begin(), traced.outputs.end());
    for (ValueId output : traced.outputs) {
      const int local = value(output);
      if (!is_of_outside) op.outputs.push_back(local);
    }
    for (StorageId written : traced.writes) {
      op.writes.push_back(storage(written));
      graph_.storages[op.writes.back()].writes.push_back(id - graph_.range.first);
    }
    graph_.ops.push_back(std::move(op));
    note_collective(traced.name);
  }

  // Finds the wait of each collective. See Note [A collective and its wait].
  void note_collective(std::string_view name) {
    const CollectivePart part = collective_part(name);
    const int index = static_cast<int>(graph_.ops.size()) - 1;
    RegionOp& op = graph_.ops.back();
    if (part == CollectivePart::kStart) {
      for (int output : op.outputs) started_.push_back({index, output});
      for (const RegionUse& read : op.reads) {
        if (is_written_by(op, read.value)) started_.push_back({index, read.value});
      }
    } else if (part == CollectivePart::kWait) {
      op.returns_input = true;
      int& waited_for = op.reads.front().value;
      const int storage = graph_.values[waited_for].storage;
      const auto is_waited_for = [&](const Started& started) {
        return graph_.values[started.value].storage == storage;
      };
      const auto first = std::find_if(started_.begin(), started_.end(), is_waited_for);
      if (first != started_.end()) waited_for = first->value;
      std::erase_if(started_, [&](const Started& started) {
        if (is_waited_for(started)) graph_.ops[started.op].waits.push_back(index);
        return is_waited_for(started);
      });
    }
  }

  bool is_written_by(const RegionOp& op, int value) const {
    return std::find(op.writes.begin(), op.writes.end(), graph_.values[value].storage) !=
           op.writes.end();
  }

  void note_side_effects() {
    for (RegionOp& op : graph_.ops) {
      for (int written : op.writes) op.side_effect |= graph_.storages[written].outside;
      if (!op.side_effect) continue;
      for (int output : op.outputs) graph_.values[output].constant = true;
    }
    for (RegionStorage& storage : graph_.storages) {
      if (storage.outside) storage.writes.clear();
    }
  }

  int storage_of(const RegionUse& use) const { return graph_.values[use.value].storage; }

  // Finds the copies that the engine's recorder makes. Recompute must not read new content of an
  // outside tensor, so the recorder copies the old content before an op overwrites it.
  void note_copies() {
    for (int index = 0; index < static_cast<int>(graph_.ops.size()); ++index) {
      const TracedOp& traced = trace_.ops[graph_.range.first + index];
      const RegionOp& op = graph_.ops[index];
      for (const ValueId copied : traced.copies) {
        const int local = value(copied);
        const RegionStorage& storage = graph_.storages[graph_.values[local].storage];
        const std::optional<OpId> producer = trace_.values[copied].producer;
        if (!producer || !is_empty_factory(trace_.ops[*producer].name)) {
          if (storage.outside) copy(index, copied);
        } else if (!storage.outside) {
          graph_.values[local].copied = true;
          graph_.copies.push_back({index, storage.bytes});
        }
      }
      for (const int written : op.writes) {
        const bool is_own = !graph_.storages[written].outside;
        const bool is_hidden = is_replay_only(traced.name);
        if (is_own && is_hidden) graph_.copies.push_back({index, graph_.storages[written].bytes});
        if (!is_hidden) copy_what_was_read(written, index);
      }
      for (const StorageId written : traced.overwrites) {
        const auto local = storages_.find(written);
        if (local == storages_.end() || !graph_.storages[local->second].outside) continue;
        copy_what_was_read(local->second, index);
      }
    }
  }

  void copy_what_was_read(int storage, int before_op) {
    for (int index = 0; index < before_op; ++index) {
      const RegionOp& reader = graph_.ops[index];
      if (reader.is_view || reader.side_effect) continue;
      const TracedOp& traced = trace_.ops[graph_.range.first + index];
      for (std::size_t i = 0; i < traced.inputs.size(); ++i) {
        const RegionUse& read = reader.reads[i];
        const TracedUse& use = traced.inputs[i];
        const bool is_made_here = graph_.values[read.value].producer.has_value() &&
                                  // the storage was allocated inside the region
                                  !graph_.storages[storage].outside;
        if (storage_of(read) != storage || is_made_here || is_side_argument(traced, use.value)) {
          continue;
        }
        if (copied_.insert({use.value, use.version}).second) copy(before_op, use.value);
      }
    }
  }

  // See Note [Side writes] in harness/engine/record/op_facts.h.
  bool is_side_argument(const TracedOp& op, ValueId value) const {
    const auto has = [](const auto& list, auto id) {
      return std::find(list.begin(), list.end(), id) != list.end();
    };
    return has(op.copies, value) || has(op.overwrites, trace_.values[value].storage);
  }

  void copy(int op, ValueId copied) { graph_.copies.push_back({op, value_bytes(trace_, copied)}); }

  void note_constants() {
    for (const RegionOp& op : graph_.ops) {
      for (const RegionUse& read : op.reads) {
        RegionValue& value = graph_.values[read.value];
        if (!value.producer.has_value() || !is_empty_factory(producer_name(value))) continue;
        value.constant |= graph_.storages[value.storage].writes.empty();
      }
    }
  }

  void note_readers() {
    for (std::size_t op = 0; op < graph_.ops.size(); ++op) {
      for (const RegionUse& read : graph_.ops[op].reads) {
        RegionStorage& storage = graph_.storages[graph_.values[read.value].storage];
        if (storage.writes.empty()) continue;
        storage.readers.push_back({static_cast<int>(op), read.version});
      }
    }
  }

  std::string_view producer_name(const RegionValue& value) const {
    return trace_.ops[graph_.range.first + *value.producer].name;
  }

  void add_slots() {
    for (PackId pack : packs_of(trace_, graph_.range)) {
      const TracedPack& traced = trace_.packs[pack];
      graph_.slots.push_back({pack,
                              {value(traced.value), traced.version},
                              traced.at_op - graph_.range.first,
                              traced.dropped_at.has_value()});
      graph_.stop = std::max(graph_.stop, graph_.slots.back().at_op);
    }
    graph_.stop = stop_behind_writes(
        graph_.stop, [this](const auto& visit) { each_write(visit); },
        [this](int storage, std::int32_t version) { return is_saved_at(storage, version); });
  }

  template <typename Visit>
  void each_write(const Visit& visit) const {
    for (std::size_t id = 0; id < graph_.storages.size(); ++id) {
      const RegionStorage& storage = graph_.storages[id];
      if (storage.outside) continue;
      std::int32_t version = 0;
      for (const int op : storage.writes) visit(op, static_cast<int>(id), ++version);
    }
  }

  bool is_saved_at(int storage, std::int32_t version) const {
    return std::any_of(graph_.slots.begin(), graph_.slots.end(), [&](const RegionSlot& slot) {
      return graph_.values[slot.use.value].storage == storage && slot.use.version >= version;
    });
  }

  void add_events(const IdTable<PackId, TraceIndex::PackEvents>& pack_events) {
    std::size_t first = trace_.backward.size();
    std::size_t end = 0;
    for (const RegionSlot& slot : graph_.slots) {
      const TraceIndex::PackEvents& events = pack_events[slot.pack];
      if (events.end == 0) continue;
      first = std::min(first, events.first);
      end = std::max(end, events.end);
    }
    graph_.other_bytes_before = other_bytes_before(first);
    for (std::size_t index = first; index < end; ++index) {
      const BackwardEvent& event = trace_.backward[index];
      const Bytes above = event.other_bytes - graph_.other_bytes_before;
      if (event.kind == BackwardEvent::Kind::kOp) {
        graph_.events.push_back({event.kind, std::nullopt, above});
      } else if (const OptionalIndex slot = slot_of(*event.pack); slot.has_value()) {
        const bool is_demand = event.kind == BackwardEvent::Kind::kDemand;
        graph_.events.push_back({event.kind, slot, is_demand ? above : Bytes{}});
      }
    }
  }

  // Returns the bytes that backward holds after the last op before this event.
  Bytes other_bytes_before(std::size_t event) const {
    if (event >= trace_.backward.size()) return {};
    while (event-- > 0) {
      const BackwardEvent& earlier = trace_.backward[event];
      if (earlier.kind == BackwardEvent::Kind::kOp) return earlier.other_bytes;
    }
    return {};
  }

  OptionalIndex slot_of(PackId pack) const {
    const auto found =
        std::lower_bound(graph_.slots.begin(), graph_.slots.end(), pack,
                         [](const RegionSlot& slot, PackId id) { return slot.pack < id; });
    if (found == graph_.slots.end() || found->pack != pack) return std::nullopt;
    return static_cast<int>(found - graph_.slots.begin());
  }

  // Returns whether an op of the trace computed the value, or the base tensor if the value is a
  // view.
  bool is_activation(ValueId id) const {
    while (true) {
      const std::optional<OpId> producer = trace_.values[id].producer;
      if (!producer) return false;
      const TracedOp& op = trace_.ops[*producer];
      if (!op.is_view || op.inputs.empty()) return true;
      id = op.inputs.front().value;
    }
  }

  struct Started {
    int op = 0;
    int value = 0;  // the value that the op fills; both members are local indices
  };

  const Trace& trace_;
  RegionGraph graph_;
  std::unordered_map<ValueId, int> values_;
  std::unordered_map<StorageId, int> storages_;
  std::set<ValueId> views_of_outside_;
  std::set<std::pair<ValueId, std::int32_t>> copied_;  // pairs of a value and its version
  std::vector<Started> started_;  // collectives whose wait has not been found yet
};

}  // namespace

TraceIndex::TraceIndex(const Trace& trace) : trace_(&trace), pack_events_(trace.packs.size()) {
  for (const ScopeId id : trace.scopes.ids()) {
    const auto [path, is_new] = paths_.try_emplace(trace.scopes[id].path, openings_.size());
    if (is_new) openings_.emplace_back();
    openings_[path->second].push_back(id);
  }
  for (std::size_t index = 0; index < trace.backward.size(); ++index) {
    const std::optional<PackId> pack = trace.backward[index].pack;
    if (!pack) continue;
    PackEvents& events = pack_events_[*pack];
    if (events.end == 0) events.first = index;
    events.end = index + 1;
  }
}

std::vector<OpRange> TraceIndex::ranges(const Plan& plan) const {
  // for each path, where opening() continues its search
  std::unordered_map<std::string_view, std::size_t> seen;
  std::vector<OpRange> ranges;
  ranges.reserve(plan.regions.size());
  OpId done;
  for (const PlannedRegion& region : plan.regions) {
    const ScopeId first = opening(region.first_scope, seen[region.first_scope], done);
    const OpId start = trace_->scopes[first].first_op;
    ScopeId last = first;
    if (region.last_scope != region.first_scope) {
      std::size_t from = 0;
      last = opening(region.last_scope, from, start);
    }
    ranges.push_back({start, trace_->scopes[last].end_op});
    done = ranges.back().end;
  }
  return ranges;
}

ScopeId TraceIndex::opening(const std::string& path, std::size_t& from, OpId first_op) const {
  const auto found = paths_.find(path);
  if (found != paths_.end()) {
    const std::vector<ScopeId>& openings = openings_[found->second];
    while (from < openings.size()) {
      const ScopeId scope = openings[from++];
      if (trace_->scopes[scope].first_op >= first_op) return scope;
    }
  }
  throw std::invalid_argument("the plan has a region at scope '" + path +
                              "', which the trace of model '" + trace_->model +
                              "' does not open; was the plan made for another model?");
}

RegionGraph TraceIndex::graph(OpRange range) const {
  return GraphBuilder(*trace_, range).build(pack_events_);
}

std::vector<OpRange> region_ranges(const Trace& trace, const Plan& plan) {
  return TraceIndex(trace).ranges(plan);
}

RegionGraph make_region_graph(const Trace& trace, OpRange range) {
  return TraceIndex(trace).graph(range);
}

std::vector<PackId> packs_of(const Trace& trace, OpRange range) {
  std::vector<PackId> packs;
  const auto begin =
      std::lower_bound(trace.packs.begin(), trace.packs.end(), range.first,
                       [](const TracedPack& pack, OpId op) { return pack.at_op < op; });
  EdgePacks front(trace, range.first);
  EdgePacks back(trace, range.end);
  for (auto pack = begin; pack != trace.packs.end() && pack->at_op <= range.end; ++pack) {
    if (pack->at_op == range.first && front.is_of_op_before(*pack)) continue;
    if (pack->at_op == range.end && !back.is_of_op_before(*pack)) continue;
    packs.push_back(PackId(pack - trace.packs.begin()));
  }
  return packs;
}

}  // namespace rematch
