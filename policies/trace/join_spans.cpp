#include <iterator>
#include <limits>

#include "policies/base/json.h"
#include "policies/trace/spans.h"

namespace rematch {
namespace {

// The limit on entries in a file. A step of the largest models has about 100,000.
constexpr std::size_t kMaxEntries = 8'000'000;

// Converts ids relative to a span back to ids of the trace.
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

 private:
  std::string_view what_;
  AnyId first_;
  std::size_t count_;
  const std::vector<AnyId>& outside_;
};

// Returns `position` + `by`. Throws FormatError if a broken file puts the result out of range.
template <class AnyId>
AnyId moved(std::string_view what, AnyId position, AnyId by) {
  const std::int64_t result = std::int64_t{position.index} + by.index;
  if (result < 0 || result > std::numeric_limits<std::int32_t>::max()) {
    throw FormatError("a span refers to " + std::string(what) + " " + std::to_string(result));
  }
  return AnyId(result);
}

std::string absolute_path(const std::string& path, const std::string& block) {
  if (block.empty() || !path.starts_with('.')) return path;
  return path == "." ? block : block + path;
}

template <class AnyId, class T>
void append(IdTable<AnyId, T>& table, std::vector<T>& entries) {
  table.insert(table.end(), std::make_move_iterator(entries.begin()),
               std::make_move_iterator(entries.end()));
}

void add_span(SpanType type, const TraceSpan& span, Trace& trace) {
  const OpId first_op = trace.ops.end_id();
  const Absolute op_id("op", first_op, type.ops.size(), span.outside_ops);
  const Absolute value_id("value", trace.values.end_id(), type.values.size(), span.outside_values);
  const Absolute storage_id("storage", trace.storages.end_id(), type.storages.size(),
                            span.outside_storages);
  const Absolute scope_id("scope", trace.scopes.end_id(), type.scopes.size(), span.outside_scopes);
  for (TracedScope& scope : type.scopes) scope.path = absolute_path(scope.path, span.path);
  replace_ids(type, {op_id, value_id, storage_id, scope_id,
                     [&](OpId op) { return moved("op position", op, first_op); }});
  append(trace.ops, type.ops);
  append(trace.values, type.values);
  append(trace.storages, type.storages);
  append(trace.scopes, type.scopes);
  append(trace.packs, type.packs);
}

std::size_t entries_of(const SpanType& type) {
  return type.ops.size() + type.values.size() + type.storages.size() + type.scopes.size() +
         type.packs.size();
}

void refuse_more_than_a_step(const SpannedTrace& spanned) {
  std::size_t entries = 0;
  const auto add = [&](std::size_t count) {
    entries += count;
    if (entries > kMaxEntries) {
      throw FormatError("has more than " + std::to_string(kMaxEntries) +
                        " entries when its types are expanded; no training step is that large");
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
