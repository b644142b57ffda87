// Lists the fields of a trace's file in order. A new field needs a member in trace.h or spans.h, a
// line here, and an entry in reports/schema/trace.schema.json. Private to this folder and to the
// test that compares the list with the schema.
#pragma once

#include "policies/base/field_value.h"
#include "policies/trace/hidden_effects_fields.h"
#include "policies/trace/spans.h"
#include "policies/trace/trace.h"

namespace rematch {

// Writes the references of a span (spans.h). A negative id refers outside the span.
template <class Tag>
Json to_value(Id<Tag> id) {
  return id.index;
}
template <class Tag>
void read_value(const JsonField& field, Id<Tag>& id) {
  id = Id<Tag>(field.integer32(std::numeric_limits<std::int32_t>::min() + 1));
}

Json to_value(const TracedUse& use);
Json to_value(const SpanType& type);
Json to_value(const BackwardEvent& event);
void read_value(const JsonField& field, TracedUse& use);
void read_value(const JsonField& field, TracedOp& op);
void read_value(const JsonField& field, SpanType& type);
void read_value(const JsonField& field, BackwardEvent& event);

template <RecordOf<TracedOp> Op, class Visit>
void visit_fields(Op& op, Visit visit) {
  visit("name", op.name);
  // if absent, a reader derives the class from the op's name
  visit({"class", kLater}, op.op_class);
  visit("scope", op.scope);
  visit("inputs", op.inputs);
  visit("outputs", op.outputs);
  visit({"writes", kLater | kOmitIfEmpty}, op.writes);
  visit({"overwrites", kLater | kOmitIfEmpty}, op.overwrites);
  visit({"copies", kLater | kOmitIfEmpty}, op.copies);
  visit({"view", kLater | kOmitIfEmpty}, op.is_view);
  visit({"draws_random", kLater | kOmitIfEmpty}, op.draws_random);
  visit({"flops", kLater | kOmitIfEmpty}, op.flops);
  visit({"group", kLater | kOmitIfEmpty}, op.group);
}

template <RecordOf<TracedValue> Value, class Visit>
void visit_fields(Value& value, Visit visit) {
  visit("producer", value.producer);
  visit("storage", value.storage);
  visit("shape", value.shape);
  visit("dtype", value.dtype);
  visit({"parameter", kLater | kOmitIfEmpty}, value.is_parameter);
}

template <RecordOf<TracedScope> Scope, class Visit>
void visit_fields(Scope& scope, Visit visit) {
  visit("path", scope.path);
  visit("parent", scope.parent);
  visit("first_op", scope.first_op);
  visit("end_op", scope.end_op);
}

template <RecordOf<TracedPack> Pack, class Visit>
void visit_fields(Pack& pack, Visit visit) {
  visit("value", pack.value);
  visit("version", pack.version);
  visit("at_op", pack.at_op);
  visit({"dropped_at", kLater | kOmitIfEmpty}, pack.dropped_at);
}

// Lists all fields except the fields of storages. A file stores storages as two columns:
// "storage_bytes" and "storage_freed_at".
template <RecordOf<SpanType> Type, class Visit>
void visit_fields(Type& type, Visit visit) {
  visit("ops", type.ops);
  visit("values", type.values);
  visit("scopes", type.scopes);
  visit("packs", type.packs);
}

template <RecordOf<TraceSpan> Span, class Visit>
void visit_fields(Span& span, Visit visit) {
  constexpr unsigned kOutside = kLater | kOmitIfEmpty | kNotNegative;
  visit("type", span.type);
  visit({"path", kLater | kOmitIfEmpty}, span.path);
  visit({"outside_ops", kOutside}, span.outside_ops);
  visit({"outside_values", kOutside}, span.outside_values);
  visit({"outside_storages", kOutside}, span.outside_storages);
  visit({"outside_scopes", kOutside}, span.outside_scopes);
}

template <RecordOf<BackwardRun> Run, class Visit>
void visit_fields(Run& run, Visit visit) {
  visit("type", run.type);
  visit({"first_pack", kNotNegative}, run.first_pack);
  visit({"first_scope", kNotNegative}, run.first_scope);
}

template <RecordOf<SpannedTrace> Spanned, class Visit>
void visit_fields(Spanned& spanned, Visit visit) {
  Field spans{"spans"};
  spans.former = "segments";
  visit("types", spanned.types);
  visit(spans, spanned.spans);
  visit("backward_types", spanned.backward_types);
  visit("backward", spanned.backward);
}

template <RecordOf<TracedBlock> Block, class Visit>
void visit_fields(Block& block, Visit visit) {
  visit("list", block.list);
  visit("index", block.index);
  visit({"scope", kNotNegative}, block.scope);
}

template <RecordOf<TracedParameters> Parameters, class Visit>
void visit_fields(Parameters& parameters, Visit visit) {
  visit("elements", parameters.elements);
  visit("dtype", parameters.dtype);
  visit("count", parameters.count);
}

template <RecordOf<TracedCollective> Collective, class Visit>
void visit_fields(Collective& collective, Visit visit) {
  visit("op", collective.op);
  visit("group", collective.group);
  visit("collective_bytes", collective.bytes);
}

template <RecordOf<TracedStage> Stage, class Visit>
void visit_fields(Stage& stage, Visit visit) {
  visit("index", stage.index);
  visit("held_bytes", stage.held_bytes);
  visit({"first_other_bytes", kLater | kOmitIfEmpty}, stage.first_other_bytes);
  visit({"first_gradient_bytes", kLater | kOmitIfEmpty}, stage.first_gradient_bytes);
}

// Lists all fields except those that a file stores in spans.
template <RecordOf<Trace> ATrace, class Visit>
void visit_fields(ATrace& trace, Visit visit) {
  visit("model", trace.model);
  visit("dimensions", trace.dimensions);
  visit("dtype", trace.dtype);
  visit("parameter_bytes", trace.parameter_bytes);
  visit("parameters", trace.parameters);
  visit("constant_bytes", trace.constant_bytes);
  visit("gradient_bytes", trace.gradient_bytes);
  visit("blocks", trace.blocks);
  visit({"gradient_stores", kLater | kOmitIfEmpty}, trace.gradient_stores);
  visit({"micro_batch_sha256", kLater | kOmitIfEmpty}, trace.micro_batch_sha256);
  visit({"stage", kLater | kOmitIfEmpty}, trace.stage);
  visit({"gradient_sums", kLater | kOmitIfEmpty}, trace.gradient_sums);
  visit_fields(trace.hidden, visit);
}

}  // namespace rematch
