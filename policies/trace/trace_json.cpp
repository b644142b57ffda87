#include "policies/trace/trace_json.h"

#include <algorithm>
#include <stdexcept>

#include "policies/base/hashing.h"
#include "policies/base/text.h"
#include "policies/trace/spans.h"
#include "policies/trace/trace_check.h"
#include "policies/trace/trace_fields.h"
#include "policies/trace/trace_op.h"

namespace rematch {

// A use is written as a reference, or as [reference, version] if the version is not 0.
Json to_value(const TracedUse& use) {
  if (use.version == 0) return to_value(use.value);
  return Json::array({to_value(use.value), use.version});
}

void read_value(const JsonField& field, TracedUse& use) {
  const bool has_version = field.json().is_array();
  read_value(has_version ? field.at(0) : field, use.value);
  if (has_version) read_value(field.at(1), use.version);
}

void read_value(const JsonField& field, TracedOp& op) {
  read_fields(field, op);
  if (!field.find("class")) op.op_class = op_class_of(op.name);
}

Json to_value(const SpanType& type) {
  Json json = fields_to_json(type);
  json["storage_bytes"] = json["storage_freed_at"] = Json::array();
  for (const TracedStorage& storage : type.storages) {
    json["storage_bytes"].push_back(to_value(storage.bytes));
    json["storage_freed_at"].push_back(to_value(storage.freed_at));
  }
  return json;
}

void read_value(const JsonField& field, SpanType& type) {
  read_fields(field, type);
  std::vector<Bytes> bytes;
  std::vector<std::optional<OpId>> freed_at;
  read_value(field.at("storage_bytes"), bytes);
  read_value(field.at("storage_freed_at"), freed_at);
  if (freed_at.size() != bytes.size()) {
    field.at("storage_freed_at")
        .fail("has " + std::to_string(freed_at.size()) + " entries for " +
              std::to_string(bytes.size()) + " storage_bytes");
  }
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    type.storages.push_back({bytes[index], freed_at[index]});
  }
}

Json to_value(const BackwardEvent& event) {
  using Kind = BackwardEvent::Kind;
  if (event.kind == Kind::kRelease) return {{"release", to_value(event.pack)}};
  if (event.kind == Kind::kPutAway) return {{"put_away", to_value(event.pack)}};
  Json json =
      event.kind == Kind::kDemand ? Json{{"demand", to_value(event.pack)}} : Json{{"op", event.op}};
  json["scope"] = to_value(event.scope);
  if (event.other_bytes.count != 0) json["bytes_change"] = event.other_bytes.count;
  if (event.gradient_bytes.count != 0) {
    json["gradient_bytes_change"] = event.gradient_bytes.count;
  }
  if (!event.group.empty()) json["group"] = event.group;
  if (event.collective_bytes.count != 0) json["collective_bytes"] = event.collective_bytes.count;
  return json;
}

void read_value(const JsonField& field, BackwardEvent& event) {
  using Kind = BackwardEvent::Kind;
  const auto read_pack = [&](const char* key, Kind kind) {
    const std::optional<JsonField> pack = field.find(key);
    if (!pack) return false;
    event.kind = kind;
    event.pack = PackId(pack->integer32(0));
    return true;
  };
  if (read_pack("release", Kind::kRelease) || read_pack("put_away", Kind::kPutAway)) return;
  if (!read_pack("demand", Kind::kDemand)) event.op = field.at("op").string();
  read_value(field.at("scope"), event.scope);
  if (const auto change = field.find("bytes_change")) event.other_bytes = {change->integer()};
  if (const auto change = field.find("gradient_bytes_change")) {
    event.gradient_bytes = {change->integer()};
  }
  if (const auto group = field.find("group")) event.group = group->string();
  if (const auto bytes = field.find("collective_bytes")) read_value(*bytes, event.collective_bytes);
}

namespace {

// Checks that each span refers to an existing type.
void require_types(const JsonField& spans, std::size_t num_types) {
  for (const JsonField& span : spans.elements()) {
    const JsonField type = span.at("type");
    if (num_types == 0) type.fail("refers to a type, but the list of types is empty");
    type.integer32(0, static_cast<std::int32_t>(num_types) - 1);
  }
}

SpannedTrace spanned_from_json(const JsonField& root) {
  SpannedTrace spanned;
  read_value(root, spanned);
  require_types(root.at("spans", "segments"), spanned.types.size());
  require_types(root.at("backward"), spanned.backward_types.size());
  return spanned;
}

bool leaves_out_class(const Json& op) { return op.is_object() && !op.contains("class"); }

// Computes the flops that a file leaves out. If a span type has an op without a class, the file has
// no flops for any op of the type.
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
  Json json = document_of(kTraceSchema, trace);
  write_fields(json, cut_into_spans(trace));
  return json;
}

Trace trace_from_json(const Json& json) {
  require_schema(json, kTraceSchema.kind);
  const JsonField root(json);
  Trace trace;
  read_fields(root, trace);
  trace.hidden = hidden_effects_from_json(json);
  const SpannedTrace spanned = spanned_from_json(root);
  join_spans(spanned, trace);
  if (const auto problem = trace_problem(trace)) throw FormatError("trace: " + *problem);
  add_flops(spanned, root, trace);
  return trace;
}

// Computes the hash that a file of version 1.0 has. Plans and profiles that were made for such a
// file therefore still match.
std::string trace_sha256(const Trace& trace) {
  if (!trace.micro_batch_sha256.empty()) return trace.micro_batch_sha256;
  Json json = trace_to_json(trace);
  if (trace.stage) json["stage"].erase("index");  // equal stages have one hash
  json["schema"] = "rematch.trace/1.0";
  json["segments"] = std::move(json["spans"]);
  json.erase("spans");
  return canonical_sha256(json);
}

}  // namespace rematch
