#include <algorithm>
#include <functional>
#include <unordered_map>

#include "policies/trace/spans.h"

namespace rematch {
namespace {

// The border between two spans: the position in every table where one span ends and the next
// begins.
struct Cut {
  OpId op;
  ValueId value;
  StorageId storage;
  ScopeId scope;
  PackId pack;
  bool operator==(const Cut&) const = default;
};

struct SpanBounds {
  Cut first;
  Cut end;
  std::string path;
};

// Finds the position just before an op in every table. All tables are in the order of ops. With
// these positions, spans of equal layers become equal.
class Cutter {
 public:
  explicit Cutter(const Trace& trace) : trace_(trace) {}

  // `op` does not determine `scope`, because a scope may contain no op.
  Cut cut_at(OpId op, ScopeId scope, const Cut& previous) {
    while (next_op_ < op) take_outputs_of(next_op_++);
    while (trace_.packs.contains(pack_) && trace_.packs[pack_].at_op < op) ++pack_;
    while (seen_value_ < value_) {
      const TracedValue& value = trace_.values[seen_value_++];
      storage_ = std::max(storage_, value.storage + 1);
    }
    return {op, value_, storage_, std::max(scope, previous.scope), pack_};
  }

 private:
  // Ids grow in the order in which values first appear. A value from outside that a later op reads
  // first has a higher id than the op's outputs, so it belongs to a later span.
  void take_outputs_of(OpId op) {
    for (const ValueId output : trace_.ops[op].outputs) {
      value_ = std::max(value_, output + 1);
    }
  }

  const Trace& trace_;
  OpId next_op_;
  ValueId value_;
  ValueId seen_value_;
  StorageId storage_;
  PackId pack_;
};

// Returns the first scope after `scope` that is not inside `scope`. Scope ids are in the order of
// opening.
ScopeId end_of_scope(const Trace& trace, ScopeId scope) {
  ScopeId end = scope + 1;
  while (trace.scopes.contains(end) && trace.scopes[end].parent >= scope) ++end;
  return end;
}

// Returns block scopes in forward order. Omits blocks that are inside another block or overlap
// another block.
std::vector<ScopeId> separate_blocks(const Trace& trace) {
  std::vector<ScopeId> scopes;
  for (const TracedBlock& block : trace.blocks) scopes.push_back(block.scope);
  std::sort(scopes.begin(), scopes.end());
  std::vector<ScopeId> separate;
  ScopeId free_scope;
  OpId free_op;
  for (const ScopeId scope : scopes) {
    const TracedScope& traced = trace.scopes[scope];
    if (scope < free_scope || traced.first_op < free_op) continue;
    separate.push_back(scope);
    free_scope = end_of_scope(trace, scope);
    free_op = traced.end_op;
  }
  return separate;
}

std::vector<SpanBounds> bounds_of_spans(const Trace& trace) {
  std::vector<SpanBounds> all_bounds;
  Cutter cutter(trace);
  Cut previous;
  const auto add_until = [&](const Cut& end, const std::string& path) {
    if (previous != end) all_bounds.push_back({previous, end, path});
    previous = end;
  };
  for (const ScopeId scope : separate_blocks(trace)) {
    const TracedScope& traced = trace.scopes[scope];
    add_until(cutter.cut_at(traced.first_op, scope, previous), "");
    add_until(cutter.cut_at(traced.end_op, end_of_scope(trace, scope), previous), traced.path);
  }
  add_until({trace.ops.end_id(), trace.values.end_id(), trace.storages.end_id(),
             trace.scopes.end_id(), trace.packs.end_id()},
            "");
  return all_bounds;
}

// Converts ids of one table to ids relative to a span, and collects the ids that lie outside the
// span.
template <class AnyId>
class Relative {
 public:
  Relative(AnyId first, AnyId end, std::vector<AnyId>& outside)
      : first_(first), end_(end), outside_(outside) {}

  AnyId operator()(AnyId id) {
    if (id >= first_ && id < end_) return AnyId(id - first_);
    const auto [entry, is_fresh] = known_.try_emplace(id, outside_id<AnyId>(outside_.size()));
    if (is_fresh) outside_.push_back(id);
    return entry->second;
  }

