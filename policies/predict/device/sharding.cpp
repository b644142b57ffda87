#include "policies/predict/device/sharding.h"

#include <cstdint>
#include <set>
#include <utility>

namespace rematch {
namespace {

std::int64_t share_of(std::int64_t whole, int world) { return (whole + world - 1) / world; }

std::vector<ScopeId> top_scopes(const Trace& trace) {
  std::vector<ScopeId> tops;
  for (std::size_t id = 0; id < trace.scopes.size(); ++id) {
    const ScopeId parent = trace.scopes[id].parent;
    tops.push_back(parent == kNone ? static_cast<ScopeId>(id)
                                   : tops[static_cast<std::size_t>(parent)]);
  }
  return tops;
}

ScopeId top_of(const std::vector<ScopeId>& tops, ScopeId scope) {
  return scope == kNone ? kNone : tops[static_cast<std::size_t>(scope)];
}

std::int64_t bytes_of_element(const std::string& dtype) { return dtype == "float32" ? 4 : 2; }

// Backward as one rank has it, event by event.
class ShardedBackward {
 public:
  ShardedBackward(const Trace& trace, int world)
      : world_(world), tops_(top_scopes(trace)), gathered_(parameters_by_top_scope(trace)) {}

  void shard(BackwardEvent& event) {
    if (event.kind != BackwardEvent::Kind::kOp && event.kind != BackwardEvent::Kind::kDemand) {
      return;
    }
    const ScopeId top = top_of(tops_, event.scope);
    if (top != kNone && top != at_work_) {
      shared_out_ += Bytes{share_of((last_ - before_scope_).count, world_)};
      before_scope_ = last_;
      at_work_ = top;
    }
    last_ = event.gradient_bytes;
    const Bytes others = event.other_bytes - event.gradient_bytes;
    event.gradient_bytes = shared_out_ + (last_ - before_scope_);
    event.other_bytes = others + event.gradient_bytes;
    if (at_work_ != kNone) event.other_bytes += gathered_[static_cast<std::size_t>(at_work_)];
  }

 private:
  int world_;
  std::vector<ScopeId> tops_;
  std::vector<Bytes> gathered_;
  ScopeId at_work_ = kNone;
  Bytes last_;          // whole gradients so far
  Bytes before_scope_;  // of them, those of scopes that are done
  Bytes shared_out_;    // this rank's share of those
};

}  // namespace

std::vector<Bytes> parameters_by_top_scope(const Trace& trace) {
  const std::vector<ScopeId> tops = top_scopes(trace);
  std::vector<Bytes> bytes(trace.scopes.size());
  std::set<std::pair<ScopeId, StorageId>> counted;
  for (const TracedOp& op : trace.ops) {
    const ScopeId top = top_of(tops, op.scope);
    if (top == kNone) continue;
    for (const TracedUse& use : op.inputs) {
      const TracedValue& value = trace.values[static_cast<std::size_t>(use.value)];
      if (!value.is_parameter || !counted.insert({top, value.storage}).second) continue;
      bytes[static_cast<std::size_t>(top)] +=
          trace.storages[static_cast<std::size_t>(value.storage)].bytes;
    }
  }
  return bytes;
}

ShardedStep shard_step(const Trace& trace, int world) {
  ShardedStep step{trace, std::vector<Bytes>(trace.ops.size())};
  if (world <= 1) return step;
  Trace& sharded = step.trace;
  sharded.parameter_bytes = {};
  sharded.gradient_bytes = {};
  for (TracedParameters& kind : sharded.parameters) {
    kind.elements = share_of(kind.elements, world);
    sharded.parameter_bytes += Bytes{kind.count * kind.elements * bytes_of_element(kind.dtype)};
  }
  sharded.gradient_bytes = Bytes{share_of(trace.gradient_bytes.count, world)};
  ShardedBackward backward(trace, world);
  for (BackwardEvent& event : sharded.backward) backward.shard(event);
  const std::vector<ScopeId> tops = top_scopes(trace);
  const std::vector<Bytes> gathered = parameters_by_top_scope(trace);
  for (std::size_t op = 0; op < trace.ops.size(); ++op) {
    const ScopeId top = top_of(tops, trace.ops[op].scope);
    if (top != kNone) step.gathered[op] = gathered[static_cast<std::size_t>(top)];
  }
  return step;
}

}  // namespace rematch
