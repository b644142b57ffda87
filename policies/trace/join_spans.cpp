#include <limits>

#include "policies/base/json.h"
#include "policies/trace/spans.h"

namespace rematch {
namespace {

// A step of the largest models has some 100,000 entries.
constexpr std::size_t kMostEntries = 8'000'000;

// Turns ids of a span back into ids of the trace.
class Absolute {
 public:
  Absolute(std::string_view what, std::int32_t first, std::int32_t count,
           const std::vector<std::int32_t>& outside)
      : what_(what), first_(first), count_(count), outside_(outside) {}

  std::int32_t operator()(std::int32_t id) const {
    if (id == kNone) return kNone;
    if (id >= 0 && id < count_) return first_ + id;
    if (is_outside(id) && outside_index(id) < outside_.size()) return outside_[outside_index(id)];
    throw FormatError("a span refers to " + std::string(what_) + " " + std::to_string(id) +
                      ", but its type has " + std::to_string(count_) + " and it lists " +
                      std::to_string(outside_.size()) + " from outside");
  }

 private:
  std::string_view what_;
  std::int32_t first_;
  std::int32_t count_;
  const std::vector<std::int32_t>& outside_;
};

// Positions that a broken file can push out of range.
std::int32_t moved(std::string_view what, std::int32_t position, std::int32_t by) {
  const std::int64_t result = std::int64_t{position} + by;
  if (result < 0 || result > std::numeric_limits<std::int32_t>::max()) {
    throw FormatError("a span refers to " + std::string(what) + " " + std::to_string(result));
  }
  return static_cast<std::int32_t>(result);
}

void add_span(const SpanType& type, const TraceSpan& span, Trace& trace) {
  const OpId first_op = num_entries(trace.ops);
  const Absolute op_id("op", first_op, num_entries(type.ops), span.outside_ops);
  const Absolute value_id("value", num_entries(trace.values), num_entries(type.values),
                          span.outside_values);
  const Absolute storage_id("storage", num_entries(trace.storages), num_entries(type.storages),
                            span.outside_storages);
  const Absolute scope_id("scope", num_entries(trace.scopes), num_entries(type.scopes),
                          span.outside_scopes);
  for (TracedOp op : type.ops) {
    op.scope = scope_id(op.scope);
    for (TracedUse& use : op.inputs) use.value = value_id(use.value);
    for (ValueId& output : op.outputs) output = value_id(output);
    for (StorageId& written : op.writes) written = storage_id(written);
    trace.ops.push_back(std::move(op));
  }
  for (TracedValue value : type.values) {
    value.producer = op_id(value.producer);
    value.storage = storage_id(value.storage);
    trace.values.push_back(std::move(value));
  }
  for (TracedStorage storage : type.storages) {
    storage.freed_at = op_id(storage.freed_at);
    trace.storages.push_back(storage);
  }
  for (TracedScope scope : type.scopes) {
    if (!span.path.empty() && scope.path == ".") {
      scope.path = span.path;
    } else if (!span.path.empty() && scope.path.starts_with('.')) {
      scope.path.insert(0, span.path);
    }
    scope.parent = scope_id(scope.parent);
    scope.first_op = moved("op position", scope.first_op, first_op);
    scope.end_op = moved("op position", scope.end_op, first_op);
    trace.scopes.push_back(std::move(scope));
  }
  for (TracedPack pack : type.packs) {
    pack.value = value_id(pack.value);
    pack.at_op = moved("op position", pack.at_op, first_op);
    trace.packs.push_back(pack);
  }
}

std::size_t entries_of(const SpanType& type) {
  return type.ops.size() + type.values.size() + type.storages.size() + type.scopes.size() +
         type.packs.size();
}

void refuse_more_than_a_step(const SpannedTrace& spanned) {
  std::size_t entries = 0;
  const auto add = [&](std::size_t count) {
    entries += count;
    if (entries > kMostEntries) {
      throw FormatError("has more than " + std::to_string(kMostEntries) +
                        " entries once its types are written out; no training step has");
    }
  };
  for (const TraceSpan& span : spanned.spans) {
    add(1 + entries_of(spanned.types.at(static_cast<std::size_t>(span.type))));
  }
  for (const BackwardRun& run : spanned.backward) {
    add(1 + spanned.backward_types.at(static_cast<std::size_t>(run.type)).size());
  }
}

void add_change(Bytes& total, Bytes& change) {
  if (__builtin_add_overflow(total.count, change.count, &total.count)) {
    throw FormatError("bytes in backward are out of range");
  }
  change = total;
}

ScopeId absolute_scope(ScopeId scope, ScopeId first) {
  if (scope == kNone) return kNone;
  return moved("scope", scope > kNone ? scope : scope + 1, first);
}

void add_backward(const SpannedTrace& spanned, Trace& trace) {
  Bytes other;
  Bytes gradients;
  for (const BackwardRun& run : spanned.backward) {
    for (BackwardEvent event : spanned.backward_types[static_cast<std::size_t>(run.type)]) {
      event.scope = absolute_scope(event.scope, run.first_scope);
      if (event.pack != kNone) event.pack = moved("pack", event.pack, run.first_pack);
      if (has_bytes(event)) {
        add_change(other, event.other_bytes);
        add_change(gradients, event.gradient_bytes);
      }
      trace.backward.push_back(std::move(event));
    }
  }
}

}  // namespace

void join_spans(const SpannedTrace& spanned, Trace& trace) {
  refuse_more_than_a_step(spanned);
  for (const TraceSpan& span : spanned.spans) {
    add_span(spanned.types[static_cast<std::size_t>(span.type)], span, trace);
  }
  add_backward(spanned, trace);
}

}  // namespace rematch