 private:
  AnyId first_;
  AnyId end_;
  std::vector<AnyId>& outside_;
  std::unordered_map<AnyId, AnyId> known_;
};

std::string relative_path(const std::string& path, const std::string& block) {
  if (block.empty()) return path;
  if (path == block) return ".";
  if (path.size() > block.size() && path[block.size()] == '.' && path.starts_with(block)) {
    return path.substr(block.size());
  }
  return path;
}

template <class AnyId, class T>
std::vector<T> slice(const IdTable<AnyId, T>& table, AnyId first, AnyId end) {
  return {table.begin() + first.index, table.begin() + end.index};
}

SpanType relative_type(const Trace& trace, const SpanBounds& bounds, TraceSpan& span) {
  const Cut& first = bounds.first;
  const Cut& end = bounds.end;
  Relative op_id(first.op, end.op, span.outside_ops);
  Relative value_id(first.value, end.value, span.outside_values);
  Relative storage_id(first.storage, end.storage, span.outside_storages);
  Relative scope_id(first.scope, end.scope, span.outside_scopes);

  SpanType type;
  type.ops = slice(trace.ops, first.op, end.op);
  type.values = slice(trace.values, first.value, end.value);
  type.storages = slice(trace.storages, first.storage, end.storage);
  type.scopes = slice(trace.scopes, first.scope, end.scope);
  type.packs = slice(trace.packs, first.pack, end.pack);
  for (TracedScope& scope : type.scopes) scope.path = relative_path(scope.path, bounds.path);
  replace_ids(type, {std::ref(op_id), std::ref(value_id), std::ref(storage_id), std::ref(scope_id),
                     [&](OpId op) { return OpId(op - first.op); }});
  return type;
}

// Divides backward into spans. A new span begins at each event whose pack belongs to another span
// of forward.
class BackwardCutter {
 public:
  BackwardCutter(const Trace& trace, const std::vector<SpanBounds>& all_bounds,
                 SpannedTrace& result)
      : trace_(trace), bounds_(all_bounds), result_(result) {}

  void run() {
    for (const BackwardEvent& event : trace_.backward) {
      if (event.pack) move_to(*event.pack);
      events_.push_back(event);
    }
    close();
  }

 private:
  void move_to(PackId pack) {
    if (at_ && pack >= at_->first.pack && pack < at_->end.pack) return;
    if (at_) close();  // ops before the first pack belong to the first span
    const auto next =
        std::upper_bound(bounds_.begin(), bounds_.end(), pack,
                         [](PackId id, const SpanBounds& bounds) { return id < bounds.end.pack; });
    at_ = &*next;
  }

  void close() {
    if (events_.empty()) return;
    const Cut first = at_ ? at_->first : Cut{};
    for (BackwardEvent& event : events_) {
      if (event.scope) event.scope = ScopeId(*event.scope - first.scope);
      if (event.pack) event.pack = PackId(*event.pack - first.pack);
      if (!has_bytes(event)) continue;
      const BackwardEvent absolute = event;
      event.other_bytes -= previous_.other_bytes;
      event.gradient_bytes -= previous_.gradient_bytes;
      previous_ = absolute;
    }
    const int type = add_once(result_.backward_types, std::move(events_));
    result_.backward.push_back({type, first.pack, first.scope});
    events_.clear();
  }

  const Trace& trace_;
  const std::vector<SpanBounds>& bounds_;
  SpannedTrace& result_;
  const SpanBounds* at_ = nullptr;
  std::vector<BackwardEvent> events_;
  BackwardEvent previous_;  // latest event that has bytes
};

}  // namespace

SpannedTrace cut_into_spans(const Trace& trace) {
  const std::vector<SpanBounds> all_bounds = bounds_of_spans(trace);
  SpannedTrace result;
  for (const SpanBounds& bounds : all_bounds) {
    TraceSpan span;
    span.path = bounds.path;
    SpanType type = relative_type(trace, bounds, span);
    span.type = add_once(result.types, std::move(type));
    result.spans.push_back(std::move(span));
  }
  BackwardCutter(trace, all_bounds, result).run();
  return result;
}

}  // namespace rematch
