#include "policies/predict/device/sharding.h"

#include <cstdint>
#include <set>
#include <utility>

#include "policies/trace/accumulation.h"

namespace rematch {
namespace {

std::int64_t share_of(std::int64_t whole, int world) { return (whole + world - 1) / world; }

// Converts the bytes of backward's events to those of one rank.
class ShardedBackward {
 public:
  ShardedBackward(const Trace& trace, int world)
      : world_(world),
        accumulates_(micro_batches(trace) > 1),
        tops_(top_scopes(trace)),
        gathered_(parameters_by_top_scope(trace)) {}

  void shard(BackwardEvent& event) {
    if (event.kind != BackwardEvent::Kind::kOp && event.kind != BackwardEvent::Kind::kDemand) {
      return;
    }
    const std::optional<ScopeId> top = top_of(tops_, event.scope);
    if (top && top != at_work_) {
      shared_out_ += Bytes{share_of((last_ - before_scope_).count, world_)};
      before_scope_ = last_;
      at_work_ = top;
    }
    last_ = event.gradient_bytes;
    const Bytes others = event.other_bytes - event.gradient_bytes;
    event.gradient_bytes = shared_out_ + (last_ - before_scope_);
    event.other_bytes = others + event.gradient_bytes;
    if (!at_work_) return;
    event.other_bytes += gathered_[*at_work_];
    // A gradient has the size of its parameter. The trace of a later micro-batch does not say how
    // many of a scope's gradients are complete, so all of them count.
    if (accumulates_) event.other_bytes += gathered_[*at_work_];
  }

 private:
  int world_;
  bool accumulates_;
  IdTable<ScopeId, ScopeId> tops_;
  IdTable<ScopeId, Bytes> gathered_;
  std::optional<ScopeId> at_work_;
  Bytes last_;          // unsharded bytes of all gradients so far
  Bytes before_scope_;  // unsharded bytes of gradients from earlier top-level scopes
  Bytes shared_out_;    // the sharded part of before_scope_ on this rank
};

}  // namespace

IdTable<ScopeId, ScopeId> top_scopes(const Trace& trace) {
  IdTable<ScopeId, ScopeId> tops;
  for (const ScopeId id : trace.scopes.ids()) {
    const std::optional<ScopeId> parent = trace.scopes[id].parent;
    tops.push_back(parent ? tops[*parent] : id);
  }
  return tops;
}

IdTable<ScopeId, Bytes> parameters_by_top_scope(const Trace& trace) {
  const IdTable<ScopeId, ScopeId> tops = top_scopes(trace);
  IdTable<ScopeId, Bytes> bytes(trace.scopes.size());
  std::set<std::pair<ScopeId, StorageId>> counted;
  for (const TracedOp& op : trace.ops) {
    const std::optional<ScopeId> top = top_of(tops, op.scope);
    if (!top) continue;
    for (const TracedUse& use : op.inputs) {
      const TracedValue& value = trace.values[use.value];
      if (!value.is_parameter || !counted.insert({*top, value.storage}).second) continue;
      bytes[*top] += trace.storages[value.storage].bytes;
    }
  }
  return bytes;
}

ShardedStep shard_step(const Trace& trace, int world) {
  ShardedStep step{trace, IdTable<OpId, Bytes>(trace.ops.size())};
  if (world <= 1) return step;
  Trace& sharded = step.trace;
  sharded.parameter_bytes = {};
  sharded.gradient_bytes = {};
  for (TracedParameters& kind : sharded.parameters) {
    kind.elements = share_of(kind.elements, world);
    sharded.parameter_bytes +=
        Bytes{kind.count * kind.elements * parameter_element_bytes(kind.dtype)};
  }
  sharded.gradient_bytes = Bytes{share_of(trace.gradient_bytes.count, world)};
  ShardedBackward backward(trace, world);
  for (BackwardEvent& event : sharded.backward) backward.shard(event);
  const IdTable<ScopeId, ScopeId> tops = top_scopes(trace);
  const IdTable<ScopeId, Bytes> gathered = parameters_by_top_scope(trace);
  for (const OpId op : trace.ops.ids()) {
    const std::optional<ScopeId> top = top_of(tops, trace.ops[op].scope);
    if (top) step.gathered[op] = gathered[*top];
  }
  return step;
}

}  // namespace rematch
