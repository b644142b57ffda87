#include <limits>

#include "policies/base/json.h"
#include "policies/trace/spans.h"

namespace rematch {
namespace {

// A step of the largest models has some 100,000 entries.
constexpr std::size_t kMostEntries = 8'000'000;

// Turns ids of a span back into ids of the trace.
template <class AnyId>
class Absolute {
 public:
  Absolute(std::string_view what, AnyId first, std::size_t count, const std::vector<AnyId>& outside)
      : what_(what), first_(first), count_(count), outside_(outside) {}

  AnyId operator()(AnyId id) const {
    if (!is_outside(id) && static_cast<std::size_t>(id.index) < count_) return first_ + id.index;
    if (is_outside(id) && outside_place(id) < outside_.size()) return outside_[outside_place(id)];
    throw FormatError("a span refers to " + std::string(what_) + " " + to_string(id) +
                      ", but its type has " + std::to_string(count_) + " and it lists " +
                      std::to_string(outside_.size()) + " from outside");
  }
  std::optional<AnyId> operator()(std::optional<AnyId> id) const {
    return id ? std::optional<AnyId>((*this)(*id)) : std::nullopt;
  }

 private:
  std::string_view what_;
  AnyId first_;
  std::size_t count_;
  const std::vector<AnyId>& outside_;
};

// Positions that a broken file can push out of range.
template <class AnyId>
AnyId moved(std::string_view what, AnyId position, AnyId by) {
  const std::int64_t result = std::int64_t{position.index} + by.index;
  if (result < 0 || result > std::numeric_limits<std::int32_t>::max()) {
    throw FormatError("a span refers to " + std::string(what) + " " + std::to_string(result));
  }
  return AnyId(result);
}

void add_span(const SpanType& type, const TraceSpan& span, Trace& trace) {
  const OpId first_op = trace.ops.end_id();
  const Absolute op_id("op", first_op, type.ops.size(), span.outside_ops);
  const Absolute value_id("value", trace.values.end_id(), type.values.size(), span.outside_values);
  const Absolute storage_id("storage", trace.storages.end_id(), type.storages.size(),
                            span.outside_storages);
  const Absolute scope_id("scope", trace.scopes.end_id(), type.scopes.size(), span.outside_scopes);
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

void add_backward(const SpannedTrace& spanned, Trace& trace) {
  Bytes other;
  Bytes gradients;
  for (const BackwardRun& run : spanned.backward) {
    for (BackwardEvent event : spanned.backward_types[static_cast<std::size_t>(run.type)]) {
      if (event.scope) event.scope = moved("scope", *event.scope, run.first_scope);
      if (event.pack) event.pack = moved("pack", *event.pack, run.first_pack);
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
