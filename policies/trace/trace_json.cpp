#include "policies/trace/trace_json.h"

#include <algorithm>
#include <stdexcept>

#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/trace/spans.h"
#include "policies/trace/trace_check.h"
#include "policies/trace/trace_op.h"

namespace rematch {
namespace {

// References of a span (spans.h). An absent one is null.
template <class Tag>
Json id_to_json(Id<Tag> id) {
  return id.index;
}

template <class Tag>
Json id_to_json(std::optional<Id<Tag>> id) {
  return id ? id_to_json(*id) : nullptr;
}

template <class AnyId>
AnyId id_from_json(const JsonField& field) {
  return AnyId(field.integer32(std::numeric_limits<std::int32_t>::min() + 1));
}

template <class AnyId>
std::optional<AnyId> optional_id_from_json(const JsonField& field) {
  if (field.is_null()) return std::nullopt;
  return id_from_json<AnyId>(field);
}

// References that only name what is there: of the trace itself, or of packs counted from the first.
template <class AnyId>
AnyId nonnegative_id_from_json(const JsonField& field) {
  return AnyId(field.integer32(0));
}

// Positions among ops: in a broken file anywhere.
OpId position_from_json(const JsonField& field) { return OpId(field.integer32()); }

template <class AnyId>
Json ids_to_json(const std::vector<AnyId>& ids) {
  Json json = Json::array();
  for (const AnyId id : ids) json.push_back(id.index);
  return json;
}

template <class T, class ToJson>
Json list_to_json(const std::vector<T>& list, const ToJson& to_json) {
  Json json = Json::array();
  for (const T& element : list) json.push_back(to_json(element));
  return json;
}

template <class T, class FromJson>
std::vector<T> list_from_json(const JsonField& field, const FromJson& from_json) {
  std::vector<T> list;
  list.reserve(field.size());
  for (std::size_t index = 0; index < field.size(); ++index) {
    list.push_back(from_json(field.at(index)));
  }
  return list;
}

// A use is a reference, or [reference, version] where the storage was written before.
Json use_to_json(const TracedUse& use) {
  if (use.version == 0) return id_to_json(use.value);
  return Json::array({id_to_json(use.value), use.version});
}

TracedUse use_from_json(const JsonField& field) {
  if (!field.json().is_array()) return {id_from_json<ValueId>(field), 0};
  return {id_from_json<ValueId>(field.at(0)), field.at(1).integer32(0)};
}

Json op_to_json(const TracedOp& op) {
  Json json = {{"name", op.name},
               {"class", to_string(op.op_class)},
               {"scope", id_to_json(op.scope)},
               {"inputs", list_to_json(op.inputs, use_to_json)},
               {"outputs", ids_to_json(op.outputs)}};
  if (!op.writes.empty()) json["writes"] = ids_to_json(op.writes);
  if (op.is_view) json["view"] = true;
  if (op.draws_random) json["draws_random"] = true;
  if (op.flops != 0) json["flops"] = op.flops;
  if (!op.group.empty()) json["group"] = op.group;
  return json;
}

OpClass class_from_json(const JsonField& field) {
  if (const auto op_class = op_class_from_string(field.string())) return *op_class;
  std::vector<std::string_view> known;
  for (int index = 0; index < kNumOpClasses; ++index) {
    known.push_back(to_string(static_cast<OpClass>(index)));
  }
  field.fail("unknown op class '" + field.string() + "'" + did_you_mean(field.string(), known));
}

TracedOp op_from_json(const JsonField& field) {
  TracedOp op;
  op.name = field.at("name").string();
  const auto op_class = field.find("class");
  op.op_class = op_class ? class_from_json(*op_class) : op_class_of(op.name);
  op.scope = optional_id_from_json<ScopeId>(field.at("scope"));
  op.inputs = list_from_json<TracedUse>(field.at("inputs"), use_from_json);
  op.outputs = list_from_json<ValueId>(field.at("outputs"), id_from_json<ValueId>);
  if (const auto writes = field.find("writes")) {
    op.writes = list_from_json<StorageId>(*writes, id_from_json<StorageId>);
  }
  if (const auto view = field.find("view")) op.is_view = view->boolean();
  if (const auto draws = field.find("draws_random")) op.draws_random = draws->boolean();
  if (const auto flops = field.find("flops")) op.flops = flops->integer(0);
  if (const auto group = field.find("group")) op.group = group->string();
  return op;
}

Json value_to_json(const TracedValue& value) {
  Json json = {{"producer", id_to_json(value.producer)},
               {"storage", id_to_json(value.storage)},
               {"shape", value.shape},
               {"dtype", value.dtype}};
  if (value.is_parameter) json["parameter"] = true;
  return json;
}

TracedValue value_from_json(const JsonField& field) {
  TracedValue value;
  value.producer = optional_id_from_json<OpId>(field.at("producer"));
  value.storage = id_from_json<StorageId>(field.at("storage"));
  value.shape = list_from_json<std::int64_t>(field.at("shape"),
                                             [](const JsonField& size) { return size.integer(0); });
  value.dtype = field.at("dtype").string();
  if (const auto parameter = field.find("parameter")) value.is_parameter = parameter->boolean();
  return value;
}

Json scope_to_json(const TracedScope& scope) {
  return {{"path", scope.path},
          {"parent", id_to_json(scope.parent)},
          {"first_op", id_to_json(scope.first_op)},
          {"end_op", id_to_json(scope.end_op)}};
}

TracedScope scope_from_json(const JsonField& field) {
  return {field.at("path").string(), optional_id_from_json<ScopeId>(field.at("parent")),
          position_from_json(field.at("first_op")), position_from_json(field.at("end_op"))};
}

Json pack_to_json(const TracedPack& pack) {
  return {{"value", id_to_json(pack.value)},
          {"version", pack.version},
          {"at_op", id_to_json(pack.at_op)}};
}

TracedPack pack_from_json(const JsonField& field) {
  return {id_from_json<ValueId>(field.at("value")), field.at("version").integer32(0),
          position_from_json(field.at("at_op"))};
}

Json type_to_json(const SpanType& type) {
  return {{"ops", list_to_json(type.ops, op_to_json)},
          {"values", list_to_json(type.values, value_to_json)},
          {"storage_bytes",
           list_to_json(type.storages,
                        [](const TracedStorage& storage) { return storage.bytes.count; })},
          {"storage_freed_at",
           list_to_json(type.storages,
                        [](const TracedStorage& storage) { return id_to_json(storage.freed_at); })},
          {"scopes", list_to_json(type.scopes, scope_to_json)},
          {"packs", list_to_json(type.packs, pack_to_json)}};
}

SpanType type_from_json(const JsonField& field) {
  SpanType type;
  type.ops = list_from_json<TracedOp>(field.at("ops"), op_from_json);
  type.values = list_from_json<TracedValue>(field.at("values"), value_from_json);
  type.storages = list_from_json<TracedStorage>(
      field.at("storage_bytes"),
      [](const JsonField& bytes) { return TracedStorage{Bytes{bytes.integer(0)}}; });
  const JsonField freed_at = field.at("storage_freed_at");
  if (freed_at.size() != type.storages.size()) {
    freed_at.fail("has " + std::to_string(freed_at.size()) + " entries beside " +
                  std::to_string(type.storages.size()) + " storage_bytes");
  }
  for (std::size_t index = 0; index < freed_at.size(); ++index) {
    type.storages[index].freed_at = optional_id_from_json<OpId>(freed_at.at(index));
  }
  type.scopes = list_from_json<TracedScope>(field.at("scopes"), scope_from_json);
  type.packs = list_from_json<TracedPack>(field.at("packs"), pack_from_json);
  return type;
}

Json span_to_json(const TraceSpan& span) {
  Json json = {{"type", span.type}};
  if (!span.path.empty()) json["path"] = span.path;
  const auto add = [&](const char* key, const auto& ids) {
    if (!ids.empty()) json[key] = ids_to_json(ids);
  };
  add("outside_ops", span.outside_ops);
  add("outside_values", span.outside_values);
  add("outside_storages", span.outside_storages);
  add("outside_scopes", span.outside_scopes);
  return json;
}

int type_index(const JsonField& field, std::size_t num_types) {
  if (num_types == 0) field.fail("refers to a type, but the list of types is empty");
  return field.integer32(0, static_cast<std::int32_t>(num_types) - 1);
}

template <class AnyId>
std::vector<AnyId> outside_from_json(const JsonField& span, std::string_view key) {
  const auto field = span.find(key);
  if (!field) return {};
  return list_from_json<AnyId>(*field, nonnegative_id_from_json<AnyId>);
}

TraceSpan span_from_json(const JsonField& field, std::size_t num_types) {
  TraceSpan span;
  span.type = type_index(field.at("type"), num_types);
  if (const auto path = field.find("path")) span.path = path->string();
  span.outside_ops = outside_from_json<OpId>(field, "outside_ops");
  span.outside_values = outside_from_json<ValueId>(field, "outside_values");
  span.outside_storages = outside_from_json<StorageId>(field, "outside_storages");
  span.outside_scopes = outside_from_json<ScopeId>(field, "outside_scopes");
  return span;
}

Json block_to_json(const TracedBlock& block) {
  return {{"list", block.list}, {"index", block.index}, {"scope", id_to_json(block.scope)}};
}

TracedBlock block_from_json(const JsonField& field) {
  return {nonnegative_id_from_json<ScopeId>(field.at("scope")), field.at("list").string(),
          field.at("index").integer32(0)};
}

Json parameters_to_json(const TracedParameters& parameters) {
  return {
      {"elements", parameters.elements}, {"dtype", parameters.dtype}, {"count", parameters.count}};
}

TracedParameters parameters_from_json(const JsonField& field) {
  return {field.at("elements").integer(0), field.at("dtype").string(),
          field.at("count").integer(0)};
}

Json event_to_json(const BackwardEvent& event) {
  if (event.kind == BackwardEvent::Kind::kRelease) return {{"release", id_to_json(event.pack)}};
  if (event.kind == BackwardEvent::Kind::kPutAway) return {{"put_away", id_to_json(event.pack)}};
  Json json;
  if (event.kind == BackwardEvent::Kind::kDemand) {
    json = {{"demand", id_to_json(event.pack)}};
  } else {
    json = {{"op", event.op}};
  }
  json["scope"] = id_to_json(event.scope);
  if (event.other_bytes.count != 0) json["bytes_change"] = event.other_bytes.count;
  if (event.gradient_bytes.count != 0) {
    json["gradient_bytes_change"] = event.gradient_bytes.count;
  }
  if (!event.group.empty()) json["group"] = event.group;
  if (event.collective_bytes.count != 0) json["collective_bytes"] = event.collective_bytes.count;
  return json;
}

BackwardEvent event_from_json(const JsonField& field) {
  BackwardEvent event;
  if (const auto release = field.find("release")) {
    event.kind = BackwardEvent::Kind::kRelease;
    event.pack = nonnegative_id_from_json<PackId>(*release);
    return event;
  }
  if (const auto put_away = field.find("put_away")) {
    event.kind = BackwardEvent::Kind::kPutAway;
    event.pack = nonnegative_id_from_json<PackId>(*put_away);
    return event;
  }
  if (const auto demand = field.find("demand")) {
    event.kind = BackwardEvent::Kind::kDemand;
    event.pack = nonnegative_id_from_json<PackId>(*demand);
  } else {
    event.op = field.at("op").string();
  }
  event.scope = optional_id_from_json<ScopeId>(field.at("scope"));
  if (const auto change = field.find("bytes_change")) event.other_bytes = {change->integer()};
  if (const auto change = field.find("gradient_bytes_change")) {
    event.gradient_bytes = {change->integer()};
  }
  if (const auto group = field.find("group")) event.group = group->string();
  if (const auto bytes = field.find("collective_bytes")) {
    event.collective_bytes = {bytes->integer(0)};
  }
  return event;
}

Json collective_to_json(const TracedCollective& collective) {
  return {{"op", collective.op},
          {"group", collective.group},
          {"collective_bytes", collective.bytes.count}};
}

TracedCollective collective_from_json(const JsonField& field) {
  return {field.at("op").string(),
          field.at("group").string(),
          {field.at("collective_bytes").integer(0)}};
}

Json events_to_json(const std::vector<BackwardEvent>& events) {
  return list_to_json(events, event_to_json);
}

std::vector<BackwardEvent> events_from_json(const JsonField& field) {
  return list_from_json<BackwardEvent>(field, event_from_json);
}

SpannedTrace spanned_from_json(const JsonField& root) {
  SpannedTrace spanned;
  spanned.types = list_from_json<SpanType>(root.at("types"), type_from_json);
  spanned.spans = list_from_json<TraceSpan>(
      root.at("spans", "segments"),
      [&](const JsonField& field) { return span_from_json(field, spanned.types.size()); });
  spanned.backward_types =
      list_from_json<std::vector<BackwardEvent>>(root.at("backward_types"), events_from_json);
  spanned.backward = list_from_json<BackwardRun>(root.at("backward"), [&](const JsonField& field) {
    return BackwardRun{type_index(field.at("type"), spanned.backward_types.size()),
                       nonnegative_id_from_json<PackId>(field.at("first_pack")),
                       nonnegative_id_from_json<ScopeId>(field.at("first_scope"))};
  });
  return spanned;
}

bool leaves_out_class(const Json& op) { return op.is_object() && !op.contains("class"); }

// Which ops of the trace have no flops because the writer knew none: those of types in which some
// op has no class.
void add_flops(const SpannedTrace& spanned, const JsonField& root, Trace& trace) {
  OpId first;
  for (const TraceSpan& span : spanned.spans) {
    const auto type = static_cast<std::size_t>(span.type);
    const OpId end = first + static_cast<std::int32_t>(spanned.types[type].ops.size());
    const Json& ops = root.at("types").at(type).at("ops").json();
    if (std::any_of(ops.begin(), ops.end(), leaves_out_class)) {
      for (const OpId id : IdRange(first, end)) {
        TracedOp& op = trace.ops[id];
        if (op.flops == 0) op.flops = flops_of(trace, op);
      }
    }
    first = end;
  }
}

}  // namespace

Json trace_to_json(const Trace& trace) {
  if (const auto problem = trace_problem(trace)) {
    throw std::invalid_argument("trace of '" + trace.model + "' is not valid: " + *problem);
  }
  const SpannedTrace spanned = cut_into_spans(trace);
  Json json = {{"schema", schema_name(kTraceSchema)},
               {"model", trace.model},
               {"dimensions", trace.dimensions},
               {"dtype", trace.dtype},
               {"parameter_bytes", trace.parameter_bytes.count},
               {"parameters", list_to_json(trace.parameters, parameters_to_json)},
               {"constant_bytes", trace.constant_bytes.count},
               {"gradient_bytes", trace.gradient_bytes.count}};
  json["types"] = list_to_json(spanned.types, type_to_json);
  json["spans"] = list_to_json(spanned.spans, span_to_json);
  json["blocks"] = list_to_json(trace.blocks, block_to_json);
  json["backward_types"] = list_to_json(spanned.backward_types, events_to_json);
  json["backward"] = list_to_json(spanned.backward, [](const BackwardRun& run) {
    return Json{{"type", run.type},
                {"first_pack", id_to_json(run.first_pack)},
                {"first_scope", id_to_json(run.first_scope)}};
  });
  if (!trace.gradient_sums.empty()) {
    json["gradient_sums"] = list_to_json(trace.gradient_sums, collective_to_json);
  }
  return json;
}

Trace trace_from_json(const Json& json) {
  require_schema(json, kTraceSchema.kind);
  const JsonField root(json);
  Trace trace;
  trace.model = root.at("model").string();
  const JsonField dimensions = root.at("dimensions");
  dimensions.require_object();
  for (const auto& [name, value] : dimensions.json().items()) {
    trace.dimensions[name] = dimensions.at(name).integer();
  }
  trace.dtype = root.at("dtype").string();
  trace.parameter_bytes = {root.at("parameter_bytes").integer(0)};
  trace.parameters = list_from_json<TracedParameters>(root.at("parameters"), parameters_from_json);
  trace.constant_bytes = {root.at("constant_bytes").integer(0)};
  trace.gradient_bytes = {root.at("gradient_bytes").integer(0)};
  trace.blocks = list_from_json<TracedBlock>(root.at("blocks"), block_from_json);
  if (const auto sums = root.find("gradient_sums")) {
    trace.gradient_sums = list_from_json<TracedCollective>(*sums, collective_from_json);
  }
  const SpannedTrace spanned = spanned_from_json(root);
  join_spans(spanned, trace);
  if (const auto problem = trace_problem(trace)) throw FormatError("trace: " + *problem);
  add_flops(spanned, root, trace);
  return trace;
}

// The hash of the trace as a file of 1.0, so that plans and profiles of such files still match.
std::string trace_sha256(const Trace& trace) {
  Json json = trace_to_json(trace);
  json["schema"] = "rematch.trace/1.0";
  json["segments"] = std::move(json["spans"]);
  json.erase("spans");
  return canonical_sha256(json);
}

}  // namespace rematch
