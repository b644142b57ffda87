// The fields of hidden effects. In files of traces and plans, these are top-level keys.
#pragma once

#include "policies/base/field_value.h"
#include "policies/trace/hidden_effects.h"

namespace rematch {

// The readers throw FormatError for a malformed name.
void read_value(const JsonField& field, OpaqueFunction& function);
void read_value(const JsonField& field, SilentWriter& writer);

template <RecordOf<OpaqueFunction> Function, class Visit>
void visit_fields(Function& function, Visit visit) {
  visit("name", function.name);
  visit("overwrites", function.overwrites);
}

template <RecordOf<SilentWriter> Writer, class Visit>
void visit_fields(Writer& writer, Visit visit) {
  visit("op", writer.op);
  visit("arguments", writer.arguments);
}

template <RecordOf<HiddenEffects> Effects, class Visit>
void visit_fields(Effects& effects, Visit visit) {
  visit({"opaque_functions", kLater | kOmitIfEmpty}, effects.opaque_functions);
  visit({"silent_writers", kLater | kOmitIfEmpty}, effects.silent_writers);
  visit({"kept_ops", kLater | kOmitIfEmpty}, effects.kept_ops);
}

}  // namespace rematch
